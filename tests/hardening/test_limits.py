"""No way around a daily limit, and none to another tenant's objects, over paths, headers and keys.

Three tenants share the settings' key. Their use is checked against their shared account
(account.py), in its own tokens: the billed use of a tenant may exceed its limit by less than its
largest call, and the ledger may never have less than the bill. No request may reach an object of
another tenant, and no response may name one.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
from typing import Any
from urllib.parse import quote

from holdfast.settings import DailyLimit, UpstreamEntry
from holdfast.store import Scope
from tests.hardening.account import NUMBER, Account
from tests.hardening.asks import Asked
from tests.hardening.campaign import Campaign, short_and_full
from tests.hardening.driving import Answer, Era, era

TRIES = 10_020
SHORT = 480
BURST = 30
BURSTS = 8
"""Bursts with one proxy and one day; then the day is used up."""
LIMIT = 800
NOON = 1_800_014_400.0
SETTINGS: dict[str, Any] = {
    "serve_token": "token-of-all",
    "serve_tokens": {"ann": "token-of-ann", "ben": "token-of-ben"},
    "tenant_by": "key",
    "daily_limit": DailyLimit(LIMIT),
    "upstreams": dict.fromkeys(
        ("openai", "anthropic", "gemini", "bedrock", "cohere"),
        UpstreamEntry(key="key-of-the-settings"),
    ),
}
TOKENS = {"team-ann": "token-of-ann", "team-ben": "token-of-ben", "token": "token-of-all"}
_PATHS = (
    "/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/embeddings", "/v1/completions",
    "/v1beta/models/gemini-2.5-flash:generateContent", "/v1/complete", "/v2/embed", "/v2/rerank",
    "/v1beta/models/gemini-2.5-flash:streamGenerateContent", "/openai/v1/chat/completions",
    "/openai/deployments/gpt-4o/chat/completions", "/api/v1/chat/completions", "/v1/batches",
    "/v1beta/models/text-embedding-004:embedContent", "/v1/messages/batches", "/v2/chat",
    "/model/anthropic.claude/invoke", "/v1/images/generations", "/v1/realtime/client_secrets",
    "/v1/files", "/v1/conversations", "/v1/vector_stores", "/v1/containers", "/v1/uploads",
    "/v1beta/cachedContents", "/v1/threads", "/v1/fine_tuning/jobs", "/backend-api/conversation",
)  # fmt: skip
_OBJECT_PATHS = (
    "/v1/responses/{}", "/v1/responses/{}/input_items", "/v1/responses/{}/cancel", "/v1/files/{}",
    "/v1/files/{}/content", "/v1/conversations/{}", "/v1/conversations/{}/items", "/v1/batches/{}",
    "/v1/vector_stores/{}/search", "/v1/containers/{}/files", "/v1/messages/batches/{}/results",
    "/v1beta/{}", "/v1/chat/completions/{}", "/v1/files", "/v1/batches", "/v1/responses",
    "/v1/files/x/../{}", "/v1/files/%2e%2e/files/{}", "/v1//files//{}", "/v1/vector_stores/{}",
    "/v1/uploads/{}/complete", "/openai/v1/responses/{}", "/v1/vector_stores/{}/files/{}",
)  # fmt: skip
_HEADERS = (
    ("x-holdfast-bypass", "1"), ("x-holdfast-bypass", "on"), ("x-holdfast-read-only", "1"),
    ("x-http-method-override", "POST"), ("x-holdfast-session", "s1"), ("x-holdfast-no-cite", "1"),
    ("openai-project", "proj_other"), ("content-type", "text/plain"), ("forwarded", "for=9.9.9.9"),
    ("content-type", "multipart/form-data; boundary=x"), ("accept-encoding", "gzip, br"),
    ("x-holdfast-tenant", "team-ben"), ("x-holdfast-mode", "assemble"), ("x-holdfast-tenant", "x"),
    ("anthropic-version", "2023-06-01"), ("connection", "x-holdfast-token, authorization"),
)  # fmt: skip
_KEY_NAMES = ("authorization", "x-api-key", "x-goog-api-key", "api-key")


class Attack:
    """Tenants who try everything, at one proxy."""

    def __init__(self, proxy: Era, account: Account) -> None:
        self.proxy = proxy
        self.account = account
        self.number = 0

    async def burst(self, chance: random.Random, size: int) -> list[str]:
        """Send requests at once; return what should not have happened."""
        self.account.chance = chance
        tries = []
        for _ in range(size):
            self.number += 1
            tenant = chance.choice(sorted(TOKENS))
            self.account.tenant_of[str(self.number)] = tenant
            tries.append((tenant, self._request(tenant, chance)))
        answers = await asyncio.gather(*(self._sent(one, chance) for _, one in tries))
        await self.proxy.service.drain()
        wrong, self.account.breaches = self.account.breaches, []
        for (tenant, asked), answer in zip(tries, answers, strict=True):
            wrong += [
                f"{tenant} was shown {name} at {asked.method} {asked.target[:80]}"
                for name, owner in self.account.owner.items()
                if owner != tenant and name.encode() in answer.body and not _names(asked, name)
            ]
            if answer.status >= 500:
                wrong.append(
                    f"status {answer.status} at {asked.target[:80]}: {answer.body[:200]!r}"
                )
        return wrong + await self._over()

    async def _sent(self, asked: Asked, chance: random.Random) -> Answer:
        """Send a request; now and then its client leaves before the answer."""
        sending = asyncio.create_task(self.proxy._answer(asked, random.Random(0)))
        if chance.random() < 0.1:
            for _ in range(chance.randrange(40)):
                await asyncio.sleep(0)
            sending.cancel()
        answer, *_ = await asyncio.gather(sending, return_exceptions=True)
        return answer if isinstance(answer, Answer) else Answer()

    async def _over(self) -> list[str]:
        wrong = []
        ledger = self.proxy.service.engine.store.ledger
        for tenant in TOKENS:
            billed, largest = self.account.billed[tenant], self.account.largest[tenant]
            use = await ledger.day_use(Scope("local", tenant), int(NOON // 86_400))
            if billed >= LIMIT + max(largest, 1):
                wrong.append(f"{tenant}: {billed} were billed, of {LIMIT} and one call ({largest})")
            if use.used.tokens < billed:
                wrong.append(f"{tenant}: {billed} were billed, {use.used.tokens} counted")
            if use.open_calls:
                wrong.append(f"{tenant}: {use.open_calls} reservations stay")
        return wrong

    # --- requests by chance ----------------------------------------------------------------------

    def _request(self, tenant: str, chance: random.Random) -> Asked:
        names = [(NUMBER, str(self.number)), ("host", "127.0.0.1:8787")]
        names.append((chance.choice(("x-holdfast-token", "authorization")), TOKENS[tenant]))
        if names[-1][0] == "authorization":
            names[-1] = ("authorization", f"{chance.choice(('Bearer', 'bearer'))} {TOKENS[tenant]}")
        while chance.random() < 0.6:
            names.append((chance.choice(_KEY_NAMES), f"junk-{chance.randrange(10**6)}"))
        if chance.random() < 0.5:
            names.append(chance.choice(_HEADERS))
        # The gate looks at one header of a name: the token must be it.
        names.sort(key=lambda pair: TOKENS[tenant] in pair[1])
        is_object = chance.random() < 0.3
        path = chance.choice(_OBJECT_PATHS if is_object else _PATHS)
        path = path.replace("{}", quote(self._name(chance), safe="/"))
        method = "POST"
        if is_object or chance.random() < 0.05:
            method = chance.choice(("GET", "GET", "POST", "DELETE", "PUT"))
        body = b"" if method in ("GET", "DELETE") and chance.random() < 0.8 else self._body(chance)
        if chance.random() < 0.05:
            body = gzip.compress(body)
            names.append(("content-encoding", "gzip"))
        listed = [(name.encode(), value.encode()) for name, value in names]
        target = _spelled(path, chance)
        if chance.random() < 0.1:
            target += f"?key=junk-{chance.randrange(10**6)}"
        return Asked(method, target, listed, body)

    def _name(self, chance: random.Random) -> str:
        return chance.choice([*sorted(self.account.owner), "file-nobody", "resp_nobody"])

    def _body(self, chance: random.Random) -> bytes:
        said = "word " * chance.randrange(1, 200)
        models = ("gpt-4o", "claude-sonnet-4-5", "gemini-2.5-flash", "no-such-model")
        shapes: list[dict[str, Any]] = [
            {"input": said},
            {"contents": [{"role": "user", "parts": [{"text": said}]}]},
            {"prompt": said},
            {"input": [{"role": "user", "content": said}]},
            {"messages": [{"role": "user", "content": said}]},
        ]
        body: dict[str, Any] = {"model": chance.choice(models), **chance.choice(shapes)}
        if chance.random() < 0.6:
            bound = chance.randrange(1, 300)
            if "contents" in body:
                body["generationConfig"] = {"maxOutputTokens": bound}
            else:
                body[chance.choice(("max_tokens", "max_tokens", "max_output_tokens"))] = bound
        if chance.random() < 0.3:
            body["stream"] = True
            if chance.random() < 0.5:
                body["stream_options"] = {"include_usage": True}
        if chance.random() < 0.1:
            body["n"] = chance.randrange(1, 4)
        if chance.random() < 0.3:
            self._refer(body, chance)
        text = json.dumps(body)
        if chance.random() < 0.05:
            text = text.replace("previous_response_id", "previous_response\\u005fid")
        if chance.random() < 0.03:  # a key twice: which one counts?
            text = text[:-1] + f', "previous_response_id": "{self._name(chance)}"}}'
        return text.encode()

    def _refer(self, body: dict[str, Any], chance: random.Random) -> None:
        """Name an object, somebody's, in one of the places where providers look for it."""
        name = self._name(chance)
        part: dict[str, Any] = chance.choice([
            {"type": "input_file", "file_id": name}, {"type": "item_reference", "id": name},
            {"id": name}, {"type": "image_generation_call", "id": name},
            {"type": "document", "source": {"type": "file", "file_id": name}},
            {"fileData": {"fileUri": f"https://provider.test/v1beta/{name}"}},
            {"file_data": {"file_uri": name}}, {"type": "container_upload", "file_id": name},
            {"type": "file", "file": {"file_id": name}},
        ])  # fmt: skip
        field: dict[str, Any] = chance.choice([
            {"previous_response_id": name}, {"conversation": name}, {"conversation": {"id": name}},
            {"container": name}, {"cachedContent": name}, {"cached_content": name},
            {"tools": [{"type": "file_search", "vector_store_ids": [name]}]},
            {"tools": [{"type": "code_interpreter", "container": {"file_ids": [name]}}]},
            {"tools": [{"type": "code_interpreter", "container": name}]},
            {"input_file_id": name}, {"prompt": {"id": name}}, {"file_ids": [name]},
            {"input": [part]}, {"messages": [{"role": "user", "content": [part]}]},
            {"contents": [{"role": "user", "parts": [part]}]},
        ])  # fmt: skip
        body |= field


