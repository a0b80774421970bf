"""Answers: keep one, give it again, and forget it.

cache: after vectors, before the engine, which has one for its scope. An answer is given for an
equal request; for a like question only where that is switched on, an embedder is installed, the
context is the same, every guard agrees, and all that it was made from is still fresh.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from holdfast._lazy import LazyModule
from holdfast.answer_cache.flights import Flights
from holdfast.answer_cache.guards import disagreement, unshared_because
from holdfast.answer_cache.reading import read
from holdfast.answer_cache.records import (
    Answer,
    AnswerFilter,
    AnswerPolicy,
    GivenAnswer,
    Match,
    packed,
    unpacked,
)
from holdfast.answer_cache.signing import ID_PREFIX, answer_id
from holdfast.errors import PrivacyError, StoreError
from holdfast.models.embedding import open_embedder
from holdfast.models.protocol import Embedder
from holdfast.privacy import find, flags
from holdfast.store import Scope, Store
from holdfast.store.answer_store import StoredAnswer
from holdfast.store.refs import parse

if TYPE_CHECKING:
    from holdfast.answer_cache import vectors
else:
    vectors = LazyModule("holdfast.answer_cache.vectors")

_PAGE = 100
_LEAST_DIGITS = 8
"""Digits of an id: fewer may be a typo, and remove other answers."""
NO_EMBEDDER = "the semantic tier needs an embedder, which comes with holdfast[embeddings]"
"""Sent to clients in a header: it names no path of this machine, as an install command would."""


class Answers:
    """The answers of one user and workspace."""

    def __init__(
        self,
        store: Store,
        scope: Scope,
        policy: AnswerPolicy | None = None,
        *,
        embedder: Embedder | Literal["installed"] | None = "installed",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.policy = policy or AnswerPolicy()
        self.flights = Flights()
        """Requests of this scope that are under way."""
        self._store = store
        self._scope = scope
        self._clock = clock
        self._given = embedder

    @property
    def _embedder(self) -> Embedder | None:
        """Looked for when it is needed: most never switch the semantic tier on."""
        return open_embedder() if self._given == "installed" else self._given

    @property
    def unlike_because(self) -> str:
        """Why no answer is given for like questions; empty if they are."""
        if not (self.policy.enabled and self.policy.semantic):
            return "the semantic tier is off: enable_semantic_cache switches it on"
        return "" if self._embedder is not None else NO_EMBEDDER

    def of(self, scope: Scope) -> Answers:
        """The answers of another scope, by the same policy."""
        return Answers(self._store, scope, self.policy, embedder=self._given, clock=self._clock)

    # --- give and keep ---------------------------------------------------------------------------

    async def get(self, prompt: str, signature: str, *, alike: bool = True) -> Answer | None:
        """Return a usable answer; None if there is none.

        With `alike` also the answer to a similar question, as the policy allows.
        """
        if not self.policy.enabled:
            return None
        answers = self._store.answers
        stored = await answers.get(self._scope, answer_id(prompt, signature))
        if stored is not None and await self._is_fresh(stored):
            return await self._answer(stored, 1.0)
        if not alike or self.unlike_because or unshared_because(prompt):
            return None
        for similarity, candidate in await self._near(prompt, signature):
            near = await answers.get(self._scope, candidate)
            if near is None or not _serves(prompt, near.prompt) or not await self._is_fresh(near):
                continue
            return await self._answer(near, similarity)
        return None

    async def put(  # noqa: PLR0913 - the contract's, and two by name
        self,
        prompt: str,
        signature: str,
        answer: str | GivenAnswer,
        refs: Sequence[str] = (),
        ttl: float | None = None,
        *,
        session: str = "",
        alike: bool = True,
    ) -> str:
        """Store an answer, for `ttl` seconds or the policy's time; return its id.

        Raises:
            PrivacyError: the question or the answer contains data that the privacy policy forbids.
            StoreError: the cache is switched off, the time is invalid, or a ref is not stored.
        """
        answer_given = GivenAnswer(text=answer) if isinstance(answer, str) else answer
        seconds = self.policy.ttl_seconds if ttl is None else ttl
        if not self.policy.enabled or seconds <= 0:
            raise StoreError(
                "answers are not kept",
                where="ttl" if self.policy.enabled else "enable_answer_cache",
                fix="Switch enable_answer_cache on, and keep them for more than 0 seconds.",
            )
        self._check_privacy(prompt, answer_given.text)
        id_, now = answer_id(prompt, signature), self._clock()
        vector = await self._vector(prompt) if alike and not self.unlike_because else b""
        embedder = self._embedder
        await self._store.answers.put(
            self._scope.of(session or self._scope.session),
            StoredAnswer(
                id=id_,
                prompt=prompt,
                signature=signature,
                answer=packed(answer_given),
                refs=await self._whole_names(refs),
                vector=vector,
                embedder=vectors.name_of(embedder) if vector and embedder is not None else "",
                created_at=now,
                expires_at=now + seconds,
            ),
        )
        return id_

    def _check_privacy(self, prompt: str, text: str) -> None:
        if self.policy.privacy == "allow":
            return
        # Not even masked: a cached answer must equal the original one.
        if kinds := flags((*find(prompt), *find(text))):
            raise PrivacyError(
                f"an answer is not kept: it holds {', '.join(kinds)}",
                where="privacy_policy",
                fix="Remove it, or set the policy to `allow`.",
            )

    async def _whole_names(self, refs: Sequence[str]) -> tuple[str, ...]:
        """Return full refs: an answer is removed with each of them, under any form of its name."""
        names: dict[str, None] = {}
        for ref in refs:
            info = await self._store.info(self._scope, ref)
            if info is None:
                raise StoreError(
                    "an answer names a ref that is not stored",
                    where=ref[:100],
                    fix="Store the content first, with `Holdfast.cite`.",
                )
            names[info.ref_id] = None
        return tuple(names)

    async def _is_fresh(self, stored: StoredAnswer) -> bool:
        """Whether all that an answer was made from is as it was (004-24)."""
        for ref in stored.refs:
            info = await self._store.info(self._scope, ref)
            if info is None or info.state != "fresh":
                return False
        return True

    async def _answer(self, stored: StoredAnswer, similarity: float) -> Answer:
        with suppress(StoreError):  # a count is worth no failure
            await self._store.answers.hit(self._scope, stored.id)
        content = unpacked(stored.answer)
        return Answer(
            id=stored.id,
            text=content.text,
            tier="exact" if similarity == 1.0 else "semantic",
            similarity=similarity,
            matched=stored.prompt,
            created=int(stored.created_at),
            age_seconds=max(0.0, self._clock() - stored.created_at),
            given=content,
            refs=stored.refs,
        )

    async def _vector(self, prompt: str) -> bytes:
        question, embedder = read(prompt), self._embedder
        if question is None or embedder is None or unshared_because(prompt):
            return b""
        return await asyncio.to_thread(vectors.vector_of, question, embedder)

    async def _near(self, prompt: str, signature: str) -> list[tuple[float, str]]:
        """Kept answers whose questions are like enough, the most alike first."""
        vector, embedder = await self._vector(prompt), self._embedder
        if not vector or embedder is None:
            return []
        name = vectors.name_of(embedder)
        candidates = await self._store.answers.candidates(self._scope, signature, name)

        def weighed() -> list[tuple[float, str]]:
            near = vectors.cosines(vector, (each.vector for each in candidates))
            scored = zip(map(_below_one, near), (each.id for each in candidates), strict=True)
            return sorted(pair for pair in scored if pair[0] >= self.policy.similarity)[::-1]

        return await asyncio.to_thread(weighed)

    # --- look and forget -------------------------------------------------------------------------

    async def latest(
        self, limit: int = 100, which: AnswerFilter | None = None
    ) -> list[StoredAnswer]:
        """The answers kept last that fit a filter, those past their time too."""
        answers: list[StoredAnswer] = []
        if limit > 0:
            async for stored in self._all(which or AnswerFilter()):
                answers.append(stored)
                if len(answers) == limit:
                    break
        return answers

    async def matches(self, prompt: str, limit: int = 10) -> list[Match]:
        """Kept answers beside a question, of any context, the most alike first: for people."""
        question, embedder = read(prompt), self._embedder
        vector = b""
        if question is not None and embedder is not None:
            vector = await asyncio.to_thread(vectors.vector_of, question, embedder)
        because = unshared_because(prompt)
        matches = []
        async for stored in self._all(AnswerFilter()):
            is_equal = stored.prompt == prompt
            similarity = 1.0 if is_equal else _below_one(*vectors.cosines(vector, [stored.vector]))
            differs = "" if is_equal else because or _difference(prompt, stored.prompt)
            serves = is_equal or (not differs and similarity >= self.policy.similarity)
            matches.append(
                Match(kept=stored, similarity=similarity, differs_in=differs, serves=serves)
            )
        return sorted(matches, key=lambda match: -match.similarity)[: max(limit, 0)]

    async def forget(
        self, which: str | AnswerFilter, *, preview: bool = False
    ) -> list[StoredAnswer]:
        """Remove answers by id, by ref or by a filter; which. With `preview` they stay."""
        if isinstance(which, str) and which.startswith(ID_PREFIX):
            selected = await self._named(which)
        else:
            selection = AnswerFilter(ref=_checked(which)) if isinstance(which, str) else which
            selected = [stored async for stored in self._all(selection)]
        if selected and not preview:
            await self._store.answers.forget(self._scope, [stored.id for stored in selected])
        return selected

    async def _named(self, name: str) -> list[StoredAnswer]:
        """The answer with an id, or with one that begins so."""
        if len(name) < len(ID_PREFIX) + _LEAST_DIGITS:
            raise _no_name(name)
        candidates = [each async for each in self._all(AnswerFilter()) if each.id.startswith(name)]
        if len(candidates) > 1:
            raise StoreError(
                "more than one answer begins so", where=name[:100], fix="Give more of its digits."
            )
        return candidates

    async def _all(self, which: AnswerFilter) -> AsyncIterator[StoredAnswer]:
        scope, before = self._scope.of(which.session or self._scope.session), ""
        info = await self._store.info(self._scope, which.ref) if which.ref else None
        ref = which.ref if info is None else info.ref_id
        while True:
            page = await self._store.answers.latest(scope, ref=ref, limit=_PAGE, before=before)
            for stored in page:
                if self._fits(stored, which):
                    yield stored
            if not page:  # a short page may lack damaged answers
                return
            before = page[-1].id

    def _fits(self, stored: StoredAnswer, which: AnswerFilter) -> bool:
        if which.signature not in ("", stored.signature):
            return False
        if self._clock() - stored.created_at < which.older_than_seconds:
            return False
        words = which.contains.lower()
        texts = (stored.prompt, unpacked(stored.answer).text) if words else ()
        return not words or any(words in text.lower() for text in texts)


def _checked(ref: str) -> str:
    if parse(ref) is None:
        raise _no_name(ref)
    return ref


def _no_name(name: str) -> StoreError:
    return StoreError(
        "this is neither an id of an answer nor a ref",
        where=name[:100],
        fix=f"Give {ID_PREFIX} and at least {_LEAST_DIGITS} digits of an id, or a ref.",
    )


def _below_one(similarity: float) -> float:
    """Return at most a value below 1, which is reserved for equal requests."""
    return min(similarity, 0.9999)


def _difference(prompt: str, other: str) -> str:
    first, two = read(prompt), read(other)
    if first is None or two is None:
        return "length"
    return disagreement(first, two) or unshared_because(other)


def _serves(prompt: str, other: str) -> bool:
    return not _difference(prompt, other)
