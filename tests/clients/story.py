"""One task for every client: read many logs, then find a line of an early one.

The model of the tests is a small reader. It requests the logs one after the other, then searches
for the line in its input; if it is not there, it opens the refs in its input, like a model that
follows their instructions. It answers only from its input: a lost line leads to a different
answer. The same reader serves a client without the proxy, to whose answers all others are
compared.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import Any

from tests.surfaces.proxy.gatekeeper import Got
from tests.surfaces.proxy.spoken import REF, call, says, text, thinking
from tests.wire.responses.streams import Part, Script

LOGS = 16
SHORT, LONG = 20, 400
"""Lines of a log: short ones are folded when they are old, the last is long and cited at once."""
QUESTIONS = ("What is the code of step 17 in 0.log?", "And the code of step 90 in 15.log?")
_QUESTION = re.compile(r"the code of step (\d+) in (\d+)\.log\?")
_SHOWN = 400
"""Maximum distance of a citation's first lines from its name."""
_OWN_ANSWER = "final_answer"
"""smolagents' models answer by calling this."""


def code(number: int, step: int) -> str:
    """Return the content of a line: it cannot be guessed, and no line looks more important than
    others.
    """
    return hashlib.sha256(f"{number} {step}".encode()).hexdigest()[:8]


def read_log(path: str) -> str:
    """Reads a log file.

    Args:
        path: The file's name.
    """
    number = int(path.partition(".")[0])
    lines = LONG if number == LOGS - 1 else SHORT
    return "\n".join(
        f"{n:04} INFO step {number}-{n} done, code {code(number, n)}" for n in range(lines)
    )


ANSWERS = [f"The code is {code(0, 17)}.", f"The code is {code(15, 90)}."]


@dataclass
class Reader:
    """The scripted model; `tool` is what reads a log, as the client names it."""

    tool: str = "read_log"
    thinks: bool = False
    """Whether it thinks before it calls, as a reasoning model does."""
    opens_early: bool = False
    """Whether it opens citations or folds while it still reads, together with a client's call."""
    read: int = 0
    opened: set[tuple[str, str]] = field(default_factory=set)
    calls: int = 0

    def __call__(self, got: Got) -> Script:
        self.calls += 1
        asked = (got.value.get("thinking") or {}).get("type", "disabled")
        self.thinks = self.thinks or asked != "disabled"
        if self.read < LOGS:
            return self._read_next(got)
        questions = _QUESTION.findall(got.texts)
        if not questions:
            return self._answer(got, "I was not asked anything.")
        step, number = questions[-1]
        line = re.search(rf"step {number}-{step} done, code (\w+)", got.texts)
        if line:
            return self._answer(got, f"The code is {line[1]}.")
        name = self._likely(got.texts, number, step)
        if not name or "expand_ref" not in got.tools:
            return self._answer(got, "I cannot find it.")
        self.opened.add((name, step))
        wanted = {"ref_id": name, "pattern": f"step {number}-{step} "}
        return self._says(self._call("expand_ref", wanted))

    def _read_next(self, got: Got) -> Script:
        self.read += 1
        path = f"{self.read - 1}.log"
        words, reads = text("I will read it. "), self._call(self.tool, {"path": path})
        cited = REF.findall(got.texts) if self.opens_early and self.read % 3 == 0 else []
        if not cited or "expand_ref" not in got.tools:
            return self._says(words, reads)
        wanted = {"ref_id": cited[self.read % len(cited)], "pattern": "step "}
        opens = call("expand_ref", wanted, f"call_{self.calls}_opens")
        return self._says(words, opens, reads)

    def _likely(self, texts: str, number: str, step: str) -> str:
        """What to open next: first what shows lines of the same log, then the oldest."""
        places = [
            (f"step {number}-" not in texts[found.start() : found.end() + _SHOWN], found.start())
            for found in REF.finditer(texts)
            if (found[0], step) not in self.opened
        ]
        if not places:
            return ""
        likely = REF.match(texts, min(places)[1])
        return likely[0] if likely else ""

    def _says(self, *parts: Part) -> Script:
        thought = [thinking(f"Step {self.calls}.")] if self.thinks else []
        return says(*thought, *parts)

    def _call(self, name: str, arguments: dict[str, Any]) -> Part:
        return call(name, arguments, f"call_{self.calls}")

    def _answer(self, got: Got, words: str) -> Script:
        if _OWN_ANSWER in got.tools:
            return self._says(self._call(_OWN_ANSWER, {"answer": words}))
        return self._says(text(words))


@dataclass
class Coder(Reader):
    """The reader as a model that writes Python: its client runs the text between the tags."""

    def _read_next(self, got: Got) -> Script:
        del got
        self.read += 1
        return self._runs(f"print(read_log('{self.read - 1}.log'))")

    def _answer(self, got: Got, words: str) -> Script:
        del got
        return self._runs(f"final_answer({words!r})")

    def _runs(self, code: str) -> Script:
        return self._says(text(f"Thought: I go on.\n<code>\n{code}\n</code>"))
