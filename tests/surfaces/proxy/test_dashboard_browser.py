"""The dashboard in a real Chromium: nothing hostile runs, and a person can use it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.store.refs import REF
from holdfast.surfaces.proxy.dashboard import links
from tests.surfaces.proxy import demo
from tests.surfaces.proxy.chromium import MISSING, NAME, Tab, browser
from tests.surfaces.proxy.demo import HOSTILE_NAME
from tests.surfaces.proxy.harness import DIALECTS, Running

pytestmark = pytest.mark.skipif(not NAME, reason=MISSING)


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with browser() as opened:
        yield opened


def test_nothing_hostile_runs_and_the_policy_is_kept(attacked: Running, tab: Tab) -> None:
    engine = attacked.service.engine
    refs = [info.ref_id for info in attacked.do(engine.store.refs(engine.scope))]
    assert refs
    paths = ["/", "/sessions/nobody<script>", *map(links.ref, refs)]
    for dialect in DIALECTS:
        name = HOSTILE_NAME + dialect
        paths += [links.session(name), links.turn(name, 1), links.message(name, 1, "client", 0)]
    for path in paths:
        tab.size(390, 800)
        tab.open(attacked.url + path)
        expected = ["Failed to load resource"] if "nobody" in path else []
        said = [
            event["params"].get("entry", {}).get("text", event)[:23] for event in tab.complaints
        ]
        assert said == expected, path
        assert tab.evaluate("typeof window.hacked") == "undefined"
        own = "[...document.scripts].filter(script => script.src != location.origin + {})"
        assert tab.evaluate(own.format("'/static/live.js'") + ".length") == 0
        assert tab.evaluate("document.querySelectorAll('main img, main style').length") == 0
        assert tab.evaluate("getComputedStyle(document.body).display") == "block"
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390, path


def test_the_driver_sees_a_script_that_the_policy_stops(busy: Running, tab: Tab) -> None:
    tab.open(f"{busy.url}/")
    add = "document.body.appendChild(Object.assign(document.createElement('{}'), {{{}}}))"
    tab.evaluate(add.format("script", "textContent: 'window.hacked = 1'") + "; 0")
    tab.evaluate(add.format("style", "textContent: 'body {display: none}'") + "; 0")
    texts = [event["params"]["entry"]["text"] for event in tab.complaints]
    assert len(texts) == 2
    assert all("Content Security Policy" in said for said in texts)
    assert tab.evaluate("typeof window.hacked") == "undefined"


def test_all_can_be_done_by_keyboard_with_the_focus_in_sight(busy: Running, tab: Tab) -> None:
    tab.size(1200, 900)
    tab.open(f"{busy.url}/sessions/nightly-build/turns/2")
    seen = []
    for _ in range(60):
        tab.press("Tab", 9)
        seen.append(tab.evaluate("document.activeElement.outerHTML.slice(0, 200)"))
        if seen[-1].startswith("<body"):
            break
        outline = tab.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid", seen[-1]
    in_sight = "[...document.querySelectorAll('a[href]')].filter(a => a.checkVisibility())"
    wanted = tab.evaluate(f"{in_sight}.length")
    assert seen[0].startswith('<a href="#content"')
    assert sum(one.startswith("<a ") for one in seen) == wanted
    assert any("/refs/" in one for one in seen)


def test_a_reader_finds_the_way_from_the_first_page_to_an_original(busy: Running, tab: Tab) -> None:
    tab.size(1200, 900)
    tab.open(f"{busy.url}/")
    find = f"[...document.querySelectorAll('table a')].find(a => a.text == '{demo.QUESTION}')"
    tab.follow(f"{find}.click()")
    title = tab.evaluate("document.querySelector('h1').textContent")
    assert title == f"Session {demo.QUESTION}"
    tab.follow("[...document.querySelectorAll('a')].find(a => a.text == 'turn 1').click()")
    tab.follow("document.querySelector('a.ref').click()")
    assert REF.search(tab.evaluate("document.querySelector('h1').textContent"))
    tab.evaluate("document.querySelector('[name=query]').value = 'disk quota'; 0")
    tab.follow("document.querySelector('form button').click()")
    assert "disk quota exceeded" in tab.evaluate(
        "[...document.querySelectorAll('pre')].pop().textContent"
    )
    assert tab.complaints == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200], ids=["phone", "desk"])
def test_pages_fit_the_screen_and_can_be_read(
    busy: Running, tab: Tab, width: int, dark: bool
) -> None:
    engine = busy.service.engine
    ref = busy.do(engine.store.refs(engine.scope))[0].ref_id
    tab.size(width, 800, dark=dark)
    compared = links.compare("long-incident", a="auto", b="never")
    for path in ("/", "/sessions/long-incident", "/sessions/long-incident/turns/9", links.ref(ref),
                 compared, "/tools"):  # fmt: skip
        tab.open(busy.url + path)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, path
        assert tab.evaluate(CONTRASTS) == [], path
        assert tab.complaints == []


CONTRASTS = """
(() => {
  const rgb = text => text.match(/[0-9.]+/g).map(Number);
  const light = c => c.slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = element => {
    for (let at = element; at; at = at.parentElement) {
      const c = rgb(getComputedStyle(at).backgroundColor);
      if (c.length == 3 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll('p, a, td, th, dt, dd, pre, h1, h2, caption, summary')]
    .filter(e => e.textContent.trim() && !e.closest('svg'))
    .map(e => {
      const a = light(rgb(getComputedStyle(e).color)), b = light(ground(e));
      return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.tagName, e.className];
    })
    .filter(found => found[0] < 4.5);
})()
"""
