"""The model of stored answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec

from holdfast.store import answer_store, rules
from holdfast.store.answer_store import MOST_CANDIDATES, AnswerStore, Candidate, StoredAnswer
from holdfast.store.scope import Scope
from holdfast.store.transfer import AnswerLine


class ModelAnswers(AnswerStore):
    """Keeps answers in dictionaries."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._by_owner: dict[tuple[str, str], dict[str, StoredAnswer]] = {}

    def of(self, scope: Scope) -> dict[str, StoredAnswer]:
        """A user's answers by their ids, in the order they were kept."""
        return self._by_owner.setdefault((scope.workspace, scope.user), {})

    async def put(self, scope: Scope, answer: StoredAnswer) -> None:
        """Keep an answer."""
        answer_store.check(answer)
        self.of(scope).pop(answer.id, None)  # so that it is the newest
        self.of(scope)[answer.id] = msgspec.structs.replace(answer, session=scope.session)

    def _fresh(self, scope: Scope) -> Iterable[StoredAnswer]:
        now = self._clock()
        return (each for each in self.of(scope).values() if not rules.is_over(each.expires_at, now))

    async def get(self, scope: Scope, id_: str) -> StoredAnswer | None:
        """The answer of this id."""
        answer = self.of(scope).get(id_)
        if answer is None or rules.is_over(answer.expires_at, self._clock()):
            return None
        return answer

    async def candidates(self, scope: Scope, signature: str, embedder: str) -> list[Candidate]:
        """The newest answers of a signature."""
        alike = [
            Candidate(answer.id, answer.vector)
            for answer in self._fresh(scope)
            if (answer.signature, answer.embedder) == (signature, embedder) and answer.vector
        ]
        return alike[::-1][:MOST_CANDIDATES]

    async def hit(self, scope: Scope, id_: str) -> None:
        """Note that an answer was given again."""
        if answer := self.of(scope).get(id_):
            self.of(scope)[id_] = msgspec.structs.replace(
                answer, hits=answer.hits + 1, last_hit_at=self._clock()
            )

    async def latest(
        self, scope: Scope, *, ref: str = "", limit: int = 100, before: str = ""
    ) -> list[StoredAnswer]:
        """The answers kept last."""
        newest = list(self.of(scope).values())[::-1]
        if before:
            ids = [answer.id for answer in newest]
            if before not in ids:
                raise rules.no_place_to_go_on(before)
            newest = newest[ids.index(before) + 1 :]
        chosen = [
            answer
            for answer in newest
            if scope.session in ("", answer.session) and (not ref or ref in answer.refs)
        ]
        return chosen[: max(limit, 0)]

    async def forget(self, scope: Scope, ids: Sequence[str]) -> int:
        """Remove answers without a trace."""
        return sum(self.of(scope).pop(id_, None) is not None for id_ in rules.distinct(ids))

    def drop_of_ref(self, scope: Scope, ref_id: str) -> None:
        """Remove the answers that depend on a content that is removed without a trace."""
        self._drop(scope, lambda answer: ref_id in answer.refs)

    def drop_of_session(self, scope: Scope) -> int:
        """Remove the answers of a session; return how many there were."""
        return self._drop(scope, lambda answer: answer.session == scope.session)

    def drop_expired(self, scope: Scope) -> None:
        """Remove expired answers."""
        now = self._clock()
        self._drop(scope, lambda answer: rules.is_over(answer.expires_at, now))

    def expire(self, scope: Scope, before: float, kept: Collection[str]) -> int:
        """Remove the answers of no session that is kept, made before a time; how many."""
        return self._drop(
            scope, lambda answer: answer.created_at < before and answer.session not in kept
        )

    def _drop(self, scope: Scope, goes: Callable[[StoredAnswer], bool]) -> int:
        answers = self.of(scope)
        gone = [id_ for id_, answer in answers.items() if goes(answer)]
        for id_ in gone:
            del answers[id_]
        return len(gone)

    def restore(self, scope: Scope, line: AnswerLine) -> bool:
        """Put an exported answer on the shelf; whether it was not there."""
        return self.of(scope).setdefault(line.answer.id, line.answer) is line.answer
