"""Precision and recall of our detectors and of detect-secrets: `python -m benchmarks.privacy`.

Recall is measured on generated keys (tests/privacy/formats.py), each in three surroundings. False
alarms are counted in recorded tool results and logs, whose keys were redacted when they were taken.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.core.scan import scan_line
from detect_secrets.settings import transient_settings

from holdfast.privacy import find
from holdfast.privacy.credentials import CREDENTIALS
from tests.privacy.formats import HARMLESS, UNKNOWN, sample, value_of
from tests.support.recorded import DATA

SURROUNDINGS = ("{}", "2026-01-01 INFO using {} now", '{{"out": "{}\\n"}}')
KINDS = {detector.kind for detector in CREDENTIALS}
Finder = Callable[[str], list[str]]


def by_ours(text: str) -> list[str]:
    return [text[f.start : f.stop] for f in find(text) if f.kind in KINDS]


def by_detect_secrets(text: str) -> list[str]:
    return [str(s.secret_value) for line in text.splitlines() for s in scan_line(line)]


def recorded() -> Iterator[str]:
    """Texts without secrets."""
    yield from HARMLESS
    for line in (DATA / "tool_results" / "manifest.jsonl").read_text("utf-8").splitlines():
        yield (DATA / "tool_results" / json.loads(line)["path"]).read_text("utf-8")
    for path in sorted((DATA / "loghub").glob("*.jsonl.gz")):
        with gzip.open(path, "rt") as file:
            yield "\n".join(str(json.loads(line)) for line in file)
    for path in sorted((DATA / "trajectories").glob("*.jsonl.gz")):
        with gzip.open(path, "rt") as file:
            for line in file:
                yield from _strings(json.loads(line))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) > 200:
            yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


def measure(name: str, finder: Finder, negatives: list[str], *, shows: bool) -> None:
    hits: Counter[str] = Counter()
    misses: Counter[str] = Counter()
    for kind, line in sample(5):
        for around in SURROUNDINGS:
            text = around.format(line if around != SURROUNDINGS[2] else json.dumps(line)[1:-1])
            (hits if finder(text) else misses)[kind] += 1
    chance = random.Random(28)
    named = [f"export SERVICE_API_KEY={value_of(each, chance)}" for each in UNKNOWN.values()] * 5
    unknown = sum(bool(finder(line)) for line in named) / len(named)
    began = time.process_time()
    alarms = [alarm for text in negatives for alarm in finder(text)]
    seconds = time.process_time() - began
    size = sum(map(len, negatives)) / 1e6
    recall = hits.total() / (hits.total() + misses.total())
    precision = hits.total() / (hits.total() + len(alarms))
    print(
        f"{name}: recall {recall:.3f} ({len(hits.keys() - misses.keys())} formats of "
        f"{len(hits.keys() | misses.keys())} always), of unknown formats behind a name "
        f"{unknown:.2f}, false alarms {len(alarms)} "
        f"({len(alarms) / size:.2f} a MB of {size:.0f}), precision {precision:.3f}, "
        f"{seconds / size:.3f} s a MB"
    )
    if shows:
        print("  missed:", ", ".join(f"{kind} {n}" for kind, n in misses.most_common()))
        print("  alarms:", Counter(alarms).most_common(40))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="print misses and false alarms")
    parser.add_argument("--ours", action="store_true", help="without detect-secrets, which is slow")
    given = parser.parse_args()
    negatives = list(recorded())
    measure("holdfast", by_ours, negatives, shows=given.show)
    if not given.ours:
        with transient_settings({"plugins_used": _plugins()}):
            measure("detect-secrets", by_detect_secrets, negatives, shows=given.show)


def _plugins() -> list[dict[str, str]]:
    """All but entropy, which is high in every hash (39,000 false alarms a MB), and IP addresses."""
    classes = get_mapping_from_secret_type_to_class().values()
    names = {plugin.__name__ for plugin in classes}
    return [
        {"name": name}
        for name in sorted(names - {"Base64HighEntropyString", "HexHighEntropyString"})
        if not name.startswith("IPPublic")
    ]


if __name__ == "__main__":
    main()
