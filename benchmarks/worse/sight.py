"""What the model can see of the runs of characters that it is about to write."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from benchmarks.worse.sessions import Message, RecordedSession
from holdfast.engine.session_replay import Reuse, Sight, strings
from holdfast.wire import Message as WireMessage


class ModelSight:
    """The runs of a session's answers: where each came from, and whether it is in view."""

    def __init__(self, session: RecordedSession) -> None:
        self._reuse = Reuse([list(strings(turn.answer)) for turn in session.turns])
        self._added = {id(message) for turn in session.turns for message in turn.added}
        self.start_over()

    def start_over(self) -> None:
        """Forget the history: the client has replaced it."""
        self._sight = Sight(self._reuse)
        self._sources: defaultdict[int, list[int]] = defaultdict(list)
        self._read = 0
        self._sent: Sequence[WireMessage] = ()
        self._shown: list[frozenset[int]] = []

    def look(
        self, sent: Sequence[WireMessage], history: Sequence[Message], places: Sequence[int]
    ) -> None:
        """See a request, and the history that it stands for; opened messages are no source."""
        for place in places:
            if place >= self._read and id(history[place]) in self._added:
                for run in self._reuse.inside(strings(history[place])):
                    self._sources[run].append(place)
        self._read = len(history)
        alike = _alike(self._sent, sent)
        for runs in self._shown[alike:]:
            self._sight.hide(runs)
        del self._shown[alike:]
        for message in sent[alike:]:
            self._shown.append(self._reuse.inside(strings(message.value)))
            self._sight.show(self._shown[-1])
        self._sent = sent

    def missing(self, turn: int) -> dict[int, str]:
        """Places in the history that hold runs of this turn's answer which are not in view."""
        unseen = [run for run in self._sight.unseen(turn) if run in self._sources]
        return {self._sources[run][-1]: self._reuse.runs[run] for run in reversed(unseen)}


def _alike(before: Sequence[WireMessage], now: Sequence[WireMessage]) -> int:
    pairs = zip(before, now, strict=False)
    differing = (n for n, (a, b) in enumerate(pairs) if a is not b)
    return next(differing, min(len(before), len(now)))
