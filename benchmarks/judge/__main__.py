"""Ask the model: `python -m benchmarks.judge [--set tuning] [--conditions proxy,full] …`."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.judge import weights
from benchmarks.judge.conditions import CONDITIONS, Rig, proxy_process
from benchmarks.judge.questions import SETS, JudgeQuestion, judge_questions
from benchmarks.judge.report import report_lines
from benchmarks.judge.results import (
    Result,
    append_result,
    current_commit,
    data_hash,
    load_results,
    result_of,
    results_file,
)
from benchmarks.judge.server import running_model, serve
from benchmarks.recall_data import DATA

Settings = tuple[tuple[str, str], ...]
"""Settings of the proxy, sorted by name."""


class Variant(NamedTuple):
    """A condition, and the settings of the proxy in it."""

    name: str
    settings: Settings

    @property
    def label(self) -> str:
        """The name that results are kept under."""
        chosen = ",".join(f"{key}={value}" for key, value in self.settings)
        return f"{self.name}[{chosen}]" if chosen else self.name


QUICK = {"whole": 4, "late": 3, "talk": 3}
"""Questions of each layout in a quick run: about ten minutes on two quiet cores."""
QUICK_CONDITIONS = ("full", "citation", "proxy", "late", "late-hand", "assembled", "last")


def main() -> None:
    options = _read_options()
    # Without a handler the process would end at once and leave the proxy behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("judge: terminated"))
    if not (DATA / "tool_results").exists():
        sys.exit("Recorded tool results are not on this machine: set HOLDFAST_DATA.")
    asked = judge_questions(options.set)
    data, commit = data_hash(asked), options.commit or current_commit()
    path = Path(options.results) if options.results else results_file()
    if not options.report:
        run(options, asked, path, data, commit)
    chosen = [
        result
        for result in load_results(path)
        if (result.model, result.commit, result.data) == (weights.SHA256[:12], commit, data)
    ]
    if not chosen:
        sys.exit(f"{path} has no results of commit {commit} for the {options.set} questions.")
    print(f"{options.set} questions {data}, model {weights.SHA256[:12]}, commit {commit}\n")
    layouts = {name: condition.about for name, condition in CONDITIONS.items()}
    for line in report_lines(chosen, layouts):
        print(line)


def run(
    options: argparse.Namespace, asked: list[JudgeQuestion], path: Path, data: str, commit: str
) -> None:
    """Answer what has no result yet, one content after the other."""
    known = {result.key for result in load_results(path)}
    todo = [
        (variant, question)
        for variant, question in _plan(options, asked)
        if (weights.SHA256[:12], commit, data, question.id, variant.label) not in known
    ]
    print(f"judge: {len(todo)} answers to get, at commit {commit}", file=sys.stderr)
    if not todo:
        return
    with _rigs({variant.settings for variant, _ in todo}) as rigs:
        started = time.monotonic()
        for number, (variant, question) in enumerate(todo, 1):
            try:
                outcome = CONDITIONS[variant.name].answer(rigs[variant.settings], question)
            except OSError as error:
                print(f"judge: {variant.label} {question.id}: {error}", file=sys.stderr)
                continue
            result = result_of(question, variant.label, outcome, commit, data)
            append_result(path, result)
            _print_progress(result, number, len(todo), time.monotonic() - started)


@contextlib.contextmanager
def _rigs(all_settings: set[Settings]) -> Iterator[dict[Settings, Rig]]:
    """Start the model, and a proxy for each of the settings."""
    with contextlib.ExitStack() as stack:
        model = stack.enter_context(running_model())
        model_url = stack.enter_context(serve(model))
        yield {
            settings: Rig(
                model, model_url, stack.enter_context(proxy_process(model_url, dict(settings)))
            )
            for settings in all_settings
        }


def _plan(
    options: argparse.Namespace, asked: Sequence[JudgeQuestion]
) -> Iterator[tuple[Variant, JudgeQuestion]]:
    """Yield conditions and questions in an order in which an interrupted run can be used.

    A question is answered in all conditions before the next one, so that they can be compared. Late
    questions about one content follow each other in each condition, because their prompts share a
    start that the model then reads once.
    """
    chosen_names = QUICK_CONDITIONS if options.quick else tuple(CONDITIONS)
    names = options.conditions.split(",") if options.conditions else chosen_names
    variants = [_variant(name, options.setting) for name in names]
    if unknown := {variant.name for variant in variants} - set(CONDITIONS):
        sys.exit(f"There is no condition {', '.join(sorted(unknown))}: {', '.join(CONDITIONS)}.")
    for layout, quick in QUICK.items():
        chosen = [question for question in asked if question.about == layout]
        if options.quick:
            chosen = _spread(chosen, quick)
        elif layout == "whole":
            chosen = in_rounds(chosen)
        fitting = [variant for variant in variants if CONDITIONS[variant.name].about == layout]
        if not fitting:
            continue
        for group in _groups(chosen[: options.limit], layout):
            yield from ((variant, question) for variant in fitting for question in group)


def _groups(chosen: Sequence[JudgeQuestion], layout: str) -> Iterator[list[JudgeQuestion]]:
    """Yield late questions content by content, and others one by one."""
    if layout != "late":
        yield from ([question] for question in chosen)
        return
    for _, group in itertools.groupby(chosen, key=lambda question: question.content):
        yield list(group)


def in_rounds(asked: Sequence[JudgeQuestion]) -> list[JudgeQuestion]:
    """Return the first question of each content, then the second: a limit leaves no kind out.

    The question stands before the content there, so prompts about one content share no start.
    """
    rounds: Counter[str] = Counter()
    numbered = []
    for question in asked:
        name = question.content.id if question.content else question.id
        numbered.append((rounds[name], question))
        rounds[name] += 1
    return [question for _, question in sorted(numbered, key=lambda pair: pair[0])]


def _spread(asked: Sequence[JudgeQuestion], number: int) -> list[JudgeQuestion]:
    """Return questions at even distances, so that they are about different contents."""
    step = max(1, len(asked) // number)
    return list(asked[::step][:number])


def _variant(text: str, settings: Sequence[str]) -> Variant:
    """Return a condition as it is given: `late`, or `late[open_ahead=false]`."""
    name, _, own = text.rstrip("]").partition("[")
    pairs = [each.partition("=") for each in (*settings, *filter(None, own.split(";")))]
    return Variant(name, tuple(sorted((key, value) for key, _, value in pairs)))


def _print_progress(result: Result, number: int, total: int, elapsed: float) -> None:
    mark = "right" if result.right else "wrong"
    left = elapsed / number * (total - number) / 60
    print(
        f"judge: {number}/{total} {result.condition} {result.question} ({result.type}) {mark}, "
        f"{result.prompt_tokens} tokens in {result.calls} calls; {left:.0f} min left",
        file=sys.stderr,
        flush=True,
    )


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judge", description=__doc__)
    parser.add_argument("--set", choices=SETS, default="tuning", help="questions; default tuning")
    parser.add_argument(
        "--conditions",
        help=f"some of {','.join(CONDITIONS)}; a name may have "
        "settings of the proxy behind it: late[open_ahead=false]",
    )
    parser.add_argument("--quick", action="store_true", help="a sample, in about ten minutes")
    parser.add_argument("--limit", type=int, help="most questions of each layout")
    parser.add_argument("--report", action="store_true", help="print the table of earlier runs")
    parser.add_argument("--results", help="another file of results")
    parser.add_argument("--commit", help="results of this commit instead of the present one")
    parser.add_argument(
        "--setting",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the proxy; results are kept apart under the condition's name",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
