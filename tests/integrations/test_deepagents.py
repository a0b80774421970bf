"""HoldfastBackend beside deepagents' own, and in its agent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, StateBackend, StoreBackend
from langchain_core.messages import HumanMessage
from langgraph.store.memory import InMemoryStore

from holdfast.integrations._host import Host
from holdfast.integrations.deepagents import HoldfastBackend
from holdfast.integrations.langchain import HoldfastMiddleware
from tests.integrations.story import ANSWER, QUESTION, WINDOW, read_log
from tests.integrations.test_langchain import recounted, refused, scripted


@pytest.fixture(params=["ours", "theirs"])
def backend(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Run checks on both backends: ours must behave like deepagents' own."""
    with Host("memory:") as host:
        if request.param == "ours":
            yield HoldfastBackend(host)
        else:
            yield StoreBackend(store=InMemoryStore(), namespace=lambda _: ("files",))


def test_a_file_is_written_read_by_lines_and_overwritten(backend: Any) -> None:
    assert backend.write("/a/b.txt", "one\ntwo\nthree").path == "/a/b.txt"
    window = backend.read("/a/b.txt", 1, 1)
    assert window.file_data["content"].rstrip("\n") == "two"
    assert (window.start_line, window.end_line, window.next_offset) == (2, 2, 2)
    backend.write("/a/b.txt", "other")
    assert backend.read("/a/b.txt").file_data["content"] == "other"
    assert "not found" in backend.read("/a/c.txt").error


def test_a_text_is_replaced_once_or_everywhere(backend: Any) -> None:
    backend.write("/f", "x y x")
    assert backend.edit("/f", "x", "z").error
    assert backend.edit("/f", "x", "z", replace_all=True).occurrences == 2
    assert backend.edit("/f", "missing", "z").error
    assert backend.edit("/g", "x", "z").error
    assert backend.read("/f").file_data["content"] == "z y z"


def test_folders_are_listed_searched_and_deleted(backend: Any) -> None:
    for path in ("/src/a.py", "/src/deep/b.py", "/notes.md"):
        backend.write(path, f"import {path}\n")
    assert [e["path"] for e in backend.ls("/src").entries] == ["/src/a.py", "/src/deep/"]
    paths = sorted(m["path"] for m in backend.glob("*.py").matches)
    assert paths == ["/src/a.py", "/src/deep/b.py"]
    matches = backend.grep("import", path="/src", max_count=1)
    assert (len(matches.matches), matches.truncated) == (1, True)
    assert backend.delete("/src").path == "/src"
    assert backend.delete("/src").error
    assert [e["path"] for e in backend.ls("/").entries] == ["/notes.md"]


def test_bytes_come_back_as_they_were(backend: Any) -> None:
    data = bytes(range(256))
    assert backend.upload_files([("/a.bin", data), ("/b.txt", "Ü".encode())])[0].error is None
    downloads = backend.download_files(["/a.bin", "/b.txt", "/c"])
    assert [d.content for d in downloads] == [data, "Ü".encode(), None]
    assert downloads[2].error == "file_not_found"


def test_the_same_holds_for_who_awaits(backend: Any) -> None:
    async def main() -> None:
        await backend.awrite("/a", "one\ntwo")
        assert (await backend.aread("/a", 1, 1)).file_data["content"] == "two"
        assert (await backend.aedit("/a", "two", "three")).occurrences == 1
        assert [e["path"] for e in (await backend.als("/")).entries] == ["/a"]
        assert (await backend.agrep("three")).matches[0]["line"] == 2
        assert (await backend.aglob("*")).matches[0]["path"] == "/a"
        assert (await backend.adelete("/a")).error is None

    asyncio.run(main())


def test_every_ref_is_a_file_that_nobody_can_change() -> None:
    with Host("memory:") as host:
        citation = host.run(lambda engine: engine.cite(read_log(3)))
        mounted = CompositeBackend(StateBackend(), routes={"/holdfast/": HoldfastBackend(host)})
        path = f"/holdfast/refs/{citation.ref_id}"
        assert [e["path"] for e in mounted.ls("/holdfast/refs").entries or ()] == [path]
        line = mounted.read(path, 122, 1).file_data
        assert line is not None
        assert line["content"].rstrip("\n") == read_log(3).splitlines()[122]
        [whole] = mounted.download_files([path])
        assert whole.content == read_log(3).encode()
        assert mounted.write(path, "other").error
        assert mounted.edit(path, "INFO", "other").error
        assert mounted.delete(path).error

        async def errors() -> list[str | None]:
            return [
                (await mounted.awrite(path, "other")).error,
                (await mounted.aedit(path, "INFO", "other")).error,
                (await mounted.adelete(path)).error,
            ]

        assert all("never changed" in str(error) for error in asyncio.run(errors()))
        assert mounted.download_files([path])[0].content == read_log(3).encode()
        assert "not found" in str(mounted.read("/holdfast/refs/ref:log:0000000000000000").error)


def test_a_deep_agent_ends_in_the_same_answer_as_without_a_window() -> None:
    model = scripted()
    # deepagents' own summaries would read the whole state at their own window.
    model.profile = {"max_input_tokens": 10_000_000}
    with Host("memory:") as host:
        mounted = CompositeBackend(StateBackend(), routes={"/holdfast/": HoldfastBackend(host)})
        agent = create_deep_agent(
            model,
            [read_log],
            middleware=[HoldfastMiddleware(host, limit=WINDOW)],
            backend=mounted,
        )
        result = agent.invoke({"messages": [HumanMessage(QUESTION)]}, {"recursion_limit": 1000})
    assert result["messages"][-1].text == ANSWER
    tools = model.offered[-1]
    assert max(recounted(call, tools) for call in model.calls) <= WINDOW
    assert [why for call in model.calls for why in refused(call)] == []
