"""Measure the prose and the names of the package, its tests and its documentation.

`python tools/readability.py --check` fails where a measure is above its limit; `--list` prints
every finding as `path:line`. A finding is a symptom: rewrite the sentence, do not avoid the
pattern.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROSE, VAGUE, PARTICIPLES, REPEATED, ING_FILES, COMMENTS = (
    "flagged phrases per 10,000 words",
    "vague local names, %",
    "classes named by a participle, %",
    "class names used more than once",
    "files named *ing.py, %",
    "comments with a reason per 1,000 lines",
)
TREES: dict[str, tuple[tuple[str, ...], dict[str, float]]] = {
    "package": (
        ("src/holdfast",),
        {PROSE: 25, VAGUE: 0.5, PARTICIPLES: 0.5, REPEATED: 3, ING_FILES: 4, COMMENTS: 13},
    ),
    "docs": (("docs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"), {PROSE: 20}),
    "tests": (("tests",), {PROSE: 40}),
}
"""What is measured together, and its limits: each is an upper limit, but for COMMENTS."""

PHRASES = {
    "a clause with 'what' in place of a noun": (
        r"\b[Ww]hat (?:an?|the|it|they|is|are|was|were|we|of|can|may|must|has|came|comes|goes|went|"
        r"stands|left|others?|one|people|models?|clients?)\b"
    ),
    "stand": r"\b(?:stands?|stood)\b",
    "tell": r"\b(?:tells?|telling|told)\b",
    "say": r"\b(?:says?|said)\b",
    "behind, for after": r"\bbehind\b",
    "who, without a noun": r"(?:^|[,.:;] )[Ww]ho(?:ever)? [a-z]+",
    "so many": r"\b(?:after|at most|by|for|in|of|up to) so (?:many|much)\b|\b[Ss]o many\b",
    "go": r"\b(?:goes|went|gone|go on)\b",
    "of ours": r"\bof (?:ours|theirs|its own|their own|one's own)\b",
    "made": r"\bmade (?:anew|of|ready|to)\b",
    "as it came": r"\bas (?:it|they) (?:came|stands?|stood)\b",
    "idioms": r"\bin vain\b|\ba look\b|\blets? go\b",
    "indefinite relatives": r"\b(?:that which|those that|whatever|wherever)\b",
}
VAGUE_NAMES = frozenset(
    "asked due found given gone got held here kept known left listed made meant one other others "
    "put rest said same seen sent shown such taken then there thing things told wanted "
    "whole".split()
)
PARTICIPLE = re.compile(
    r"[A-Z][a-z]+(?:ed|ing)|Found|Given|Gone|Got|Held|Kept|Known|Left|Made|Said|Seen|Sent|Shown|"
    r"Spoken|Standing|Taken|Told|Untold|Written"
)
NOUNS = frozenset(
    "Binding Embedding Encoding Feed Finding Heading King Listing Logging Mapping Meaning Pricing "
    "Ranking Rating Reading Recording Red Ring Routing Seed Setting Speed Spring String Testing "
    "Thing Timing Warning".split()
)
ING_NOUNS = frozenset(
    "chunking embedding encoding folding logging pricing ranking routing settings streaming "
    "testing typing".split()
)
NO_REASON = re.compile(r"noqa|type:|fmt:|pragma|-{3,}|={3,}")


@dataclass
class Measures:
    """Counts of one tree, and where each finding is."""

    words: int = 0
    lines: int = 0
    files: int = 0
    comments: int = 0
    local_names: int = 0
    classes: dict[str, list[str]] = field(default_factory=dict)
    findings: dict[str, list[str]] = field(default_factory=dict)

    def add(self, measure: str, place: str) -> None:
        """Record one finding."""
        self.findings.setdefault(measure, []).append(place)

    def results(self) -> dict[str, float]:
        """Return the value of each measure."""
        repeated = {name: places for name, places in self.classes.items() if len(places) > 1}
        self.findings[REPEATED] = [f"{', '.join(p)} {name}" for name, p in sorted(repeated.items())]
        number = {measure: len(places) for measure, places in self.findings.items()}
        classes = sum(map(len, self.classes.values()))
        return {
            PROSE: 10_000 * number.get(PROSE, 0) / max(1, self.words),
            VAGUE: 100 * number.get(VAGUE, 0) / max(1, self.local_names),
            PARTICIPLES: 100 * number.get(PARTICIPLES, 0) / max(1, classes),
            REPEATED: len(repeated),
            ING_FILES: 100 * number.get(ING_FILES, 0) / max(1, self.files),
            COMMENTS: 1_000 * self.comments / max(1, self.lines),
        }


def main(arguments: list[str] | None = None) -> int:
    """Print the measures of every tree; with `--check`, return 1 where one is above its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail above a limit")
    parser.add_argument("--list", action="store_true", help="print each finding")
    parser.add_argument("paths", nargs="*", type=Path, help="measure these instead")
    options = parser.parse_args(arguments)
    trees = TREES if not options.paths else {"paths": (tuple(map(str, options.paths)), {})}
    failed = False
    for name, (paths, limits) in trees.items():
        measures = measure([ROOT / path for path in paths])
        for measure_name, value in measures.results().items():
            limit = limits.get(measure_name)
            if limits and limit is None:
                continue
            missed = limit is not None and (
                value < limit if measure_name == COMMENTS else value > limit
            )
            failed |= missed
            mark = "" if limit is None else f"  (limit {limit:g}{', MISSED' if missed else ''})"
            print(f"{name:8s} {measure_name:40s} {value:8.1f}{mark}")
            if options.list:
                print(*measures.findings.get(measure_name, ()), sep="\n")
    if failed and options.check:
        print("Rewrite what `python tools/readability.py --list PATH` shows.", file=sys.stderr)
    return int(failed and options.check)


