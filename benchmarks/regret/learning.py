"""Learn the policy's numbers: `python -m benchmarks.regret.learning [--every N] [--needs 0.15]`.

learning: after report. How often a result is needed once it is hidden is counted, by what it was
asked for or what it is; what an extra call is worth is then the least at which no more is missed
than is allowed. Whether that carries over is seen by leaving out one source at a time. To try many
numbers the conversations are not told again: a citation on arrival breaks no cache, so that costs
add up, and a need is known by the results that its run stands in.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.regret.recording import CODING, MODEL, Recording, recordings
from benchmarks.regret.reuse import texts_of
from benchmarks.regret.telling import costs
from holdfast.cite import CitingRules
from holdfast.expand.options import DEFAULT_TOKENS
from holdfast.expand.tool import definition
from holdfast.fitting import fit
from holdfast.fitting.policy import Arrival
from holdfast.tokens import count

VENDOR = "Anthropic"
_RULES = CitingRules(policy="always")
_UNLIMITED = 10**9
_TELLING = 1_000
"""Tokens of the results that are counted: small ones are hidden in half, and needed less."""
_DOUBT = 8
"""So many results of the mean are added to each group: few of a kind prove little."""
_WORTHS = range(1_000, 30_001, 500)

Group = str


class Result(NamedTuple):
    """A tool result, and what became of it when it was cited."""

    turn: int
    tokens: int
    cited: int
    """Tokens of its citation."""
    group: Group
    """Its use, or its kind where that is open: as the policy looks it up."""


class Reused(NamedTuple):
    """A run that the model wrote, by the results that it stands in."""

    holders: frozenset[int]
    shown: frozenset[int]
    """Of these, whose citations show it."""


class Facts(NamedTuple):
    """All that is to know of a conversation."""

    source: str
    learns: bool
    frame: float
    """Tokens around the messages."""
    growth: list[tuple[float, float]]
    """Tokens that each turn adds, before and with the model's answer."""
    results: list[Result]
    reused: list[list[Reused]]
    """In each turn."""


def facts_of(recording: Recording) -> Facts:
    """Cite every long result of a conversation, and see what of it the model wrote later."""
    body = json.dumps({**recording.frame, "messages": recording.messages}).encode()
    fitted = fit(body, model=MODEL, dialect="openai-chat", limit=_UNLIMITED, citing=_RULES)
    cited = {edit.start: edit for edit in fitted.edits if edit.action == "cite"}
    inside = recording.reuse.inside
    frame, *each = recording.tokens
    tokens = iter(each)
    facts = Facts(recording.source, recording.learns, frame, [], [], [])
    visible: set[int] = set()
    holders: defaultdict[int, set[int]] = defaultdict(set)
    shown: defaultdict[int, set[int]] = defaultdict(set)
    calls = {c["id"]: c["function"] for m in recording.messages for c in m.get("tool_calls") or ()}
    place = 0
    for number, turn in enumerate(recording.turns):
        for message in turn.added:
            runs = inside(texts_of(message))
            edit = cited.get(place)
            if edit is None:
                visible |= runs
            else:
                name = len(facts.results)
                call = calls.get(message.get("tool_call_id", ""), {})
                arrival = Arrival(
                    message["content"], tool=call.get("name", ""), arguments=call.get("arguments")
                )
                facts.results.append(
                    Result(number, edit.from_tokens, edit.to_tokens, arrival.use or arrival.kind)
                )
                for run in runs:
                    holders[run].add(name)
                for run in inside(texts_of(fitted.state.sent.messages[place].value)):
                    shown[run].add(name)
            place += 1
        facts.reused.append(
            list({
                Reused(frozenset(holders[run]), frozenset(shown.get(run, ())))
                for run in recording.reuse.turns[number]
                if run in holders and run not in visible
            })
        )  # fmt: skip
        added = sum(next(tokens) for _ in turn.added)
        facts.growth.append((added, sum(next(tokens) for _ in turn.answer)))
        visible |= inside(text for message in turn.answer for text in texts_of(message))
        place += len(turn.answer)
    return facts


@cache
def tool_tokens() -> int:
    """What the tool that opens refs costs in every request: it is there from the first one on."""
    tools: list[object] = [{"type": "function", "function": {"name": "other"}}]
    one = count({"model": MODEL, "messages": [], "tools": tools}).tokens
    tools.append(definition("openai-chat"))
    return count({"model": MODEL, "messages": [], "tools": tools}).tokens - one


class Judged(NamedTuple):
    """What a choice of results to cite comes to in one conversation."""

    cost: float
    untouched: float
    needed: list[int]


