"""Twenty tasks of a new user, done in a real Chromium, each in at most three clicks.

And axe-core, which we did not write, looks at every page for labels, contrast, order and names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.surfaces.proxy import demo
from tests.surfaces.proxy.chromium import AXE, AXE_MISSING, MISSING, NAME, Tab, browser
from tests.surfaces.proxy.harness import Running, ask, running_proxy

pytestmark = pytest.mark.skipif(not NAME, reason=MISSING)
MOST_CLICKS = 3
BUILD, HOSTS = "Why did the nightly build fail?", "Which hosts are ready?"


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    """A proxy after a morning's work: seven turns that cite, one that folds, one that failed."""
    with running_proxy() as proxy:
        logs = [demo.build_log(n, lines=120) for n in range(7)]
        demo.tool_turns(proxy, "nightly", logs, question=BUILD)
        budget = {"x-holdfast-budget": "4000"}
        notes = [demo.build_log(20 + n, lines=24) for n in range(7)]
        demo.tool_turns(proxy, "hosts", notes, question=HOSTS, headers=budget)
        too_long = {"model": "gpt-4o", "messages": [{"role": "user", "content": "word " * 9_000}]}
        tiny = {"x-holdfast-budget": "20"}
        assert ask(f"{proxy.url}/v1/chat/completions", too_long, tiny).status == 400
        proxy.settled()
        yield proxy


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with browser() as opened:
        yield opened


class Person:
    """A person at the first page, who can click three times."""

    def __init__(self, tab: Tab, running: Running) -> None:
        self.tab = tab
        self.clicks = 0
        tab.size(1200, 900)
        tab.open(f"{running.url}/")

    def click(self, text: str, within: str = "body") -> None:
        """Click the first link, button or summary with a text."""
        self.click_on(f"""[...document.querySelectorAll({json.dumps(within)})]
          .flatMap(place => [...place.querySelectorAll('a, button, summary')])
          .find(it => it.textContent.trim().startsWith({json.dumps(text)}))""")

    def click_on(self, element: str) -> None:
        """Click an element."""
        self.clicks += 1
        assert self.clicks <= MOST_CLICKS
        self.tab.click(element)

    def fill(self, name: str, text: str) -> None:
        """Go to a field by the keyboard, and type."""
        self.tab.evaluate(f"document.querySelector('[name={name}]').focus(), 0")
        self.tab.type(text)

    def choose(self, name: str, value: str) -> None:
        """Choose from a list; that takes a click."""
        self.clicks += 1
        self.tab.evaluate(f"document.querySelector('[name={name}]').value = '{value}', 0")

    @property
    def title(self) -> str:
        told: str = self.tab.evaluate("document.querySelector('h1').textContent")
        return told

    @property
    def page(self) -> str:
        """Return the visible text of the page, without collapsed parts."""
        told: str = self.tab.evaluate("document.body.innerText")
        return told

    def saved(self, text: str) -> str:
        """Return the content of a link to a file."""
        code = f"""fetch([...document.querySelectorAll('a')]
          .find(it => it.textContent === {json.dumps(text)}).href).then(r => r.text())"""
        told: str = self.tab.settle(code)
        return told


@pytest.fixture
def person(tab: Tab, running: Running) -> Person:
    return Person(tab, running)


def test_01_see_what_was_saved_and_of_what(person: Person) -> None:
    assert "What did it save?" in person.page
    assert "tokens saved" in person.page
    assert "% of what clients asked" in person.page


def test_02_find_what_was_saved_yesterday(person: Person) -> None:
    person.click("Yesterday")
    assert "0 tokens saved" in person.page.replace("\n", " ")


def test_03_learn_how_the_figure_is_computed(person: Person) -> None:
    assert "tokens billed" not in person.page.partition("Live")[0]
    person.click("How this is computed")
    assert "Saved are the tokens asked less the tokens billed" in person.page


def test_04_open_what_was_hidden_in_turn_7(person: Person) -> None:
    person.click(BUILD, "table")
    person.click("turn 7")
    person.click("ref:", ".edits")
    assert demo.build_log(6, lines=120).splitlines()[0] in person.page


def test_05_put_it_back(person: Person) -> None:
    person.click(BUILD, "table")
    person.click("turn 7")
    person.click("Put back", ".edits")
    assert "Put back: it is whole from the next request on." in person.page


def test_06_see_why_a_call_failed(person: Person) -> None:
    failed = person.page.partition("Failed requests")[2]
    assert "does not fit its limit" in failed


