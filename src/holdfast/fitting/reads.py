"""Contents that fitting needs somebody to read: requests and answers as values, never a callback.

Reading a content of megabytes takes a worker process and a deadline, which are not for pure code.
So a step of fitting that needs a citation yields `PendingReads` with the requests and continues
with the answers that are sent to it. Its caller decides where the contents are read.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import TypeVar

import msgspec

from holdfast.cite import BRIEF, Citation, CitingRules, cite, count
from holdfast.errors import PrivacyError
from holdfast.expand.content_match import ContentMatch, MatchRules, match_content
from holdfast.faults import logged_faults
from holdfast.store.records import Edit
from holdfast.wire.long_strings import utf8

T = TypeVar("T")


class PlanEntry(msgspec.Struct, frozen=True):
    """One decision about a request, and its reason."""

    action: str
    """The action of the edit; `whole` for a long result that stays as it is."""
    what: str
    why: str
    where: str
    from_tokens: int = 0
    to_tokens: int | None = None
    """Tokens afterwards. While the citation is not made: the most that it may take; None if that
    follows from the content."""


class CiteRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A content to be cited."""

    content: str | memoryview
    """A text, or the JSON string of it where it is large."""
    question: str
    tool: str = ""
    rules: CitingRules

    @property
    def most_tokens(self) -> int:
        """Maximum tokens of the text that takes the place of the content, if it is cited at all.

        A content that is only shortened may keep as much as would have stayed whole.
        """
        rules = self.rules
        return max(rules.shorten_to, min(rules.most_tokens, max(BRIEF, rules.room)))

    @property
    def text(self) -> str | bytes:
        """The content as text or as UTF-8. A large one is decoded only now, and held by nobody."""
        return self.content if isinstance(self.content, str) else utf8(self.content)


class MatchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A hidden content to be searched for the passage that a question asks for."""

    ref_id: str
    data: bytes
    kind: str
    question: str
    rules: MatchRules


ReadRequest = CiteRequest | MatchRequest
Answer = Citation | ContentMatch | None
"""What became of a request; None where the content may not leave, or could not be matched."""


class PendingReads(msgspec.Struct, frozen=True):
    """The contents to read before fitting continues, and the decisions so far."""

    reads: tuple[ReadRequest, ...]
    edits: tuple[Edit, ...] = ()
    """Edits that are made."""
    decisions: tuple[PlanEntry, ...] = ()
    """Decisions whose edit needs the answers, and results that stay whole."""


Steps = Generator[PendingReads, Sequence[Answer], T]
"""Steps of fitting: they yield contents to read, receive the answers, and return their result."""


def entry_of(edit: Edit) -> PlanEntry:
    """Return an edit as an entry of the plan."""
    return PlanEntry(edit.action, edit.what, edit.why, edit.where, edit.from_tokens, edit.to_tokens)


def citations_of(pending: PendingReads) -> Steps[list[Citation | None]]:
    """Have contents cited; return a citation for each, None for one that may not leave."""
    answers = yield pending
    return [answer if isinstance(answer, Citation) else None for answer in answers]


def matches_of(pending: PendingReads) -> Steps[list[ContentMatch | None]]:
    """Have contents searched; return a match for each, None for one that was not searched."""
    answers = yield pending
    return [answer if isinstance(answer, ContentMatch) else None for answer in answers]


def read_here(requests: Iterable[ReadRequest]) -> list[Answer]:
    """Read contents in this process: the same answers as from a worker, without its limits."""
    return [_read(request) for request in requests]


def _read(request: ReadRequest) -> Answer:
    try:
        if isinstance(request, CiteRequest):
            return cite(
                request.text, question=request.question, tool=request.tool, rules=request.rules
            )
        with logged_faults("holdfast.fitting").caught("open"):
            return match_content(
                request.ref_id, request.data, request.kind, request.question, request.rules, count
            )
    except PrivacyError:
        return None  # content that may not be stored may not be removed
    return None
