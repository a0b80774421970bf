"""A session's requests fitted differently: their cost, and the text that was hidden from the
model.
"""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.engine.session_replay import ReplayResult, Way, replay
from holdfast.store.opening import open_memory
from holdfast.tokens import count
from holdfast.wire import Conversation, read

MODEL = "gpt-4o"
SECRET_LINE = "the lighthouse keeper counted 4711 gannets on the eastern skerry"


def log(seed: int, lines: int = 400) -> str:
    chance = random.Random(seed)
    text = [f"{n} row {chance.getrandbits(64):016x} stored" for n in range(lines)]
    text[lines // 2] = SECRET_LINE
    return "\n".join(text)


def conversation(messages: list[dict[str, Any]]) -> Conversation:
    body = {"model": MODEL, "messages": messages, "tools": []}
    return read(json.dumps(body).encode(), "openai-chat")


def session(said: str) -> list[Conversation]:
    """Two requests: a long result, then an answer in the model's words and another question."""
    call = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    first: list[dict[str, Any]] = [
        {"role": "user", "content": "What does the log say?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": log(1)},
    ]
    second = [
        *first,
        {"role": "assistant", "content": said},
        {"role": "user", "content": "And what else?"},
    ]
    return [conversation(first), conversation(second)]


def told(requests: list[Conversation], way: Way | None) -> ReplayResult:
    engine = Holdfast(open_memory())
    return asyncio.run(replay(engine, requests, MODEL, way))


def test_as_the_client_asked_nothing_is_hidden_and_all_is_counted() -> None:
    requests = session(f"It says that {SECRET_LINE}.")
    replayed = told(requests, None)
    counted = [count(request, model=MODEL).tokens for request in requests]
    assert (replayed.requests, replayed.tokens) == (2, sum(counted))
    assert replayed.largest == max(counted)
    assert (replayed.cited, replayed.folded, replayed.needed, replayed.refused) == (0, 0, 0, 0)
    assert replayed.kept == pytest.approx(1.0, abs=0.01)


def test_what_was_hidden_and_written_word_for_word_counts_as_needed() -> None:
    requests = session(f"It says that {SECRET_LINE}.")
    always = told(requests, Way(policy="always"))
    assert always.cited == 1
    assert always.tokens < told(requests, Way(policy="never")).tokens
    assert always.needed == 1
    assert told(requests, Way(policy="never")).needed == 0
    # The model's own words are no need.
    assert told(session("It says nothing of interest at all, as far as I see."),
                Way(policy="always")).needed == 0  # fmt: skip


def test_the_cache_makes_what_was_sent_before_cheaper() -> None:
    requests = session("Nothing of interest.")
    replayed = told(requests, Way(policy="never"))
    plain = 2.5e-6 * replayed.tokens
    assert replayed.cost is not None
    assert 0.5 * plain < replayed.cost < plain


def test_a_request_that_cannot_fit_is_refused_and_the_others_go_on() -> None:
    long_question = "Which of these is right? " + "no, not that one; " * 100
    requests = [*session("Nothing."), conversation([{"role": "user", "content": long_question}])]
    replayed = told(requests, Way(policy="always", limit=600))
    assert replayed.refused == 0
    replayed = told(requests, Way(policy="always", limit=150))
    assert replayed.refused >= 1
    assert replayed.requests + replayed.refused == 3
    assert replayed.largest <= 150


def test_turns_can_be_assembled_instead() -> None:
    messages: list[dict[str, Any]] = []
    requests = []
    for n in range(40):
        messages.append(
            {"role": "user", "content": f"Question {n}: " + f"what of topic {n}? " * 20}
        )
        requests.append(conversation(list(messages)))
        messages.append({"role": "assistant", "content": f"Topic {n} is fine. " * 20})
    fitted = told(requests, Way())
    assembled = told(requests, Way(mode="assemble", limit=1_000))
    assert assembled.largest <= 1_000 < fitted.largest
    assert assembled.folded > 0
