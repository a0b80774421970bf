"""`holdfast cite`: its output and stored contents."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from holdfast.cite import count
from holdfast.store import Scope, Store, open_store
from tests.surfaces.harness import Cli, run_process

T = TypeVar("T")

LOG = "".join(
    f"10:{n // 60:02}:{n % 60:02} "
    + ("ERROR disk sda1 is full\n" if n == 431 else f"INFO step {n}\twent well\n")
    for n in range(900)
)


def in_store(cli: Cli, work: Callable[[Store], Awaitable[T]]) -> T:
    async def main() -> T:
        store = await open_store(folder=cli.folder / ".local/share/holdfast")
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(main())


def test_the_citation_is_printed_and_the_original_stored_exactly(cli: Cli) -> None:
    said = cli("cite", cli.write("build.log", LOG), "--output", "table")
    assert said.code == 0
    [ref] = set(re.findall(r"ref:log:[0-9a-f]{16}", said.out))
    assert "ERROR disk sda1 is full" in said.out
    assert "tokens" in said.err
    stored = in_store(cli, lambda store: store.get(Scope(), ref))
    assert stored is not None
    assert stored.data == LOG.encode()


def test_json_tells_what_it_cost_and_what_it_quotes(cli: Cli) -> None:
    made = cli("cite", cli.write("build.log", LOG)).json
    assert made["ref"].startswith("ref:log:")
    assert made["kind"] == "log"
    assert made["from_tokens"] == count(LOG)
    assert made["to_tokens"] == count(made["text"]) <= 400
    [quoted] = [each for each in made["excerpts"] if "sda1" in each["text"]]
    assert quoted["where"] == "line 432"
    assert made["flags"] == []


def test_the_question_decides_what_is_quoted(cli: Cli) -> None:
    file = cli.write("build.log", LOG)
    assert "step 777" not in cli("cite", file).json["text"]
    assert "step 777" in cli("cite", file, "--question", "what about step 777?").json["text"]


def test_options_change_the_citation(cli: Cli) -> None:
    file = cli.write("build.log", LOG)
    small = cli("cite", file, "--max-tokens", "80").json
    assert small["to_tokens"] <= 80
    named = cli("cite", file, "--kind", "markdown", "--session", "monday").json
    assert named["ref"].startswith("ref:markdown:")
    listed = in_store(cli, lambda store: store.refs(Scope(session="monday")))
    assert [info.ref_id for info in listed] == [named["ref"]]
    linked = cli("cite", cli.write("b.log", LOG + "end\n"), "--url", "https://ci.example/9").json
    info = in_store(cli, lambda store: store.info(Scope(), linked["ref"]))
    assert info is not None
    assert info.meta["url"] == "https://ci.example/9"


def test_secrets_are_flagged_and_the_policy_obeyed(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = cli.write("mail.txt", "Write to ann.miller@corp.com at once.\n" * 100)
    assert cli("cite", file).json["flags"] == ["email"]
    monkeypatch.setenv("HOLDFAST_PRIVACY_POLICY", "mask")
    assert "ann.miller" not in cli("cite", file).json["text"]
    monkeypatch.setenv("HOLDFAST_PRIVACY_POLICY", "refuse")
    refused = cli("cite", file)
    assert (refused.code, refused.out) == (2, "")
    assert "ann.miller" not in refused.err
    assert "mask" in refused.err


def test_short_content_stays_as_it_is_and_is_not_stored(cli: Cli) -> None:
    said = cli("cite", "-", stdin=b"short\n")
    assert said.json["ref"] is None
    assert said.json["text"] == "short\n"
    assert "nothing was stored" in said.err
    assert in_store(cli, lambda store: store.refs(Scope())) == []


def test_bytes_that_are_no_text_are_kept_as_they_are(cli: Cli) -> None:
    data = bytes(range(256)) * 40
    made = cli("cite", "-", stdin=data).json
    stored = in_store(cli, lambda store: store.get(Scope(), made["ref"]))
    assert stored is not None
    assert stored.data == data
    drawn = cli("cite", "-", "--output", "table", stdin=b"\x1b[31mred\x07\n" * 400)
    assert "\x1b" not in drawn.out


def test_the_store_user_and_workspace_are_chosen(cli: Cli) -> None:
    there = ("--store", "sqlite:///there.db", "--user", "ann", "--workspace", "blue")
    ref = cli("cite", cli.write("build.log", LOG), *there).json["ref"]
    assert [each["ref_id"] for each in cli("store", "refs", *there).json] == [ref]
    assert cli("store", "refs", *there[:2]).json == []
    assert cli("store", "refs").json == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nowhere.log",), "Check its name"),
        (("build.log", "--kind", "No Kind"), "lowercase letters"),
        (("build.log", "--max-tokens", "5"), "60"),
        (("build.log", "--store", "mysql://me:pa55@host"), "Use memory:"),
        (("build.log", "--user", ""), "Give 1 to 200 characters"),
    ],
)
def test_errors_say_the_next_step(cli: Cli, arguments: tuple[str, ...], told: str) -> None:
    cli.write("build.log", LOG)
    said = cli("cite", *arguments)
    assert (said.code, said.out) == (2, "")
    assert told in said.err
    assert "pa55" not in said.err
    assert "went well" not in said.err


def test_a_content_over_the_limit_is_refused_not_cut(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_MAX_BODY_BYTES", "2000")
    said = cli("cite", cli.write("build.log", LOG))
    assert said.code == 2
    assert "max_body_bytes" in said.err


def test_a_pipe_of_processes_cites_and_opens(cli: Cli) -> None:
    made = run_process("cite", "-", folder=cli.folder, stdin=LOG.encode())
    ref = json.loads(made.stdout)["ref"]
    assert run_process("expand", ref, "--raw", folder=cli.folder).stdout == LOG.encode()
