"""Preserved thinking as the upstream enforces it: each block is bound to the conversation before
it.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.surfaces.proxy.gatekeeper import KEY
from tests.surfaces.proxy.harness import Answered, ask
from tests.surfaces.proxy.spoken import call, says, text, thinking
from tests.surfaces.proxy.upstream import Upstream

MODEL = "claude-sonnet-5-5"
BETA = "thinking-binding-controls-2026-08-01"
TOOL = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}
BOUND = "The block is bound to a different conversation."
SCRIPT = (
    says(thinking("First."), call("look", {}, "a")),
    says(thinking("Second."), call("look", {}, "b")),
    says(thinking("Third."), text("Seen.")),
)


class Conversation:
    """A client of Claude that keeps its history, and can be made to corrupt it."""

    def __init__(self, upstream: Upstream) -> None:
        self.url = f"{upstream.url}/v1/messages"
        self.body: dict[str, Any] = {
            "model": MODEL,
            "max_tokens": 100,
            "system": "Be brief.",
            "tools": [TOOL],
            "messages": [{"role": "user", "content": "Go."}],
        }
        self.headers = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}

    def go(self) -> Answered:
        answered = ask(self.url, self.body, self.headers)
        if answered.status == 200:
            content = answered.json["content"]
            results = [
                {"type": "tool_result", "tool_use_id": block["id"], "content": "seen"}
                for block in content
                if block["type"] == "tool_use"
            ]
            self.body["messages"] += [
                {"role": "assistant", "content": content},
                {"role": "user", "content": results or "And?"},
            ]
        return answered

    def thoughts(self) -> list[list[Any]]:
        """The contents that begin with a thinking block."""
        contents = [message["content"] for message in self.body["messages"]]
        return [c for c in contents if isinstance(c, list) and c[0]["type"] == "thinking"]


@pytest.fixture
def story() -> Any:
    """A conversation in which the model thought three times."""
    with Upstream(*SCRIPT) as upstream:
        conversation = Conversation(upstream)
        assert [conversation.go().status for _ in SCRIPT] == [200, 200, 200]
        upstream.always = says(text("Fine."))
        yield conversation


def test_an_unchanged_history_is_taken(story: Conversation) -> None:
    assert story.go().status == 200


def test_cache_marks_are_not_compared(story: Conversation) -> None:
    first = story.body["messages"][0]
    first["content"] = [
        {"type": "text", "text": first["content"], "cache_control": {"type": "ephemeral"}}
    ]
    assert story.go().status == 200


@pytest.mark.parametrize("where", ["system", "tools", "messages"])
def test_whatever_changes_before_a_thought_breaks_it(story: Conversation, where: str) -> None:
    if where == "system":
        story.body["system"] = "Be very brief."
    elif where == "tools":
        story.body["tools"].append({**TOOL, "name": "expand_ref"})
    else:
        story.body["messages"][2]["content"][0]["content"] = "cut"
    answered = story.go()
    assert answered.status == 400
    assert BOUND in answered.json["error"]["message"]


def test_thinking_may_be_taken_from_the_front_only(story: Conversation) -> None:
    first, second, _ = story.thoughts()
    del first[0]
    assert story.go().status == 200
    del story.body["messages"][-2:]
    first.insert(0, {"type": "thinking", "thinking": "First.", "signature": "forged"})
    assert story.go().status == 400
    del first[0], second[0]
    assert story.go().status == 200


def test_thinking_taken_from_the_middle_is_missed(story: Conversation) -> None:
    _, second, _ = story.thoughts()
    del second[0]
    assert BOUND in story.go().json["error"]["message"]


def test_what_does_not_match_is_dropped_if_asked_for(story: Conversation) -> None:
    story.body["system"] = "Be very brief."
    binding = {"prefix_mismatch_behavior": "drop_block"}
    story.body["thinking"] = {"type": "adaptive", "block_binding": binding}
    assert "Extra inputs" in story.go().json["error"]["message"]
    story.headers["anthropic-beta"] = BETA
    answered = story.go()
    assert answered.status == 200
    dropped = answered.json["input_transformations"]
    assert [entry["path"] for entry in dropped] == [f"messages.{n}.content.0" for n in (1, 3, 5)]


def test_models_that_bind_nothing_take_a_changed_history(story: Conversation) -> None:
    story.body |= {"model": "claude-sonnet-4-5", "system": "Be very brief."}
    assert story.go().status == 200
