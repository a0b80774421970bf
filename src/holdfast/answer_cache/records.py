"""Records of the answer cache: stored answers, returned answers, and the policy.

Representations contain ids and sizes, never text.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from holdfast.privacy import Policy as PrivacyPolicy
from holdfast.settings import Settings
from holdfast.store.answer_store import StoredAnswer

Tier = Literal["exact", "semantic"]
Form = Literal["whole", "events", "events+usage"]
"""How an answer came: in one piece, or as a stream, which reports usage to who asks for it."""


class GivenAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer: its text, and its exact bytes if it came through the proxy."""

    text: str
    body: bytes = b""
    dialect: str = ""
    form: Form = "whole"
    model: str = ""
    id: str = ""
    """The provider's id: a client may continue from it."""
    is_plain: bool = True
    """Its text is all of it: it can be written in another form."""
    input_tokens: int = 0
    output_tokens: int = 0
    """As they were reported."""

    def __repr__(self) -> str:
        return f"<GivenAnswer, {len(self.text)} characters, {len(self.body)} bytes>"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer from memory, and why it is given."""

    id: str
    text: str
    tier: Tier
    similarity: float
    """Of the questions; 1 for an equal request."""
    matched: str
    """The question that it was given to first."""
    created: int
    """When it was given first, in seconds since 1970."""
    age_seconds: float
    given: GivenAnswer
    refs: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Answer {self.id[:16]}, {self.tier}, {self.similarity:.3f}>"


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """A kept answer beside a question: how alike they are, and what keeps it from being given."""

    kept: StoredAnswer
    similarity: float
    differs_in: str
    """A guard, or the reason why the question cannot share answers; empty if nothing differs."""
    serves: bool


class AnswerFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects the answers that match all fields."""

    ref: str = ""
    session: str = ""
    signature: str = ""
    contains: str = ""
    """Words in the question or in the answer, in any case."""
    older_than_seconds: float = 0.0


class AnswerPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The rules for storing and returning answers, from the settings."""

    enabled: bool = True
    semantic: bool = False
    similarity: float = 0.97
    """Minimum similarity of two questions that share an answer, beside their guards (numbers,
    names, negations): measured in docs/discussions/answers.md."""
    ttl_seconds: float = 3_600.0
    sampled: bool = False
    """Whether the answers of requests with a temperature may be given for like questions."""
    privacy: PrivacyPolicy = "allow"

    @classmethod
    def of(cls, settings: Settings) -> AnswerPolicy:
        """Return the policy of the settings."""
        return cls(
            enabled=settings.enable_answer_cache,
            semantic=settings.enable_semantic_cache,
            ttl_seconds=settings.answer_ttl_seconds,
            privacy=settings.privacy_policy,
        )


def packed(given: GivenAnswer) -> bytes:
    """An answer as it is stored."""
    # Half a surrogate pair, which a model may write, would be refused.
    text = given.text.encode("utf-8", "replace").decode()
    return msgspec.msgpack.encode(msgspec.structs.replace(given, text=text))


def unpacked(answer: bytes) -> GivenAnswer:
    """The answer that `packed` wrote."""
    return msgspec.msgpack.decode(answer, type=GivenAnswer)
