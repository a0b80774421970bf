"""The payload of a run: a view of the store that cannot fall out of step with it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import apsw
import msgspec

from holdfast import Holdfast, Scope
from holdfast.cite import CitingRules
from holdfast.compat import ContentStore, Payload, SourceRecord
from holdfast.compat.actions import build_action_citations
from holdfast.fitting import FitOptions
from holdfast.store import Store
from holdfast.store.refs import digest
from tests.compat.made import page, query, search
from tests.store.harness import Opener

ACTIONS = [{"name": n} for n in ("Web Page Content", "Google Custom Search", "Execute SQL Query")]


async def filled(store: Store) -> ContentStore:
    contents = ContentStore(store)
    results = [page(1), search(1), query(1)]
    await build_action_citations(results, ACTIONS, "agent", store=contents, agent_run_id="run")
    return contents


def test_all_sources_of_a_run_are_listed_in_order_with_their_refs(opener: Opener) -> None:
    async def work(store: Store) -> None:
        contents = await filled(store)
        sources = await Payload(contents, "run").sources()
        assert [source.source_type for source in sources] == ["web", "search", "database"]
        assert [source.content_format for source in sources] == ["html", "json", "json"]
        first = sources[0]
        stored = await store.get(Scope(), first.ref_id)
        assert stored is not None
        assert first.source_id == f"src_{stored.info.sha256[:16]}"
        assert first.url == "https://example.com/report/1"
        assert first.content_length == len(stored.data)
        assert first.accessed_at == datetime.fromtimestamp(opener.clock.now, UTC)

    opener.run(work)


def test_records_hold_no_content_and_open_it_on_demand(opener: Opener) -> None:
    async def work(store: Store) -> None:
        payload = Payload(await filled(store), "run")
        sources = await payload.sources()
        assert len(msgspec.json.encode(sources)) < 3_000
        html = page(1)["result"]["Params"][1]["Value"]
        for name in (sources[0].source_id, sources[0].ref_id):
            assert await payload.content(name) == html
        assert await payload.content("src_0123456789abcdef") is None

    opener.run(work)


def test_a_sub_agent_opens_only_what_it_was_given(opener: Opener) -> None:
    async def work(store: Store) -> None:
        payload = Payload(await filled(store), "run")
        web, found, rows = await payload.sources()

        def is_small(source: SourceRecord) -> bool:
            return source.source_type in ("web", "search")

        narrow = payload.only(is_small)
        narrower = narrow.only(lambda source: source.source_type != "web")
        assert await narrow.sources() == [web, found]
        assert await narrower.sources() == [found]
        assert await narrower.content(found.source_id) is not None
        for source in (web, rows):
            assert await narrower.content(source.source_id) is None
            assert source.source_id not in await narrower.listing()

    opener.run(work)


def test_a_payload_has_nothing_of_other_runs_or_users(opener: Opener) -> None:
    async def work(store: Store) -> None:
        payload = Payload(await filled(store), "run")
        [source, *_] = await payload.sources()
        for stranger in (
            Payload(ContentStore(store), "another run"),
            Payload(ContentStore(store, Scope("bob")), "run"),
        ):
            assert await stranger.sources() == []
            assert await stranger.content(source.source_id) is None

    opener.run(work)


def test_cleaning_up_the_run_clears_the_payload(opener: Opener) -> None:
    async def work(store: Store) -> None:
        contents = await filled(store)
        payload = Payload(contents, "run")
        sources = await payload.sources()
        assert len(sources) == 3
        await contents.cleanup_for_agent_run("run")
        assert await payload.sources() == []
        assert await payload.content(sources[0].source_id) is None
        assert await contents.get_content(sources[0].ref_id) is None

    opener.run(work)


def test_what_fit_cites_in_a_run_is_a_source_of_it(opener: Opener) -> None:
    async def work(store: Store) -> None:
        engine = Holdfast(store)
        made = await engine.cite("line of a log\n" * 300, tool="read_log", session="run")
        [source] = await Payload(ContentStore(engine), "run").sources()
        assert (source.ref_id, source.source_type) == (made.ref_id, "storage")

    opener.run(work)


def test_more_sources_than_a_page_are_all_there(opener: Opener) -> None:
    async def work(store: Store) -> None:
        engine = Holdfast(store)
        made = [await engine.cite(f"{n} " * 700, session="run") for n in range(205)]
        sources = await Payload(ContentStore(engine), "run").sources()
        assert [source.ref_id for source in sources] == [each.ref_id for each in made]

    opener.run(work)


def test_the_listing_shows_200_characters_of_each_source(opener: Opener) -> None:
    async def work(store: Store) -> None:
        payload = Payload(await filled(store), "run")
        lines = (await payload.listing()).splitlines()
        assert lines[0] == "Retrieved 3 sources:"
        assert lines[1].startswith("- src_")
        assert lines[1].endswith(": https://example.com/report/1")
        html = page(1)["result"]["Params"][1]["Value"]
        assert lines[2] == f"  Excerpt: {' '.join(html[:200].split())}..."
        assert len(lines) == 7

    opener.run(work)


def test_the_listing_masks_what_the_policy_masks(opener: Opener) -> None:
    async def work(store: Store) -> None:
        engine = Holdfast(store, options=FitOptions(rules=CitingRules(privacy="mask")))
        await engine.cite("Write to ann.miller@corp.com now. " * 100, session="run")
        payload = Payload(ContentStore(engine), "run")
        listing = await payload.listing()
        assert "ann.miller" not in listing
        assert "[email masked]" in listing
        [source] = await payload.sources()
        assert "ann.miller" in (await payload.content(source.source_id) or "")

    opener.run(work)


def test_a_damaged_source_does_not_keep_the_others_from_being_listed(tmp_path: Path) -> None:
    opener = Opener(f"sqlite:///{tmp_path}/store.db")
    opener.run(filled)
    database = apsw.Connection(str(tmp_path / "store.db"))
    sha256 = digest(page(1)["result"]["Params"][1]["Value"].encode())
    database.execute("UPDATE contents SET data = x'00' WHERE sha256 = ?", (sha256,))
    database.close()

    async def work(store: Store) -> None:
        payload = Payload(ContentStore(store), "run")
        listing = await payload.listing()
        assert listing.startswith("Retrieved 2 sources:")
        states = [source.state for source in await payload.sources()]
        assert states == ["damaged", "fresh", "fresh"]

    opener.run(work)
