"""Options that choose records of a store: each determines the records that a command prints.

Every kind of record exists at least twice, with an animal's name in each, and they differ in every
value that an option can select.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.answer_cache.records import GivenAnswer, packed
from holdfast.store import Scope
from holdfast.store.answer_store import StoredAnswer
from holdfast.store.queue import NewJob
from tests.store.harness import content
from tests.surfaces.harness import Cli

ANIMALS = frozenset("cow cat hen elk fox owl bat emu ape gnu yak ram pig".split())
DEED = content("a deed", "text", meta={"tool": "cat"})
BILL = content("a bill", "log", meta={"tool": "cow"})
HOUR = 3_600


def tool(name: str, more: str = "") -> dict[str, Any]:
    about = f"Brush the fur of the {name}. {more}"
    return {"name": name, "description": about, "inputSchema": {"type": "object"}}


def answer(animal: str, session: str, age: float, refs: tuple[str, ...] = ()) -> StoredAnswer:
    return StoredAnswer(
        id=f"ans_{animal}",
        prompt=f"What does the {animal} eat?",
        signature="sig",
        answer=packed(GivenAnswer(text="Grass.")),
        session=session,
        refs=refs,
        created_at=time.time() - age,
    )


async def fill(url: str) -> None:
    async with Holdfast.open(url) as engine:
        store, here = engine.store, Scope()
        await store.put(here.of("one"), [DEED])
        await store.put(here.of("two"), [BILL])
        await store.answers.put(here.of("one"), answer("hen", "one", 2 * HOUR, (DEED.ref_id,)))
        await store.answers.put(here.of("two"), answer("elk", "two", HOUR / 2))
        add = engine.facts.add
        await add("The fox is red", source_ref="m1", kind="decision", session="one", tags=["hue"])
        await add("The owl is grey", source_ref="m2", kind="fact", session="two")
        turn = {"role": "user", "at": 1_683_554_400}
        await engine.remember("one", [{**turn, "id": "t1", "content": "The bat eats a moth."}])
        await engine.remember("two", [{**turn, "id": "t2", "content": "The emu eats a moth."}])
        await engine.toolbox.register([tool("ape"), tool("gnu")], server="zoo")
        await engine.toolbox.register([tool("yak")], server="farm")
        await engine.toolbox.register([tool("gnu", "Gently.")], server="zoo")  # not accepted yet
        await store.jobs.enqueue(here, [NewJob(kind="ram", key="k1")])
        await store.jobs.enqueue(Scope("local", "other"), [NewJob(kind="pig", key="k2")])


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("zoo") / "zoo.db"
    asyncio.run(fill(f"sqlite:///{file}"))
    return file


FACTS = "memory facts list", {"fox", "owl"}
FACT_SEARCH = "memory facts search colour", {"fox", "owl"}
FACTS_GONE = "memory facts forget --words the", {"fox", "owl"}
ANSWERS = "memory answers list", {"hen", "elk"}
ANSWERS_GONE = "memory answers forget --contains eat", {"hen", "elk"}
TURNS = "memory recall moth", {"bat", "emu"}
TURNS_GONE = "memory forget t1 t2", {"bat", "emu"}
TOOLS = "tools list", {"ape", "gnu", "yak"}
TOOL_SEARCH = "tools search brush", {"ape", "gnu", "yak"}
TOOLS_GONE = "tools forget --all", {"ape", "gnu", "yak"}
REFS = "store refs", {"cat", "cow"}
JOBS = "jobs list", {"ram", "pig"}

CASES: list[tuple[tuple[str, set[str]], str, set[str]]] = [
    (FACTS, "--session one", {"fox"}),
    (FACTS, "--kind decision", {"fox"}),
    (FACTS, "--tag hue", {"fox"}),
    (FACTS, "--limit 1", {"owl"}),
    (FACT_SEARCH, "--session two", {"owl"}),
    (FACT_SEARCH, "--limit 1 --tag hue", {"fox"}),
    (FACTS_GONE, "--session one", {"fox"}),
    (FACTS_GONE, "--kind decision", {"fox"}),
    (FACTS_GONE, "--tag hue", {"fox"}),
    (FACTS_GONE, "--ref m2", {"owl"}),
    (FACTS_GONE, "--words grey", {"owl"}),
    (ANSWERS, "--session one", {"hen"}),
    (ANSWERS, f"--ref {DEED.ref_id}", {"hen"}),
    (ANSWERS, "--contains hen", {"hen"}),
    (ANSWERS, "--limit 1", {"elk"}),
    (ANSWERS_GONE, "--session one", {"hen"}),
    (ANSWERS_GONE, "--contains elk", {"elk"}),
    (ANSWERS_GONE, "--older-than 1.5", {"hen"}),
    (ANSWERS_GONE, "--older-than 2.5", set()),
    (ANSWERS_GONE, "--older-than 0.4", {"hen", "elk"}),
    (TURNS, "--session one", {"bat"}),
    (TURNS, "--session two", {"emu"}),
    (TOOLS, "--server farm", {"yak"}),
    (TOOLS, "--changed", {"gnu"}),
    (TOOLS_GONE, "--server zoo", {"ape", "gnu"}),
    (REFS, "--kind log", {"cow"}),
    (REFS, "--session one", {"cat"}),
    (REFS, "--limit 1", {"cow"}),
    (JOBS, "--kind ram", {"ram"}),
    (JOBS, "--tenant other", {"pig"}),
    (JOBS, "--limit 1", {"pig"}),
    (JOBS, "--state failed", set()),
]


def animals(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text)) & ANIMALS


def run(cli: Cli, filled: Path, *arguments: str) -> str:
    file = shutil.copy(filled, cli.folder / "zoo.db")
    result = cli(*arguments, "--store", f"sqlite:///{file}", "--output", "json")
    assert result.code == 0, result.err
    printed = result.json
    # Figures of the queue are printed with the jobs for any selection.
    return json.dumps(printed["jobs"] if arguments[0] == "jobs" else printed)


@pytest.mark.parametrize(
    ("command", "everything"), {name: (name, all_) for (name, all_), *_ in CASES}.values()
)
def test_without_options_all_are_printed(
    cli: Cli, filled: Path, command: str, everything: set[str]
) -> None:
    assert animals(run(cli, filled, *command.split())) == everything


# The ids name no set: workers with other hash seeds would order it differently.
@pytest.mark.parametrize(
    ("command", "option", "expected"),
    CASES,
    ids=[f"{name} {option}" for (name, _), option, _ in CASES],
)
def test_an_option_chooses(
    cli: Cli, filled: Path, command: tuple[str, set[str]], option: str, expected: set[str]
) -> None:
    assert animals(run(cli, filled, *command[0].split(), *option.split())) == expected
