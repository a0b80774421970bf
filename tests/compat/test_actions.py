"""Results of actions in the conversation: long ones cited, short ones whole, none lost."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Holdfast, HoldfastError, Settings
from holdfast.cite import CitingRules
from holdfast.compat import ContentStore
from holdfast.compat.action_results import (
    detect_source_type,
    extract_content_from_action_result,
)
from holdfast.compat.actions import (
    action_message,
    build_action_citations,
    build_action_summaries,
)
from holdfast.fitting import FitOptions
from holdfast.store.opening import open_memory
from tests.compat.made import failure, page, query, result, search

FETCH = {"name": "Web Page Content"}


def run(
    results: list[dict[str, Any]],
    actions: list[dict[str, Any]],
    store: ContentStore | None = None,
    **how: Any,
) -> tuple[list[dict[str, Any]], str]:
    """The entries as the conversation holds them, and the prefix before them."""
    message = asyncio.run(
        action_message(results, actions, "agent", settings=Settings(**how), store=store or fresh())
    )
    assert message["role"] == "user"
    prefix, _, entries = message["content"].partition("\n")
    return json.loads(entries), prefix


def fresh(**rules: Any) -> ContentStore:
    return ContentStore(Holdfast(open_memory(), options=FitOptions(rules=CitingRules(**rules))))


def opened(store: ContentStore, ref: str) -> str:
    found = asyncio.run(store.get_content(ref))
    assert found is not None
    return found.full_content


def test_a_long_content_is_stored_and_cited() -> None:
    store, given = fresh(), page(1)
    html = given["result"]["Params"][1]["Value"]
    [entry], prefix = run([given], [FETCH], store)
    ref = entry["contentId"]
    assert prefix == "Action results with citations:"
    assert opened(store, ref) == html
    assert entry == {
        "actionName": "Web Page Content",
        "success": True,
        "contentId": ref,
        "excerpt": {
            "text": entry["excerpt"]["text"],
            "location": "condensed",
            "totalLength": len(html),
            "sourceUrl": "https://example.com/report/1",
        },
        "resultCode": "SUCCESS",
        "message": f"Content stored ({len(html)} chars). Citation ID: {ref}",
        "params": [
            {"Name": "URL", "Type": "Output", "Value": "https://example.com/report/1"},
            {"Name": "StatusCode", "Type": "Output", "Value": 200},
        ],
    }


def test_the_excerpt_is_what_the_condenser_chose() -> None:
    text = run([page(1)], [FETCH])[0][0]["excerpt"]["text"]
    assert "Report 1" in text
    assert "<!DOCTYPE" not in text
    log = "\n".join(f"2024-05-01 12:00:{n % 60:02} INFO crate {n} moved" for n in range(300))
    log += "\n2024-05-01 12:06:00 ERROR crane 7 is stuck\nexit code 3"
    shown = run([result("Content", log)], [{"name": "Run Command"}])[0][0]["excerpt"]["text"]
    assert "exit code 3" in shown
    assert "ERROR crane 7 is stuck" in shown
    assert "expand_ref" not in shown
    assert len(shown) <= 500


def test_the_excerpt_tears_no_link() -> None:
    hits = run([search(1)], [{"name": "Google Custom Search"}])[0][0]["excerpt"]["text"]
    links = {item["link"] for item in search(1)["result"]["Params"][1]["Value"]["items"]}
    shown = re.findall(r"https://\S+", hits)
    assert shown
    assert set(shown) <= links


@pytest.mark.parametrize(("length", "cited"), [(1000, False), (1001, True)])
def test_the_threshold_is_a_thousand_characters(length: int, cited: bool) -> None:
    [entry], _ = run([result("Content", "word " * (length // 5) + "!" * (length % 5))], [FETCH])
    assert ("contentId" in entry) is cited
    assert any(p["Name"] == "Content" for p in entry.get("params", ())) is not cited


def test_a_short_result_stays_whole_without_its_inputs() -> None:
    [entry], _ = run([result("Results", ["a", "b"], "Two found", Total=2)], [{"name": "Search"}])
    assert entry == {
        "actionName": "Search",
        "success": True,
        "resultCode": "SUCCESS",
        "message": "Two found",
        "params": [
            {"Name": "Results", "Type": "Output", "Value": ["a", "b"]},
            {"Name": "Total", "Type": "Output", "Value": 2},
        ],
    }


def test_a_failure_keeps_its_error_text() -> None:
    [entry], _ = run([failure("HTTP 503 from https://example.com")], [FETCH])
    assert (entry["success"], entry["message"]) == (False, "HTTP 503 from https://example.com")
    assert entry["resultCode"] == "FAILED"
    error = "line of a long trace\n" * 100
    assert run([failure(error)], [FETCH])[0][0]["message"] == error


def test_what_a_failure_leaves_behind_is_cited_beside_its_error() -> None:
    given = result("Content", "partial page " * 200) | {"success": False, "error": "cut off"}
    [entry], _ = run([given], [FETCH])
    assert entry["message"].startswith("cut off Content stored (2600 chars).")


def test_the_result_code_of_an_action_is_kept() -> None:
    given = result("Content", "x " * 600)
    given["result"]["Result"]["ResultCode"] = "PARTIAL"
    assert run([given], [FETCH])[0][0]["resultCode"] == "PARTIAL"
    del given["result"]["Result"]
    assert run([given], [FETCH])[0][0]["resultCode"] == "SUCCESS"


def test_long_messages_and_parameters_of_other_names_are_cited_too() -> None:
    store = fresh()
    given = result("Content", "short page", "m " * 700, Markdown="# Long\n" * 300)
    [entry], _ = run([given], [FETCH], store)
    assert "params" not in entry
    assert json.loads(opened(store, entry["contentId"])) == {
        "Content": "short page",
        "Markdown": "# Long\n" * 300,
        "Message": "m " * 700,
    }


def test_what_was_retrieved_is_never_cited_again() -> None:
    given = result("Other", 1, "the retrieved content " * 200)
    [entry], _ = run([given], [{"name": "Retrieve Stored Content"}])
    assert entry["message"] == "the retrieved content " * 200


def test_what_may_not_be_stored_stays_and_what_is_masked_does_not_show() -> None:
    text = "Write to ann.miller@corp.com. " * 100
    strict = fresh(privacy="refuse")
    [entry], _ = run([result("Content", text)], [FETCH], strict)
    assert entry["params"][0]["Value"] == text
    masking = fresh(privacy="mask")
    [entry], _ = run([result("Content", text)], [FETCH], masking)
    assert "ann.miller" not in json.dumps(entry)
    assert opened(masking, entry["contentId"]) == text


def test_without_citations_everything_stays_as_it_was() -> None:
    results = [page(1), failure("no")]
    entries, prefix = run(results, [FETCH, FETCH], enable_content_citations=False)
    assert prefix == "Action results:"
    assert entries[0]["params"][0]["Value"] == results[0]["result"]["Params"][1]["Value"]
    assert len(build_action_summaries(results, [FETCH, FETCH])) == 2


def test_the_setting_is_read_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, prefix in (("false", "Action results:"), ("true", "Action results with citations:")):
        monkeypatch.setenv("HOLDFAST_ENABLE_CONTENT_CITATIONS", value)
        message = asyncio.run(action_message([page(1)], [FETCH], "agent", store=fresh()))
        assert message["content"].startswith(prefix + "\n")


def test_contents_belong_to_the_run_and_else_to_the_agent() -> None:
    store = fresh()

    async def work() -> None:
        await build_action_citations([page(1)], [FETCH], "agent", store=store, agent_run_id="run")
        await build_action_citations([page(2)], [FETCH], "agent", store=store)
        assert await store.cleanup_for_agent_run("run") == 1
        assert await store.cleanup_for_agent_run("agent") == 1

    asyncio.run(work())


def test_without_a_store_the_one_of_the_process_is_used() -> None:
    own = fresh()
    ContentStore.set_instance(own)
    try:
        [entry] = asyncio.run(build_action_citations([page(1)], [FETCH], "agent"))
    finally:
        ContentStore.set_instance(None)
    assert opened(own, entry.content_id)


def test_results_without_their_actions_are_refused() -> None:
    with pytest.raises(HoldfastError, match="1 results of 0 actions"):
        asyncio.run(build_action_citations([page(1)], [], "agent", store=fresh()))
    with pytest.raises(HoldfastError, match="1 results of 2 actions"):
        build_action_summaries([page(1)], [FETCH, FETCH])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Web Page Content", "web"),
        ("Google Custom Search", "search"),
        ("webSearch", "search"),
        ("Execute SQL Query", "database"),
        ("Get Entity Metadata", "database"),
        ("RunView", "database"),
        ("Search Database Records", "database"),
        ("Read File", "storage"),
        ("ListS3Bucket", "storage"),
        ("", "web"),
    ],
)
def test_the_words_of_a_name_tell_the_source(name: str, kind: str) -> None:
    assert detect_source_type(name) == kind


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("Entities", [{"Name": "Users"}], "entity_metadata"),
        ("Results", [{"a": 1}], "json"),
        ("Content", "<!DOCTYPE html><p>x", "html"),
        ("Content", '{"a": 1}', "json"),
        ("Content", "# Title", "markdown"),
    ],
)
def test_the_type_of_a_content_is_told(name: str, value: Any, kind: str) -> None:
    found = extract_content_from_action_result(result(name, value), FETCH)
    assert found is not None
    assert found.content_type == kind


def test_the_address_is_found_among_inputs_too() -> None:
    given = result("Content", "x")
    given["result"]["Params"][0] = {"Name": "URL", "Type": "Input", "Value": "https://a.example"}
    found = extract_content_from_action_result(given, FETCH)
    assert found is not None
    assert found.source_url == "https://a.example"
    found = extract_content_from_action_result(
        result("Content", "x"), FETCH | {"params": {"url": "https://b.example"}}
    )
    assert found is not None
    assert found.source_url == "https://b.example"


VALUES = st.one_of(
    st.text(max_size=40), st.integers(), st.sampled_from(["long " * 300, ["row"] * 400, None])
)
PARAMS = st.lists(
    st.fixed_dictionaries({
        "Name": st.sampled_from(["Content", "Results", "Message", "Markdown", "Total"]),
        "Type": st.sampled_from(["Input", "Output", "Both"]),
        "Value": VALUES,
    }),
    max_size=4,
)  # fmt: skip
RESULTS = st.fixed_dictionaries({
    "success": st.booleans(),
    "result": st.one_of(st.none(), st.fixed_dictionaries({
        "Params": PARAMS, "Message": st.sampled_from(["", "done", "told " * 300]),
    })),
    "error": st.sampled_from([None, "broke", "trace " * 1400]),
})  # fmt: skip


def in_store(value: Any, stored: str) -> bool:
    """Whether a value is the stored content, or one of several in it."""
    if stored == value or stored == json.dumps(value):
        return True
    parts = json.loads(stored) if stored.startswith("{") else {}
    return value in parts.values()


@settings(max_examples=100)
@given(st.lists(RESULTS, max_size=3))
def test_results_keep_their_places_and_no_output_is_lost(results: list[dict[str, Any]]) -> None:
    store = fresh()
    actions = [{"name": f"Action {n}"} for n in range(len(results))]
    entries, _ = run(results, actions, store)
    assert [entry["actionName"] for entry in entries] == [action["name"] for action in actions]
    for one, entry in zip(results, entries, strict=True):
        stored = opened(store, entry["contentId"]) if "contentId" in entry else ""
        inner = one["result"] or {"Params": (), "Message": ""}
        for param in inner["Params"]:
            if param["Type"] != "Input" and param["Value"] is not None:
                assert in_store(param["Value"], stored) or param in entry["params"]
        if not one["success"] and one["error"]:
            assert one["error"] in entry["message"] or in_store(one["error"], stored)
        if len(inner["Message"]) > 1000:
            assert in_store(inner["Message"], stored)
        assert len(json.dumps(entry)) < 20_000


def test_characters_cost_no_escapes_and_half_ones_do_no_harm() -> None:
    for text, shown in (("größer 量子", "größer 量子"), ("half \ud83d", "half \\ud83d")):
        message = asyncio.run(
            action_message([result("Note", text)], [FETCH], "agent", settings=Settings())
        )
        assert shown in message["content"]
        assert message["content"].encode()


def test_values_of_any_type_can_be_told() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    [entry], _ = run([result("When", at, Path=PurePosixPath("/a"))], [FETCH])
    assert [param["Value"] for param in entry["params"]] == ["2026-01-01T00:00:00Z", "/a"]


def test_searches_and_queries_are_cited_as_what_they_are() -> None:
    store = fresh()
    names = ["Google Custom Search", "Execute SQL Query"]
    entries, _ = run([search(1), query(1)], [{"name": name} for name in names], store)
    kinds = [asyncio.run(store.get_content(entry["contentId"])) for entry in entries]
    assert [kind.source_type for kind in kinds if kind] == ["search", "database"]
