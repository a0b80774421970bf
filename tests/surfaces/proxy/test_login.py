"""A browser logs in with a token, and sees what that token may see."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.routing import Route

from holdfast.settings import Settings
from holdfast.surfaces.proxy.login import (
    _MOST_ADDRESSES,
    COOKIE,
    LIFE_SECONDS,
    MOST_HEADER_TRIES,
    MOST_TRIES,
    Logins,
    cookie_header,
)
from holdfast.surfaces.proxy.server import application
from tests.fitting.test_citing import chat
from tests.surfaces.proxy.harness import (
    Answered,
    Running,
    ask,
    ask_model,
    request_in,
    running_proxy,
)

TOKENS: dict[str, Any] = {
    "serve_token": "admin-token",
    "serve_tokens": {"ann": "token-of-ann", "ben": "token-of-ben"},
    "tenant_by": "key",
}
BROWSER = {"accept": "text/html,application/xhtml+xml"}


@pytest.fixture(scope="module")
def proxy() -> Iterator[Running]:
    """A proxy with the offline model, and a session each of Ann and Ben."""
    with running_proxy(TOKENS) as running:
        for name in ("ann", "ben"):
            body = request_in("openai-chat", chat(question=f"Hello from {name}?"))
            headers = {"authorization": f"Bearer token-of-{name}", "x-holdfast-session": name}
            assert ask_model(running, "openai-chat", body, headers=headers).status == 200
        running.settled()
        yield running


def logs_in(proxy: Running, token: str, **headers: str) -> Answered:
    form = {"content-type": "application/x-www-form-urlencoded"}
    body = urlencode({"token": token}).encode()
    return ask(f"{proxy.url}/login", body, {**BROWSER, **form, **headers})


def cookie_of(answered: Answered) -> dict[str, str]:
    return {"cookie": answered.headers["set-cookie"].partition(";")[0], **BROWSER}


def test_who_has_no_token_is_led_to_the_form(proxy: Running) -> None:
    for path in ("/", "/sessions/ann", "/refs/ref:log:0000000000000000", "/tenants/team-ann"):
        answered = ask(proxy.url + path, headers=BROWSER)
        assert (answered.status, answered.headers["location"]) == (303, "/login")
        assert ask(proxy.url + path).status == 401, "a program is told so"
    form = ask(f"{proxy.url}/login", headers=BROWSER)
    assert form.status == 200
    assert b'type="password"' in form.body
    assert "default-src 'none'" in form.headers["content-security-policy"]
    assert ask(f"{proxy.url}/static/style.css").status == 200


def test_a_token_becomes_a_cookie_that_scripts_and_other_sites_cannot_use(proxy: Running) -> None:
    answered = logs_in(proxy, "admin-token")
    assert (answered.status, answered.headers["location"]) == (303, "/")
    attributes = {part.strip() for part in answered.headers["set-cookie"].split(";")[1:]}
    assert attributes == {"Path=/", f"Max-Age={LIFE_SECONDS}", "HttpOnly", "SameSite=Strict"}
    assert "admin-token" not in answered.headers["set-cookie"]
    assert cookie_header("x", secure=True).endswith("; Secure")
    page = ask(f"{proxy.url}/", headers=cookie_of(answered))
    assert page.status == 200
    assert b"team-ann" in page.body
    assert b"team-ben" in page.body


@pytest.mark.parametrize("token", ["", "wrong", "admin-tokenx", "\udcff", "x" * 20_000])
def test_what_is_no_token_is_refused(proxy: Running, token: str) -> None:
    body = urlencode({"token": token}, errors="surrogateescape").encode()
    answered = ask(f"{proxy.url}/login", body, BROWSER)
    assert answered.status == 401
    assert "set-cookie" not in answered.headers


def test_a_token_in_an_address_is_not_looked_at(proxy: Running) -> None:
    for path in ("/?token=admin-token", "/?x-holdfast-token=admin-token"):
        assert ask(proxy.url + path).status == 401
    answered = ask(f"{proxy.url}/login?token=admin-token", headers=BROWSER)
    assert "set-cookie" not in answered.headers


def test_a_named_token_sees_its_own_and_nothing_of_others(proxy: Running) -> None:
    ann = cookie_of(logs_in(proxy, "token-of-ann"))
    page = ask(f"{proxy.url}/", headers=ann)
    assert b"/sessions/ann" in page.body
    assert b"ben" not in page.body
    assert ask(f"{proxy.url}/sessions/ann", headers=ann).status == 200
    assert ask(f"{proxy.url}/tenants/team-ann/sessions/ann", headers=ann).status == 200
    for path in ("/sessions/ben", "/tenants/team-ben", "/tenants/team-ben/sessions/ben"):
        hidden = ask(proxy.url + path, headers=ann)
        assert hidden.status == 404
        missing = ask(proxy.url + path.replace("ben", "nobody"), headers=ann)
        assert hidden.body == missing.body, "one cannot tell what others have"
    assert ask(f"{proxy.url}/metrics", headers=ann).status == 403
    stats = ask(f"{proxy.url}/stats", headers=ann).json
    assert [row["name"] for row in stats["by_session"]] == ["ann"]
    assert "process" not in stats
    every = ask(f"{proxy.url}/stats", headers={"x-holdfast-token": "admin-token"}).json
    assert {row["name"] for row in every["by_session"]} == {"ann", "ben"}
    assert "process" in every


def test_links_on_the_pages_of_a_tenant_stay_with_it(proxy: Running) -> None:
    admin = cookie_of(logs_in(proxy, "admin-token"))
    page = ask(f"{proxy.url}/tenants/team-ann", headers=admin).body.decode()
    assert 'href="/tenants/team-ann/sessions/ann"' in page
    turns = ask(f"{proxy.url}/tenants/team-ann/sessions/ann", headers=admin).body.decode()
    assert 'href="/tenants/team-ann/sessions/ann/turns/1"' in turns
    assert 'action="/logout"' in turns


def test_a_login_opens_no_provider_and_changes_nothing(proxy: Running) -> None:
    admin = cookie_of(logs_in(proxy, "admin-token"))
    body = request_in("openai-chat", chat(question="Hello?"))
    assert ask_model(proxy, "openai-chat", body, headers=admin).status == 401
    assert ask(f"{proxy.url}/v1/models", headers=admin).status == 401
    assert ask(f"{proxy.url}/", b"", admin, method="POST").status == 401


def test_who_logs_out_is_out_wherever_the_cookie_lies(proxy: Running) -> None:
    admin = cookie_of(logs_in(proxy, "admin-token"))
    other = cookie_of(logs_in(proxy, "admin-token"))
    left = ask(f"{proxy.url}/logout", b"", admin)
    assert (left.status, left.headers["location"]) == (303, "/login")
    assert f"{COOKIE}=; " in left.headers["set-cookie"]
    assert ask(f"{proxy.url}/", headers=admin).status == 303
    assert ask(f"{proxy.url}/", headers=other).status == 200


def test_pages_of_other_sites_can_neither_log_in_nor_out(proxy: Running) -> None:
    foreign = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
    assert logs_in(proxy, "admin-token", **foreign).status == 403
    admin = cookie_of(logs_in(proxy, "admin-token"))
    assert ask(f"{proxy.url}/logout", b"", {**admin, **foreign}).status == 403
    assert ask(f"{proxy.url}/", headers=admin).status == 200


def test_who_guesses_has_to_wait() -> None:
    with running_proxy(TOKENS) as running:
        for _ in range(MOST_TRIES):
            assert logs_in(running, "guessed").status == 401
        answered = logs_in(running, "admin-token")
        assert answered.status == 429
        assert answered.headers["retry-after"] == "60"


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def test_a_login_ends_with_its_time_and_with_its_token() -> None:
    clock = Clock()
    logins = Logins(Settings(**TOKENS), clock)
    cookie = f"{COOKIE}={logins.begin('token-of-ann', 'here')}"
    assert logins.token_of(cookie) == "ann"
    assert Logins(Settings(**TOKENS), clock).token_of(cookie) == "ann", "another server agrees"
    changed = TOKENS | {"serve_tokens": {"ann": "another", "ben": "token-of-ben"}}
    assert Logins(Settings(**changed), clock).token_of(cookie) is None
    clock.now += LIFE_SECONDS
    assert logins.token_of(cookie) is None


def test_a_cookie_that_we_did_not_sign_is_worth_nothing() -> None:
    clock = Clock()
    logins = Logins(Settings(**TOKENS), clock)
    expires, nonce, signature = str(logins.begin("token-of-ann", "here")).split(".")
    later = str(int(expires) + 1)
    forged = [
        f"{later}.{nonce}.{signature}",
        f"{expires}.{nonce[::-1]}.{signature}",
        f"{expires}.{nonce}.{signature[::-1]}",
        f"{expires}.{nonce}.",
        f"{expires}.{nonce}",
        f"{'9' * 500}.{nonce}.{signature}",
        f"-1.{nonce}.{signature}",
        "..",
        "",
        "\udcff.x.y",
    ]
    for value in forged:
        assert logins.token_of(f"{COOKIE}={value}") is None, value
    assert logins.token_of("holdfast_login") is None
    assert logins.token_of("; ".join(f"a{n}=b" for n in range(100))) is None


def test_tries_are_forgotten_after_a_minute_and_for_many_addresses() -> None:
    clock = Clock()
    logins = Logins(Settings(**TOKENS), clock)
    for _ in range(MOST_TRIES):
        logins.begin("wrong", "there")
    assert logins.must_wait("there")
    assert not logins.must_wait("elsewhere")
    clock.now += 61
    assert not logins.must_wait("there")
    for n in range(2_000):
        logins.begin("wrong", f"address {n}")
    assert len(logins._failed) <= 1_000


def test_of_very_many_addresses_the_latest_that_guessed_still_has_to_wait() -> None:
    """Else whoever guesses from enough addresses would never be held up."""
    logins = Logins(Settings(**TOKENS), clock=lambda: 1_000.0)
    for number in range(_MOST_ADDRESSES + 10):
        assert logins.begin("wrong", f"10.0.{number // 250}.{number % 250}") is None
    for _ in range(MOST_TRIES):
        logins.begin("wrong", "192.0.2.7")
    assert logins.must_wait("192.0.2.7")


def test_a_made_up_address_gets_no_more_tries() -> None:
    with running_proxy(TOKENS) as running:
        for n in range(MOST_TRIES):
            forged = {"x-forwarded-for": f"10.0.0.{n}", "forwarded": f"for=10.0.1.{n}"}
            assert logs_in(running, "guessed", **forged).status == 401
        answered = logs_in(running, "admin-token", **{"x-forwarded-for": "10.9.9.9"})
        assert answered.status == 429


def test_who_guesses_in_headers_has_to_wait_and_known_clients_do_not() -> None:
    with running_proxy(TOKENS) as running:
        url = f"{running.url}/stats"
        known = {"x-holdfast-token": "admin-token"}
        assert ask(url, headers=known).status == 200
        guesses = [{"x-holdfast-token": f"guess-{n}"} for n in range(MOST_HEADER_TRIES // 2)]
        guesses += [{"authorization": f"bearer guess-{n}"} for n in range(MOST_HEADER_TRIES // 2)]
        for guess in guesses:
            assert ask(url, headers=guess).status == 401
        refused = ask(url, headers={"x-api-key": "token-of-ann"})
        assert refused.status == 429, "else each guess would be answered"
        assert refused.headers["retry-after"] == "60"
        assert ask(url, headers={"x-api-key": "one more"}).status == 429
        assert ask(url, headers=known).status == 200
        assert ask(f"{running.url}/healthz").status == 200
        assert ask(url, headers=BROWSER).status == 303, "who shows no token is led to the form"


def test_who_has_no_token_is_not_counted_as_guessing() -> None:
    with running_proxy(TOKENS) as running:
        for _ in range(MOST_HEADER_TRIES + 1):
            assert ask(f"{running.url}/stats").status == 401
        assert ask(f"{running.url}/stats", headers={"x-api-key": "admin-token"}).status == 200


def test_a_login_opens_every_page(proxy: Running) -> None:
    """Pages are listed twice, in the routes and in login.py: /tools was missing there once."""
    admin = cookie_of(logs_in(proxy, "admin-token"))
    values = {"name": "ann", "number": "1", "side": "sent", "index": "0", "tenant": "team-ann",
              "ref": "ref:log:0000000000000000", "form": "csv", "rest": "x"}  # fmt: skip
    paths = [
        route.path
        for route in application(proxy.service).routes
        if isinstance(route, Route) and "GET" in (route.methods or ())
    ]
    assert "/tools" in paths
    for path in paths:
        if path.endswith("/live"):  # a stream without an end
            continue
        address = re.sub(r"\{(\w+)(?::\w+)?\}", lambda match: values[match[1]], path)
        answered = ask(proxy.url + address, headers=admin)
        assert answered.status != 401, path
        assert answered.headers.get("location") != "/login", path


def test_who_is_logged_in_can_log_out_and_who_sends_a_token_is_not_offered_to(
    proxy: Running,
) -> None:
    for token in ("admin-token", "token-of-ann"):
        page = ask(f"{proxy.url}/", headers=cookie_of(logs_in(proxy, token)))
        assert b'action="/logout"' in page.body
        page = ask(f"{proxy.url}/", headers={**BROWSER, "authorization": f"Bearer {token}"})
        assert page.status == 200
        assert b'action="/logout"' not in page.body