def judge(facts: Facts, cited: Collection[int]) -> Judged:
    """The cost and the needs if these results are cited on arrival."""
    arriving: defaultdict[int, list[int]] = defaultdict(list)
    for name, result in enumerate(facts.results):
        arriving[result.turn].append(name)
    hidden: set[int] = set()
    needed: list[int] = []
    cost = untouched = 0.0
    now, whole = facts.frame + tool_tokens(), facts.frame
    before = whole_before = 0.0
    for turn, (added, answered) in enumerate(facts.growth):
        now += added
        whole += added
        for name in arriving[turn]:
            if name in cited:
                hidden.add(name)
                now -= facts.results[name].tokens - facts.results[name].cited
        cost += costs(now, before)[VENDOR]
        untouched += costs(whole, whole_before)[VENDOR]
        before, whole_before = now, whole
        for reused in facts.reused[turn] if hidden else ():
            if reused.holders <= hidden and not reused.shown & hidden:
                name = max(reused.holders)
                hidden.discard(name)
                needed.append(name)
                now += min(facts.results[name].tokens, DEFAULT_TOKENS)
                cost += costs(now, before)[VENDOR]
                before = now
        now += answered
        whole += answered
    return Judged(cost, untouched, needed)


class Share(NamedTuple):
    """How often the results of a group were needed."""

    need: float
    number: int


def shares(all_facts: Iterable[Facts]) -> dict[Group, Share]:
    """How often each group was needed when it was hidden, with all doubt."""
    number: Counter[Group] = Counter()
    needed: Counter[Group] = Counter()
    for facts in all_facts:
        missed = set(judge(facts, range(len(facts.results))).needed)
        for name, result in enumerate(facts.results):
            if result.tokens > _TELLING:
                number[result.group] += 1
                needed[result.group] += name in missed
    mean = needed.total() / max(1, number.total())
    return {
        group: Share((needed[group] + _DOUBT * mean) / (number[group] + _DOUBT), number[group])
        for group in number
    } | {"": Share(mean, number.total())}


class Total(NamedTuple):
    """Over many conversations."""

    cost: float
    needs: float
    """For each conversation."""


def total(
    all_facts: Sequence[Facts], table: Mapping[Group, Share], worth: float
) -> dict[str, Total]:
    """What a table comes to, for all, coding agents, and each source."""
    sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for facts in all_facts:
        cited = {
            name
            for name, result in enumerate(facts.results)
            if result.tokens > worth * table.get(result.group, table[""]).need
        }
        judged = judge(facts, cited)
        coding = ("coding agents",) if facts.source in CODING else ()
        for key in ("all", *coding, facts.source):
            sums[key].update(number=1, needs=len(judged.needed))
            sums[key].update(cost=judged.cost, untouched=judged.untouched)  # type: ignore[call-overload]
    return {
        key: Total(of["cost"] / of["untouched"], of["needs"] / of["number"])
        for key, of in sums.items()
    }


def least_worth(all_facts: Sequence[Facts], table: Mapping[Group, Share], allowed: float) -> int:
    """The least number of tokens that a sure need is worth, at which no more is missed."""
    low, high = 0, len(_WORTHS) - 1
    while low < high:
        middle = (low + high) // 2
        fits = total(all_facts, table, _WORTHS[middle])["all"].needs <= allowed
        low, high = (low, middle) if fits else (middle + 1, high)
    return _WORTHS[low]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regret.learning")
    parser.add_argument("--every", type=int, default=1, help="every so many-th recording")
    parser.add_argument("--needs", type=float, default=0.15, help="for each conversation")
    options = parser.parse_args()
    everything = [facts_of(recording) for recording in recordings(options.every)]
    learnt = [facts for facts in everything if facts.learns]
    table = shares(learnt)
    worth = least_worth(learnt, table, options.needs)
    console = Console(width=150)
    shown = Table(title=f"Needed when hidden; a sure need is worth {worth:,} tokens")
    for column in ("use or kind", "results", "needed", "cited over"):
        shown.add_column(column, justify="left" if column == "use or kind" else "right")
    for group, share in sorted(table.items(), key=lambda item: -item[1].number):
        over = f"{worth * share.need:,.0f}"
        shown.add_row(group or "(all)", f"{share.number:,}", f"{share.need:.2f}", over)
    console.print(shown)
    held_out = [facts for facts in everything if not facts.learns]
    rows = {
        "learnt from": total(learnt, table, worth),
        "held out": total(held_out, table, worth),
        "one source left out": left_out(everything, worth),
    }
    frontier = {f"worth {w:,}": total(everything, table, w) for w in _FRONTIER}
    console.print(_totals(rows | frontier))


_FRONTIER = (1_000, 2_000, 4_000, 6_000, 8_000, 10_000, 15_000, 20_000)


def left_out(everything: Sequence[Facts], worth: float) -> dict[str, Total]:
    """Each source by a table that was learnt from the others."""
    totals: dict[str, Total] = {}
    for source in sorted({facts.source for facts in everything}):
        table = shares(facts for facts in everything if facts.source != source)
        totals |= total([f for f in everything if f.source == source], table, worth)
    del totals["all"]
    totals.pop("coding agents", None)
    return totals


def _totals(rows: Mapping[str, Mapping[str, Total]]) -> Table:
    columns = sorted({column for totals in rows.values() for column in totals})
    table = Table(title=f"Cost ({VENDOR}) and needs of a conversation")
    for name in ("", *columns):
        table.add_column(name, justify="right" if name else "left")
    for name, totals in rows.items():
        cells = (totals.get(column) for column in columns)
        table.add_row(name, *(f"{of.cost:.3f} {of.needs:.2f}" if of else "" for of in cells))
    return table


if __name__ == "__main__":
    main()