def measure(paths: list[Path]) -> Measures:
    """Return the measures of all Python and Markdown files below `paths`."""
    measures = Measures()
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.suffix == ".py":
                _measure_python(file, measures)
            elif file.suffix == ".md":
                text = re.sub(
                    r"```.*?```", _blank_lines, file.read_text(encoding="utf-8"), flags=re.S
                )
                _measure_prose(file, 1, text, measures)
    return measures


def _blank_lines(match: re.Match[str]) -> str:
    return "\n" * match.group().count("\n")


def _measure_prose(file: Path, line: int, text: str, measures: Measures) -> None:
    measures.words += len(text.split())
    for phrase in PHRASES.values():
        for match in re.finditer(phrase, text, re.M):
            at = line + text.count("\n", 0, match.start())
            measures.add(PROSE, f"{_place(file, at)} {match.group()!r}")


def _measure_python(file: Path, measures: Measures) -> None:
    source = file.read_text(encoding="utf-8")
    measures.files += 1
    measures.lines += source.count("\n")
    stem = file.stem.strip("_")
    if stem.endswith("ing") and stem not in ING_NOUNS:
        measures.add(ING_FILES, _place(file, 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                _measure_prose(file, node.lineno, node.value.value, measures)
        elif isinstance(node, ast.ClassDef):
            place = _place(file, node.lineno)
            measures.classes.setdefault(node.name, []).append(place)
            if PARTICIPLE.fullmatch(node.name) and node.name not in NOUNS:
                measures.add(PARTICIPLES, f"{place} {node.name}")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = {part.id for part in _own_nodes(node) if _is_assigned(part)}
            measures.local_names += len(names)
            for name in sorted(names & VAGUE_NAMES):
                measures.add(VAGUE, f"{_place(file, node.lineno)} {node.name}: {name}")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        text = token.string.lstrip("#: ")
        if token.type == tokenize.COMMENT and not NO_REASON.match(text):
            measures.comments += 1
            _measure_prose(file, token.start[0], text, measures)


def _is_assigned(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _own_nodes(function: ast.AST) -> Iterator[ast.Name]:
    """Yield the names in a function, without those in functions and classes inside it."""
    nodes = list(ast.iter_child_nodes(function))
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Name):
            yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            nodes.extend(ast.iter_child_nodes(node))


def _place(file: Path, line: int) -> str:
    path = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
    return f"{path}:{line}"


if __name__ == "__main__":
    sys.exit(main())
