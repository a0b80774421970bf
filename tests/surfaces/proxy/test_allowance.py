"""Daily limits: the next request of a key is refused, other keys' requests are not."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pytest

from holdfast.settings import DailyLimit, Settings
from holdfast.store import Scope
from holdfast.store.opening import open_memory
from holdfast.store.usage_ledger import Amount
from holdfast.surfaces.proxy.allowance import AllowanceError, Allowances
from tests.fitting.test_citing import chat
from tests.surfaces.proxy.gatekeeper import KEY
from tests.surfaces.proxy.harness import DIALECTS, ask, path_of, request_in, running_proxy
from tests.surfaces.proxy.spoken import says, text
from tests.surfaces.proxy.upstream import Upstream

NOON = 1_800_014_400.0 - 1_800_014_400.0 % 86_400 + 43_200


@pytest.mark.parametrize("dialect", DIALECTS)
def test_who_has_used_the_day_is_told_and_others_go_on(dialect: str) -> None:
    with Upstream() as vendor:
        vendor.always = says(text("Hello."))
        settings = {"tenant_by": "key", "daily_limit": DailyLimit(tokens=5)}
        with running_proxy(settings, upstream=vendor.url) as proxy:
            body, url = request_in(dialect, chat("short")), proxy.url + path_of(dialect)
            keys = [{"authorization": f"Bearer {KEY}-{who}"} for who in "ab"]
            for names in keys:  # each vendor looks for its key elsewhere
                key = names["authorization"].removeprefix("Bearer ")
                names |= {"x-goog-api-key": key, "anthropic-version": "2023-06-01"}
            assert ask(url, body, keys[0]).status == 200
            proxy.settled()
            refused = ask(url, body, keys[0])
            assert refused.status == 429
            assert "of 5 tokens" in refused.body.decode()
            assert "00:00 UTC" in refused.body.decode()
            assert ask(url, body, keys[1]).status == 200
        assert len(vendor.requests) == 2


def test_the_sdk_takes_it_for_a_rate_limit() -> None:
    with (
        Upstream() as vendor,
        running_proxy({"daily_limit": DailyLimit(tokens=5)}, upstream=vendor.url) as proxy,
    ):
        vendor.always = says(text("Hello."))
        url = f"{proxy.url}/v1"
        with openai.OpenAI(base_url=url, api_key=KEY, max_retries=0) as client:
            messages: Any = [{"role": "user", "content": "Is anybody there?"}]
            client.chat.completions.create(model="gpt-4o", messages=messages)
            proxy.settled()
            with pytest.raises(openai.RateLimitError, match="share of the day"):
                client.chat.completions.create(model="gpt-4o", messages=messages)


def test_yesterday_does_not_count_and_nothing_is_lost_in_a_restart() -> None:
    async def main() -> None:
        now, store = [NOON], open_memory()
        scopes = [Scope("u", "w")]

        def allowances() -> Allowances:
            settings = Settings(daily_limit=DailyLimit(100, 1))
            return Allowances(settings, store, lambda: now[0])

        async def use(tokens: int) -> None:
            holds = await allowances().reserve(scopes, Amount(tokens), Amount())
            await allowances().settle(holds, Amount(tokens, tokens / 1_000))

        now[0] = NOON - 86_400
        await use(1_000)
        now[0] = NOON - 3_600
        await use(85)
        now[0] = NOON
        assert await allowances().check(scopes) == "85 of 100 tokens of this day are used"
        await use(15)
        with pytest.raises(AllowanceError, match="100 of 100 tokens") as refusal:
            await allowances().check(scopes)
        assert refusal.value.where == "daily_limit.tokens"
        now[0] = NOON + 43_199
        with pytest.raises(AllowanceError, match="100 of 100 tokens"):
            await allowances().reserve(scopes, Amount(1), Amount())
        now[0] = NOON + 43_200
        assert await allowances().check(scopes) == "", "at midnight the day begins with nothing"
        await use(5)

    asyncio.run(main())


def test_dollars_end_a_day_too() -> None:
    async def main() -> None:
        scopes = [Scope("u", "w")]
        allowances = Allowances(
            Settings(daily_limit=DailyLimit(dollars=0.5)), open_memory(), lambda: NOON
        )
        assert await allowances.check(scopes) == ""
        holds = await allowances.reserve(scopes, Amount(10**9, 0.1), Amount())
        await allowances.settle(holds, Amount(10**9, 0.5))
        with pytest.raises(AllowanceError, match=r"\$0.50 of \$0.50") as refusal:
            await allowances.check(scopes)
        assert refusal.value.where == "daily_limit.dollars"

    asyncio.run(main())