def test_07_prove_that_nothing_was_lost(person: Person) -> None:
    person.click("Prove it")
    assert "Nothing. The last requests of 2 sessions were rebuilt" in person.page


def test_08_take_the_clients_own_request_along(person: Person) -> None:
    person.click(BUILD, "table")
    person.click("turn 2")
    asked = json.loads(person.saved("Download it"))
    assert asked["messages"][3]["content"] == demo.build_log(0, lines=120)


def test_09_find_a_session_by_its_question(person: Person) -> None:
    person.fill("q", "hosts ready")
    person.click("Search")
    assert HOSTS in person.page
    assert BUILD not in person.page


def test_10_see_only_sessions_in_which_something_was_opened(person: Person) -> None:
    person.click("Sessions", "header")
    person.choose("show", "opened")
    person.click("Search")
    assert BUILD in person.page


def test_11_export_a_session_as_a_table(person: Person) -> None:
    person.click(BUILD, "table")
    assert len(person.saved("Export as CSV").splitlines()) == 8


def test_12_export_all_days_for_a_program(person: Person) -> None:
    [day] = json.loads(person.saved("JSON"))
    assert day["saved"] > 0


def test_13_see_what_the_model_opened(person: Person) -> None:
    person.click(BUILD, "table")
    person.click("turn 2")
    person.click("expand_ref")
    assert "disk quota exceeded" in person.page.partition("What the model opened")[2]


def test_14_read_what_the_model_answered(person: Person) -> None:
    person.click(BUILD, "table")
    person.click("turn 3")
    assert "offline model" in person.page.partition("What the model answered")[2]


def test_15_read_some_lines_of_an_original(person: Person) -> None:
    person.click("Open them")
    person.click("ref:log", "tbody")
    person.fill("lines", "2-3")
    person.click("Open", "form")
    assert "INFO worker" in person.page


def test_16_see_what_weighs_most(person: Person) -> None:
    assert "Largest contributors" in person.page
    person.click("ref:", ".pair")
    assert "The original" in person.page


def test_17_compare_an_edit_before_and_after(person: Person) -> None:
    person.click(BUILD, "table")
    person.click("turn 1")
    person.click("message 3", ".edits")
    assert person.tab.evaluate("location.hash") == "#client-3"
    sides = "document.querySelectorAll('tr:target td')[{}].innerText"
    before, after = (person.tab.evaluate(sides.format(n)) for n in (0, 1))
    assert demo.build_log(0, lines=120).splitlines()[1] in before
    assert "ref:log" in after


def test_18_see_a_setting_and_where_it_comes_from(person: Person) -> None:
    person.click("Settings", "header")
    assert person.title == "Settings"
    assert "cite_policy" in person.page
    assert "default" in person.page


def test_19_see_a_request_arrive_without_loading_the_page(person: Person, running: Running) -> None:
    person.tab.until("document.documentElement.dataset.updates")
    demo.tool_turns(running, "late", ["12 hosts."], question="Is it still up?")
    person.tab.until("document.querySelector('#live').textContent.includes('Is it still up?')")
    assert person.tab.evaluate("performance.getEntriesByType('navigation').length") == 1


def test_20_delete_a_session(person: Person, running: Running) -> None:
    demo.tool_turns(running, "gone", ["12 hosts."], question="May this go?")
    person.tab.open(f"{running.url}/")
    person.click("May this go?", "table")
    person.click("Delete this session")
    person.click("Delete it for good")
    assert person.title == "Sessions"
    assert "May this go?" not in person.page


def test_21_compare_two_settings_on_a_session(person: Person) -> None:
    person.click(BUILD, "table")
    person.click("Compare two settings")
    person.click_on("document.querySelector('main form button')")
    assert person.title == "Compare two settings"
    assert "needed and hidden" in person.page


def test_22_see_which_tools_there_are(person: Person) -> None:
    person.click("Tools", "header")
    assert "holdfast mcp --config mcp.json" in person.page


# --- several keys --------------------------------------------------------------------------------

KEYS = {"one": f"sk-proj-{'y' * 40}77Qw", "other": f"sk-proj-{'z' * 40}a3f9"}


@pytest.fixture(scope="module")
def several() -> Iterator[Running]:
    """A proxy that its owner has used with two keys, and once wrongly."""
    with running_proxy({"tenant_by": "key"}) as proxy:
        for name, key in KEYS.items():
            bearing = {"authorization": f"Bearer {key}"}
            logs = [demo.build_log(len(name), lines=120)]
            demo.tool_turns(proxy, name, logs, question=f"From {name} key?", headers=bearing)
        assert ask(f"{proxy.url}/v1/messages").status == 405
        proxy.settled()
        yield proxy


