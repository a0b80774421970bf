"""A run of sixty calls with large results, and a model that must read each of them.

The model notes each line that it reads. Its answer is the same for a complete and for a cited
result, and wrong if anything is lost.

"""

from __future__ import annotations

import re
from typing import Any

CALLS = 60
WINDOW = 16_000
QUESTION = "What is the sum of the checksums that matter?"
_LINE = re.compile(r"(\d{5}) INFO log (\d+) .* checksum (\d+)$", re.MULTILINE)
_REF = re.compile(r"ref:[\w-]+:[0-9a-f]+")


def read_log(number: int) -> str:
    """Reads one of the logs."""
    return "\n".join(
        f"{n:05} INFO log {number} worker {n % 13} served {n * 7} checksum {n * 31 + number * 37}"
        for n in range(300)
    )


def _place(number: int) -> int:
    """Return the important line of a log, which looks like the others."""
    return 120 + number


ANSWER = f"The sum is {sum(_place(n) * 31 + n * 37 for n in range(CALLS))}."


class Reader:
    """Return the model's next turn, from the last tool result."""

    def __init__(self) -> None:
        self.sums: dict[int, int] = {}
        self.opened = 0

    def next(self, result: str | None) -> tuple[str, dict[str, Any]] | str:
        """A call, or the answer."""
        if result is not None:
            number = len(self.sums)
            shown = {(int(n), int(log)): int(total) for n, log, total in _LINE.findall(result)}
            if (_place(number), number) not in shown:
                ref = _REF.search(result)
                assert ref is not None, result[:300]
                self.opened += 1
                place = _place(number) + 1
                return "expand_ref", {"ref_id": ref[0], "lines": f"{place}-{place}"}
            self.sums[number] = shown[_place(number), number]
        if len(self.sums) == CALLS:
            return f"The sum is {sum(self.sums.values())}."
        return "read_log", {"number": len(self.sums)}
