"""Answers of the answer cache in the store: the record, and the calls on it.

An answer belongs to a scope; an expired or damaged one counts as missing. The content of an
answer, and its use for other questions, are decided by holdfast.answer_cache.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from holdfast.errors import StoreError
from holdfast.store import rules
from holdfast.store.records import Damage
from holdfast.store.refs import parse
from holdfast.store.scope import Scope

DAMAGE = "a kept answer did not match its hash; it was removed, and will be asked for again"
MOST_CANDIDATES = 1_000
"""Answers of one signature that are compared with a question: 15 ms of work."""


class StoredAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, its question, and its expiry."""

    id: str
    """The hash of prompt and signature: an equal request has the same."""
    prompt: str
    signature: str
    """The hash of all else that the answer depends on: the context it was given in."""
    answer: bytes
    refs: tuple[str, ...] = ()
    """Stored contents it was made from: it holds only while all of them are fresh."""
    vector: bytes = b""
    """Of the prompt; empty if it is for equal requests alone."""
    embedder: str = ""
    """The embedder of the vector: vectors of two embedders are never compared."""
    session: str = ""
    """Its first session, with which it is removed."""
    created_at: float = 0.0
    expires_at: float | None = None
    hits: int = 0
    last_hit_at: float | None = None

    def __repr__(self) -> str:
        return f"<StoredAnswer {self.id[:16]}, {len(self.answer)} bytes>"


class Candidate(NamedTuple):
    """An answer whose question may be like another."""

    id: str
    vector: bytes


class AnswerStore(ABC):
    """Answers in a store."""

    @abstractmethod
    async def put(self, scope: Scope, answer: StoredAnswer) -> None:
        """Keep an answer in the place of one with its id; it was given in `scope.session`."""

    @abstractmethod
    async def get(self, scope: Scope, id_: str) -> StoredAnswer | None:
        """The answer of this id; None if it is not there, past its time or damaged."""

    @abstractmethod
    async def candidates(self, scope: Scope, signature: str, embedder: str) -> list[Candidate]:
        """The newest answers of a signature that have a vector of this embedder."""

    @abstractmethod
    async def hit(self, scope: Scope, id_: str) -> None:
        """Note that an answer was given again."""

    @abstractmethod
    async def latest(
        self, scope: Scope, *, ref: str = "", limit: int = 100, before: str = ""
    ) -> list[StoredAnswer]:
        """Return the newest answers, of `scope.session` if it names one, including expired ones.

        `ref` selects those that depend on it; `before` is the last answer of the previous page.

        Raises:
            StoreError: `before` is no answer of this scope.
        """

    @abstractmethod
    async def forget(self, scope: Scope, ids: Sequence[str]) -> int:
        """Remove answers without a trace; return their number."""


def check(answer: StoredAnswer) -> None:
    """Raise unless an answer can be kept."""
    rules.check_key(answer.id)
    rules.check_key(answer.signature)
    if bool(answer.vector) != bool(answer.embedder):
        raise StoreError(
            "a vector has no embedder, or an embedder no vector",
            where=f"answer {answer.id[:16]}",
            fix="Give both or neither.",
        )
    if any(parse(ref) is None for ref in answer.refs):
        raise StoreError(
            "an answer names a ref that is none",
            where=f"answer {answer.id[:16]}",
            fix="Give refs such as ref:log:0123456789abcdef.",
        )


def damaged(sha256: str) -> Damage:
    """Return the report of a damaged answer."""
    return Damage(sha256=sha256, why=DAMAGE, refs=())


def written(answer: StoredAnswer) -> bytes:
    """Return the content of an answer in one piece, which is compressed and hashed."""
    # A prompt may hold half a surrogate pair, as text of a conversation may.
    return msgspec.msgpack.encode((answer.prompt.encode("utf-8", "surrogatepass"), answer.answer))


def read(content: bytes) -> tuple[str, bytes]:
    """Prompt and answer, as `written` wrote them."""
    prompt, answer = msgspec.msgpack.decode(content, type=tuple[bytes, bytes])
    return prompt.decode("utf-8", "surrogatepass"), answer