def _names(asked: Asked, name: str) -> bool:
    """Whether the request itself names an object: an error quotes it."""
    return (
        name in asked.path or name.encode() in asked.body or bool(asked.header(b"content-encoding"))
    )


def _spelled(path: str, chance: random.Random) -> str:
    """A path as another server might still understand it."""
    match chance.randrange(12):
        case 0:
            return path.replace("/v1/", "/v1//")
        case 1:
            return path + chance.choice(("/", "//", "/.", ";x=1", "%2F", "%20"))
        case 2:
            at = chance.randrange(4, len(path))
            return path[:at] + f"%{ord(path[at]):02x}" + path[at + 1 :]
        case 3:
            return path[:4] + path[4:].swapcase()
        case 4:
            return path.replace("/v1/", chance.choice(("/v1/./", "/v1/x/../", "/v1/%2e/")))
        case 5:
            return path[:4] + path[4:].replace("/", chance.choice(("%2F", "%252F", "%5C")))
        case _:
            return path


async def _attacked(campaign: Campaign, most: int) -> None:
    bursts = campaign.rounds(most // BURST)
    number = next(bursts, None)
    sent = refused = used_up = 0
    while number is not None:
        account = Account()
        async with era(provider=account, **SETTINGS) as proxy:  # type: ignore[arg-type]
            proxy.service.allowances._clock = lambda: NOON
            attack = Attack(proxy, account)
            last = number + BURSTS
            while number is not None and number < last:
                for wrong in await attack.burst(campaign.chance(number), BURST):
                    campaign.found(f"burst {number}: {wrong}")
                number = next(bursts, None)
            sent += account.calls
            refused += attack.number - account.calls
            used_up += sum(billed >= LIMIT for billed in account.billed.values())
    campaign.figures |= {"reached the provider": sent, "refused": refused, "used up": used_up}
    assert used_up, "no limit was ever met"


@short_and_full("tries", SHORT, TRIES, is_slow=False)
def test_no_request_goes_around_a_limit_or_to_anothers_objects(
    campaign: Campaign, tries: int
) -> None:
    asyncio.run(_attacked(campaign, tries))
