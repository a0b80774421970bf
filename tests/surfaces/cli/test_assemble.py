"""`holdfast memory assemble` and `memory compare`: their output; they change nothing."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.engine import Holdfast
from tests.engine.test_assemble import QUESTION, SAID, talk
from tests.support.recorded import needs_trajectories, trajectories
from tests.surfaces.harness import run_process


@pytest.fixture
def store(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'talk.db'}"

    async def fill() -> None:
        async with Holdfast.open(url) as engine:
            await engine.remember("harbour", talk(30))

    asyncio.run(fill())
    return url


def test_assemble_prints_the_turn_with_its_sources(store: str, tmp_path: Path) -> None:
    done = run_process("memory", "assemble", "harbour", QUESTION, "--store", store, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    turn = json.loads(done.stdout)
    assert turn["budget"]["used"] <= turn["budget"]["limit"] == 3_000
    assert SAID in turn["working_set"][0]["content"]
    assert {"rules", "recalled", "history", "user"} <= {part["part"] for part in turn["sources"]}
    assert [tool["function"]["name"] for tool in turn["tools"]] == ["expand_ref", "recall"]


def test_assemble_draws_a_table_and_obeys_its_options(store: str, tmp_path: Path) -> None:
    done = run_process(
        *("memory", "assemble", "harbour", QUESTION, "--store", store, "--output", "table"),
        *("--budget", "600", "--intent", "planning"),
        folder=tmp_path,
    )
    text = done.stdout.decode()
    assert "source" in text
    assert "of 600 tokens, intent planning." in text


def test_compare_asks_both_contexts_and_says_how_alike_the_answers_are(tmp_path: Path) -> None:
    (tmp_path / "chat.json").write_text(json.dumps({"model": "gpt-5", "messages": talk(60)}))
    done = run_process("memory", "compare", "chat.json", "--question", QUESTION, folder=tmp_path)
    [answer] = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout
    assert answer["similarity"] > 0.95
    assert SAID in answer["full_answer"]
    assert answer["reduction"] > 0.3


def test_compare_fails_where_an_answer_is_missing(tmp_path: Path) -> None:
    (tmp_path / "chat.json").write_text(json.dumps({"model": "gpt-5", "messages": talk(60)}))
    everything = "Which ships came in with crates, all of them, and was it calm?"
    done = run_process(
        "memory",
        "compare",
        "chat.json",
        "--question",
        everything,
        "--budget",
        "200",
        folder=tmp_path,
    )
    assert done.returncode == 1
    assert json.loads(done.stdout)[0]["alike"] is False


@needs_trajectories
def test_recorded_conversations_are_compared_on_the_four_queries(tmp_path: Path) -> None:
    chosen: list[dict[str, Any]] = []
    for record in trajectories():
        said = [m for m in record["messages"] if isinstance(m.get("content"), str)]
        if 12 <= len(said) <= 60:
            chosen.append({"model": "gpt-5", "messages": record["messages"]})
        if len(chosen) == 2:
            break
    names = [f"chat{n}.json" for n in range(len(chosen))]
    for name, body in zip(names, chosen, strict=True):
        (tmp_path / name).write_text(json.dumps(body))
    done = run_process("memory", "compare", *names, folder=tmp_path)
    answers = json.loads(done.stdout)
    assert len(answers) == 4 * len(chosen)
    assert all(answer["assembled_tokens"] <= 3_000 for answer in answers)
