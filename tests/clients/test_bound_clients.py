"""Clients whose history is bound: held by the provider under an id, or signed with its thinking.

At the models' own windows, where long results are cited and opened again, and in windows so small
that the history must be folded. The upstream judges every request by its own rules.
"""

from __future__ import annotations

import openai
import pytest

from holdfast.store.refs import REF
from tests.clients.frameworks import CHAINED, PRESERVED
from tests.clients.story import ANSWERS, Reader
from tests.clients.test_frameworks import NATIVE, proxied, window_of
from tests.surfaces.proxy.harness import running_proxy
from tests.surfaces.proxy.upstream import Upstream

pytestmark = [
    pytest.mark.slow,  # the frameworks take seconds to import
    pytest.mark.filterwarnings("ignore"),  # only our own warnings are errors
]


@pytest.mark.parametrize("name", CHAINED)
def test_a_client_may_send_only_what_is_new(name: str) -> None:
    """openai-agents with `previous_response_id` (issue 10, 4.1)."""
    answers, upstream = proxied(CHAINED[name], Reader(), NATIVE)
    assert answers == ANSWERS
    assert any(REF.search(got.texts) for got in upstream.requests)
    # Citations stay in the provider's history, and tools do not: each request includes expand_ref,
    # from the first on.
    assert all("expand_ref" in got.tools for got in upstream.requests)


@pytest.mark.parametrize("name", CHAINED)
def test_what_the_provider_holds_and_cannot_take_is_told_in_its_own_words(name: str) -> None:
    """Nobody but the provider can fold it: the client must see the error that it knows."""
    with Upstream(window=window_of(name)) as upstream:
        upstream.always = Reader()
        settings = {"request_limit": window_of(name)}
        with (
            running_proxy(settings, upstream.url) as proxy,
            pytest.raises(openai.BadRequestError) as refused,
        ):
            CHAINED[name](proxy.url)
    assert refused.value.code == "context_length_exceeded"
    [why] = upstream.refused
    assert why in refused.value.message


@pytest.mark.parametrize("window", ["native", "folding"])
@pytest.mark.parametrize("name", PRESERVED)
def test_an_edit_leaves_no_thought_bound_to_another_conversation(name: str, window: str) -> None:
    """Preserved thinking (issue 10, 4.8)."""
    size = NATIVE if window == "native" else window_of(name)
    answers, upstream = proxied(PRESERVED[name], Reader(), size)
    assert answers == ANSWERS
    if window == "native":  # a citation alone costs no thought
        thoughts = [got.body.count(b'"signature"') for got in upstream.requests]
        assert thoughts == list(range(len(thoughts)))


@pytest.mark.parametrize("window", [2_200, 3_100, 3_250, 3_550])
def test_room_made_in_mid_answer_leaves_no_thought_either(window: int) -> None:
    """Here the history is folded while the model opens an earlier fold (4.6)."""
    answers, _ = proxied(PRESERVED["pydantic-ai"], Reader(), window)
    assert answers == ANSWERS
