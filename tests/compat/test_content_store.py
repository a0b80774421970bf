"""ContentStore: contents of runs, exact, excerpted and cleaned up."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Holdfast, Scope
from holdfast.cite import CitingRules
from holdfast.compat import ContentExcerpt, ContentStore, Payload
from holdfast.compat.content_store import StoredContent
from holdfast.errors import PrivacyError
from holdfast.fitting import FitOptions
from holdfast.store import Store
from holdfast.store.opening import open_memory
from holdfast.store.refs import digest, parse
from tests.compat.made import prose
from tests.store.harness import Opener

LONG = prose(random.Random(1), 20_000)


def content(text: str = LONG, run: str = "run-1") -> StoredContent:
    return StoredContent(
        full_content=text,
        source_type="web",
        source_url="https://example.com/a",
        content_type="markdown",
        metadata={"title": "Café", "pages": [1, 2]},
        agent_run_id=run,
    )


@pytest.mark.parametrize("text", [LONG, "short", ""])
def test_what_was_stored_comes_back_with_all_that_was_said_of_it(opener: Opener, text: str) -> None:
    async def work(store: Store) -> None:
        contents = ContentStore(store)
        given = content(text)
        ref = await contents.store_content(given)
        found = await contents.get_content(ref)
        assert found is not None
        assert found.id == ref
        assert found.created_at == datetime.fromtimestamp(opener.clock.now, UTC)
        assert found.content_length == len(text)
        for name in StoredContent.__struct_fields__:
            if name not in ("id", "created_at"):
                assert getattr(found, name) == getattr(given, name)

    opener.run(work)


def test_older_forms_of_an_id_are_understood(opener: Opener) -> None:
    async def work(store: Store) -> None:
        contents = ContentStore(store)
        name = parse(await contents.store_content(content()))
        assert name is not None
        for form in (f"content_{name.digits}", f"src_{name.digits}", digest(LONG.encode())):
            found = await contents.get_content(form)
            assert found is not None, form
            assert found.full_content == LONG
        assert await contents.get_content("content_0123456789abcdef") is None
        assert await contents.get_content("no id at all") is None

    opener.run(work)


@settings(max_examples=150)
@given(st.text(max_size=3_000), st.dictionaries(st.text(max_size=9), st.text(max_size=20)))
def test_any_text_and_metadata_come_back_exact(text: str, metadata: dict[str, str]) -> None:
    async def work() -> None:
        contents = ContentStore(open_memory())
        ref = await contents.store_content(StoredContent(full_content=text, metadata=metadata))
        found = await contents.get_content(ref)
        assert found is not None
        assert (found.full_content, found.metadata) == (text, metadata)

    asyncio.run(work())


def test_a_lone_surrogate_and_odd_metadata_are_no_obstacle(opener: Opener) -> None:
    async def work(store: Store) -> None:
        contents = ContentStore(store)
        odd = {"at": datetime(2026, 1, 1, tzinfo=UTC), "half": "\ud83d"}
        given = StoredContent(full_content="half \ud83d" * 400, metadata=odd)
        found = await contents.get_content(await contents.store_content(given))
        assert found is not None
        assert found.full_content == given.full_content
        assert found.metadata == {"at": "2026-01-01 00:00:00+00:00", "half": "\ud83d"}

    opener.run(work)


def test_bytes_that_another_way_in_stored_can_be_read(opener: Opener) -> None:
    async def work(store: Store) -> None:
        made = await Holdfast(store).cite(b"\xff\xfe not text\n" * 400)
        found = await ContentStore(store).get_content(made.ref_id)
        assert found is not None
        assert found.full_content.startswith("\ufffd\ufffd not text")
        assert found.source_type == "storage"

    opener.run(work)


# --- excerpts ------------------------------------------------------------------------------------

PARTS = [
    "# Introduction",
    prose(random.Random(2), 6_000),
    "# Timeline",
    "The commercialisation timeline points to 2031 for zebra-class machines.",
    prose(random.Random(3), 6_000),
    "# Costs",
    "A walrus-grade cryostat costs 4.2 million.",
    prose(random.Random(4), 6_000),
]


def excerpts(criteria: list[str], **how: int) -> list[ContentExcerpt]:
    async def work() -> list[ContentExcerpt]:
        contents = ContentStore(open_memory())
        ref = await contents.store_content(content("\n\n".join(PARTS)))
        return await contents.extract_excerpts(ref, criteria, **how)

    return asyncio.run(work())


def test_every_criterion_gets_its_best_part_with_place_and_reason() -> None:
    found = excerpts(["zebra-class machines", " walrus-grade cryostat "])
    assert "2031" in found[0].excerpt
    assert "4.2 million" in found[1].excerpt
    assert "zebra-class machines" in found[0].relevance
    assert "walrus-grade cryostat" in found[1].relevance
    for each in found:
        assert each.excerpt_location
        assert each.content_id.startswith("ref:")
        assert (each.source_type, each.source_url) == ("web", "https://example.com/a")


def test_criteria_that_nothing_meets_give_nothing_and_none_give_the_beginning() -> None:
    assert excerpts(["xylophone"]) == []
    [head] = excerpts([" ", ""])
    assert head.excerpt.startswith("# Introduction")
    assert head.excerpt_location == "beginning"


@given(st.lists(st.sampled_from([*PARTS[3].split(), *PARTS[6].split()]), max_size=8),
       st.integers(1, 900))  # fmt: skip
@settings(max_examples=40)
def test_no_excerpt_is_longer_than_asked_or_no_part_of_the_content(
    criteria: list[str], most: int
) -> None:
    whole = "\n\n".join(PARTS)
    found = excerpts(criteria, max_excerpt_length=most)
    assert len(found) <= max(5, len(set(criteria)))
    for each in found:
        assert len(each.excerpt) <= most
        assert each.excerpt.strip("…") in whole


def test_an_unknown_id_has_no_excerpts(opener: Opener) -> None:
    async def work(store: Store) -> None:
        assert await ContentStore(store).extract_excerpts("content_0123456789abcdef", ["a"]) == []

    opener.run(work)


def test_the_retrieval_action_finds_what_was_cited(opener: Opener) -> None:
    async def work(store: Store) -> None:
        contents = ContentStore(store)
        ref = await contents.store_content(content("\n\n".join(PARTS)))
        asked = {"ContentID": ref, "ExcerptOnly": True, "SearchTerms": "zebra-class machines"}
        given = await Payload(contents, content().agent_run_id).retrieve(asked, count=len)
        assert "2031" in given.message
        assert '"sourceType": "web"' in given.message
        assert '"sourceUrl": "https://example.com/a"' in given.message

    opener.run(work)


# --- runs ----------------------------------------------------------------------------------------


def test_cleaning_up_a_run_takes_what_only_that_run_uses(opener: Opener) -> None:
    async def work(store: Store) -> None:
        contents = ContentStore(store)
        mine = await contents.store_content(content(LONG + "mine", "run-1"))
        shared = await contents.store_content(content(LONG, "run-1"))
        assert await contents.store_content(content(LONG, "run-2")) == shared
        other = await contents.store_content(content(LONG + "other", "run-2"))
        assert await contents.cleanup_for_agent_run("run-1") == 1
        assert await contents.get_content(mine) is None
        assert await contents.get_content(shared) is not None
        assert await contents.get_content(other) is not None
        assert await contents.cleanup_for_agent_run("run-1") == 0
        assert await contents.cleanup_for_agent_run("run-2") == 2
        assert await contents.get_content(shared) is None

    opener.run(work)


def test_a_closed_run_stays_for_an_hour(opener: Opener) -> None:
    async def work(store: Store) -> None:
        contents = ContentStore(store)
        closed = await contents.store_content(content(LONG, "closed"))
        running = await contents.store_content(content(LONG + "!", "running"))
        await contents.close_run("closed")
        opener.clock.advance(3599)
        assert await contents.sweep() == 0
        opener.clock.advance(2)
        assert await contents.sweep() == 1
        assert await contents.get_content(closed) is None
        assert await contents.get_content(running) is not None

    opener.run(work)


def test_reading_a_content_does_not_make_it_belong_to_the_reader(opener: Opener) -> None:
    async def work(store: Store) -> None:
        ref = await ContentStore(store).store_content(content(LONG, "run-1"))
        reader = ContentStore(store, Scope(session="run-2"))
        assert await reader.get_content(ref) is not None
        assert await reader.cleanup_for_agent_run("run-1") == 1

    opener.run(work)


def test_nothing_crosses_users(opener: Opener) -> None:
    async def work(store: Store) -> None:
        ref = await ContentStore(store, Scope("ann")).store_content(content())
        stranger = ContentStore(store, Scope("bob"))
        assert await stranger.get_content(ref) is None
        assert await stranger.extract_excerpts(ref, ["quantum"]) == []
        assert await stranger.cleanup_for_agent_run("run-1") == 0
        assert await ContentStore(store, Scope("ann")).get_content(ref) is not None

    opener.run(work)


def test_the_policy_of_the_engine_holds(opener: Opener) -> None:
    secret = "mail ann.miller@corp.com today. "

    async def work(store: Store) -> None:
        strict = ContentStore(
            Holdfast(store, options=FitOptions(rules=CitingRules(privacy="refuse")))
        )
        for text in (secret, secret * 100):
            with pytest.raises(PrivacyError):
                await strict.store_content(content(text))
        assert await store.refs(Scope()) == []
        ref = await ContentStore(store).store_content(content(secret))
        info = await store.info(Scope(), ref)
        assert info is not None
        assert info.flags

    opener.run(work)


def test_the_default_store_is_one_and_can_be_replaced() -> None:
    ContentStore.set_instance(None)
    try:
        first = ContentStore.get_instance()
        assert ContentStore.get_instance() is first
        own = ContentStore(open_memory())
        ContentStore.set_instance(own)
        assert ContentStore.get_instance() is own
    finally:
        ContentStore.set_instance(None)
    assert ContentStore.get_instance() is not first


def test_no_representation_holds_content() -> None:
    assert "quantum" not in repr(content("quantum" * 9))
    assert all("zebra" not in repr(each) for each in excerpts(["zebra-class"]))