def test_23_see_all_keys_together_then_one_of_them(tab: Tab, several: Running) -> None:
    person = Person(tab, several)
    assert "From one key?" in person.page
    assert "From other key?" in person.page
    assert "2\nrequests" in person.page.replace(" requests", "\nrequests")
    person.click("All keys", ".picker")
    person.click("OpenAI …77Qw", ".picker")
    assert person.title == "OpenAI …77Qw"
    assert "From one key?" in person.page
    assert "From other key?" not in person.page


def test_24_go_back_from_a_turn_to_all_keys(tab: Tab, several: Running) -> None:
    person = Person(tab, several)
    person.click("From other key?", "table")
    person.click("turn 1", "table")
    person.click("All keys", ".crumbs")
    assert person.title == "Dashboard"
    assert "From one key?" in person.page


def test_25_see_the_sessions_of_another_key(tab: Tab, several: Running) -> None:
    person = Person(tab, several)
    tab.open(f"{several.url}/sessions")
    person.click("All keys", ".picker")
    person.click("OpenAI …a3f9", ".picker")
    assert person.title == "Sessions"
    assert "From other key?" in person.page
    assert "From one key?" not in person.page


def test_26_learn_that_a_request_was_sent_wrongly(tab: Tab, several: Running) -> None:
    person = Person(tab, several)
    failed = person.page.partition("Failed requests")[2]
    assert "1 refused since the proxy was started." in failed
    assert "The client sent GET or another method to a path that takes POST." in failed
    wraps = """[...document.querySelectorAll('#failures tbody th')]
      .filter(cell => cell.getClientRects().length && cell.offsetHeight > 60).length"""
    assert tab.evaluate(wraps) == 0, "no word is broken into pieces"


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pages_of_several_keys_fit_and_axe_has_nothing_to_say(
    tab: Tab, several: Running, width: int, dark: bool
) -> None:
    tab.open(f"{several.url}/")
    mine = tab.evaluate("document.querySelector('.picker li:nth-child(2) a').pathname")
    paths = ("/", "/tenants", "/sessions", "/refs", "/lost", "/accuracy", "/tools", mine)
    for path in (*paths, f"{mine}/sessions", f"{mine}/refs"):
        tab.size(width, 900, dark=dark)
        tab.open(several.url + path)
        tab.evaluate("document.querySelector('.picker').open = true, 0")
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, path
        assert tab.evaluate(OVERLAPS) == [], path
        if AXE.exists():
            tab.evaluate(AXE.read_text() + "; 0")
            said: dict[str, Any] = tab.settle("axe.run()")
            told = [(each["id"], each["nodes"][0]["html"][:200]) for each in said["violations"]]
            assert told == [], path
        assert tab.complaints == [], path


OVERLAPS = """
[...document.querySelectorAll('td')]
  .filter(cell => {
    const next = cell.nextElementSibling, text = document.createRange();
    if (!next) return false;
    text.selectNodeContents(cell);
    const [own, other] = [text.getBoundingClientRect(), next.getBoundingClientRect()];
    const beside = own.bottom > other.top && own.top < other.bottom && other.left >= own.left;
    return own.width && beside && own.right > other.left + 1;
  }).map(cell => cell.textContent)
"""
"""Cells of tables whose text runs into the cell beside it."""

PAGES = (
    "/", "/sessions", "/sessions/nightly", "/sessions/nightly/turns/7", "/refs", "/lost",
    "/sessions/nightly/compare?a=never&b=assemble", "/tools",
    "/accuracy", "/settings", "/sessions/nightly/turns/7/client/3", "/sessions/nobody", "/login",
)  # fmt: skip


@pytest.mark.skipif(not AXE.exists(), reason=AXE_MISSING)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_has_nothing_to_say(tab: Tab, running: Running, dark: bool) -> None:
    engine = running.service.engine
    ref = running.do(engine.store.refs(engine.scope, limit=1))[0].ref_id
    for path in (*PAGES, f"/refs/{ref}"):
        tab.size(360 if dark else 1200, 900, dark=dark)
        tab.open(running.url + path)
        tab.evaluate(AXE.read_text() + "; 0")
        said: dict[str, Any] = tab.settle("axe.run()")
        told = [(each["id"], each["nodes"][0]["html"][:200]) for each in said["violations"]]
        assert told == [], path
        assert tab.evaluate("document.querySelectorAll('h1').length") == 1, path
