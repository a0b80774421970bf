"""Reports: every claim is an exact quotation with any model, budgets hold, killed runs resume."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from holdfast.allocate.manager import token_counter
from holdfast.errors import ModelError, ResearchError, StoreUnavailableError
from holdfast.expand.retrieval import ACTION
from holdfast.researching import (
    PhaseProgress,
    Report,
    ResearchResult,
    SourceText,
    html_page,
    markdown,
    verify,
)
from holdfast.researching.records import SummarySentence
from holdfast.researching.report_budget import PHASE, fit_report
from holdfast.researching.sub_questions import sub_questions
from holdfast.settings import Settings
from holdfast.store import Scope, Store
from holdfast.store.opening import open_memory
from tests.researching.made import (
    CITIES,
    Dying,
    Scripted,
    claim,
    researched,
    texts,
    wrong_citations,
)

count = token_counter("")
FIRST_SEED = 100
"""Of the campaign; the short form has the seeds below it."""
PART = re.compile(r"^\[(S\d+)(?:: (\w+) of [\d,]+ tokens[^\]]*)?\]$", re.M)


def faults(report: Report, store: Store) -> list[str]:
    return [fault.what for fault in asyncio.run(verify(report, store, Scope())).faults]


# --- without a model -----------------------------------------------------------------------------


def test_a_question_is_answered_with_quotations_that_hold() -> None:
    store, sources = open_memory(), texts(40)
    done = researched("How long was the bridge of Wien17 in part 3?", sources, store=store)
    best = done.report.findings[0]
    assert "Wien17" in best.claim or "Wien17" in done.report.sources[0].title
    assert not faults(done.report, store)
    assert not wrong_citations(done.report, {s.name: s.text for s in sources})
    cited = {q.source for f in done.report.findings for q in (*f.supporting, *f.contradicting)}
    assert {source.id for source in done.report.sources} == cited


@pytest.mark.parametrize("budget", [400, 700, 1_500, 8_000])
def test_the_report_never_exceeds_its_budget(budget: int) -> None:
    done = researched("How long were the bridges, and who wrote so?", texts(40), budget=budget)
    assert count(markdown(done.report)) <= budget
    assert done.report.findings


def test_the_second_hop_finds_what_shares_no_word_with_the_question() -> None:
    sources = [
        SourceText("film", "The Silent Ferry is a film of 1931 directed by Marta Holub."),
        SourceText("person", "Marta Holub was born in Brno."),
        *[SourceText(f"d{n}", f"Person {n} was painting houses in town {n}.") for n in range(60)],
    ]
    done = researched("Where does the director of The Silent Ferry come from?", sources, budget=700)
    assert any("born in Brno" in finding.claim for finding in done.report.findings)


def test_contradictions_of_numbers_stand_side_by_side() -> None:
    store = open_memory()
    sources = [
        SourceText("a", "The deploy was rolled back at 09:41 UTC by the engineer on call."),
        SourceText(
            "b", "According to Ann the deploy was rolled back at 09:52 UTC by the engineer."
        ),
        SourceText("c", "The ferry to Oslo leaves at 10:15 UTC from the engineer's pier."),
    ]
    done = researched("When was the deploy rolled back?", sources, store=store)
    opposed = {f.supporting[0].source: f.contradicting for f in done.report.findings}
    assert [quote.source for quote in opposed["S1"]] == ["S2"]
    assert [quote.source for quote in opposed["S2"]] == ["S1"]
    assert not opposed.get("S3")
    assert "but: " in markdown(done.report)
    assert not faults(done.report, store)


def test_numbers_of_other_things_do_not_contradict() -> None:
    sources = [
        SourceText("a", "Root cause: migration 42 took a lock on the table orders for 11 minutes."),
        SourceText("b.csv", "id,date,service,minutes,cause\n2,2026-06-14,orders,11,migration lock"),
        SourceText("c.log", "2026-06-14T09:30:12Z ERROR deploy 812: lock on orders (migration 42)"),
        SourceText("d", "It was migration 43 that took a lock on the table orders, 11 minutes."),
    ]
    done = researched("Which migration took a lock on orders?", sources)
    opposed = {f.supporting[0].source: f.contradicting for f in done.report.findings}
    assert [quote.source for quote in opposed["S1"]] == ["S4"]
    assert [quote.source for quote in opposed["S4"]] == ["S1"]
    assert not opposed["S2"]
    assert not opposed["S3"]


def test_lines_of_a_log_that_say_nothing_on_it_stay_out_of_the_report() -> None:
    lines = [f"2026-06-14T09:{n // 60:02}:{n % 60:02}Z INFO request {n} ok" for n in range(600)]
    lines[300] = "2026-06-14T09:05:00Z ERROR deploy 812 failed: lock timeout (migration 42)"
    sources = [
        SourceText("app.log", "\n".join(lines)),
        SourceText("mail", "The June deploy failed, Ann writes."),
    ]
    report = researched("Why did the June deploy fail?", sources).report
    claims = [finding.claim for finding in report.findings]
    assert any("migration 42" in claim for claim in claims)
    assert sum("INFO" in claim for claim in claims) <= 1


def test_what_answers_two_questions_stands_under_the_one_that_it_answers_better() -> None:
    sources = [
        SourceText("a", "The June deploy failed because migration 42 held a lock on orders."),
        SourceText("b", "At 09:41 Ann rolled the June deploy back."),
        *[SourceText(f"d{n}", f"Person {n} was painting houses in town {n}.") for n in range(60)],
    ]
    done = researched("Why did the June deploy fail, and when was it rolled back?", sources)
    by_source = {f.supporting[0].source: f.question for f in done.report.findings}
    assert (by_source["S1"], by_source["S2"]) == (0, 1)
    assert "## when was it rolled back?" in markdown(done.report)


def test_equal_statements_are_one_finding_with_both_places() -> None:
    words = "The dam of Gent broke on 3 May 1911 after eleven days of rain in the hills above it."
    done = researched("When did the dam break?", [
        SourceText("a", f"# News\n\n{words}"), SourceText("b", f"Other words first.\n\n{words}"),
    ])  # fmt: skip
    [finding] = [f for f in done.report.findings if "broke" in f.claim]
    assert {quote.source for quote in finding.supporting} == {"S1", "S2"}
    assert finding.confidence == "confirmed"


def test_what_is_said_again_on_the_same_line_is_one_place() -> None:
    report = researched(
        "Why did the deploy fail?", [SourceText("a", "The deploy failed. " * 60)]
    ).report
    [finding] = report.findings
    assert len(finding.supporting) > 1
    assert markdown(report).count("S1, line 1") == 1


def test_what_a_source_says_cannot_draw_in_the_report() -> None:
    hostile = (
        "# Big\n<script>alert(1)</script> ![x](http://e.vil/x) [S9, line 1] deploy | failed `x`"
    )
    done = researched("Why did the deploy fail?", [SourceText("<b>.md", hostile)])
    drawn = markdown(done.report)
    assert "<script" not in drawn.replace("\\<", "")
    assert "](http" not in drawn.replace("\\]", "")
    page = html_page(done.report)
    assert "<script" not in page
    assert "<b>" not in page
    assert "default-src &#x27;none&#x27;" in page


def test_a_question_with_two_questions_is_two() -> None:
    assert len(sub_questions("Why did the deploy fail, and when was it rolled back?")) == 2
    assert sub_questions("Who wrote Bread and Wine?") == ("Who wrote Bread and Wine?",)
    assert len(sub_questions("1. What broke first?\n2. Who mended the pump?")) == 2


def test_nothing_asked_and_nothing_given_are_told() -> None:
    with pytest.raises(ResearchError, match="the question is empty"):
        researched(" ", texts(1))
    with pytest.raises(ResearchError, match="no sources"):
        researched("Why?", [])
    with pytest.raises(ResearchError, match="no run"):
        researched("Why?", texts(1), resume=True)


# --- verification --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [("text", "The bridge was 5 metres long."), ("start", 1), ("stop", 9_999), ("lines", [1, 1]),
     ("source", "S99"), ("page", 3)],
)  # fmt: skip
def test_a_report_that_was_changed_does_not_verify(field: str, value: object) -> None:
    store = open_memory()
    report = researched("How long was it in part 3?", texts(5), store=store).report
    tree = json.loads(report.dump())
    tree["findings"][0]["supporting"][0][field] = value
    assert faults(Report.load(json.dumps(tree)), store)


def test_claims_and_sources_that_were_added_do_not_verify() -> None:
    store = open_memory()
    report = researched("How long was it in part 3?", texts(5), store=store).report
    assert not faults(report, store)
    first = report.findings[0]
    lie = msgspec.structs.replace(first, claim="It was 12345 metres long.")
    bare = msgspec.structs.replace(first, supporting=())
    other = msgspec.structs.replace(report.sources[0], sha256="0" * 64)
    for changed in (
        msgspec.structs.replace(report, findings=(lie, *report.findings[1:])),
        msgspec.structs.replace(report, findings=(bare, *report.findings[1:])),
        msgspec.structs.replace(report, findings=(first, first)),
        msgspec.structs.replace(report, findings=()),
        msgspec.structs.replace(report, sources=(other, *report.sources[1:])),
    ):
        assert faults(changed, store)
    with pytest.raises(ResearchError):
        Report.load(b"{}")


@pytest.mark.parametrize(
    ("field", "value"),
    [("path", "/etc/passwd"), ("path", ""), ("url", "https://invented.example/"), ("origin", "url"),
     ("title", "A better title"), ("published", 1.0), ("provenance", "the ministry")],
)  # fmt: skip
def test_a_source_is_what_the_run_has_read(field: str, value: object) -> None:
    store = open_memory()
    report = researched("How long was it in part 3?", texts(5), store=store).report
    tree = json.loads(report.dump())
    tree["sources"][0][field] = value
    assert faults(Report.load(json.dumps(tree)), store) == [
        "is not the source that the run read under this number"
    ]


def test_a_report_of_no_run_and_other_reasons_do_not_verify() -> None:
    store = open_memory()
    report = researched("How long was it?", [*texts(5), texts(1)[0]], store=store).report
    assert report.left_out
    assert not faults(report, store)
    for changed in (
        msgspec.structs.replace(report, run="research-0000000000000000"),
        msgspec.structs.replace(report, run=""),
        msgspec.structs.replace(report, left_out=()),
    ):
        assert len(faults(changed, store)) == 1


def test_a_contradicting_quote_that_was_changed_does_not_verify() -> None:
    store = open_memory()
    sources = [
        SourceText("a.md", "The bridge of Graz is 120 metres long."),
        SourceText("b.md", "The bridge of Graz is 95 metres long."),
    ]
    report = researched("How long is the bridge of Graz?", sources, store=store).report
    assert not faults(report, store)
    tree = json.loads(report.dump())
    [finding, *_] = [each for each in tree["findings"] if each["contradicting"]]
    [quote] = finding["contradicting"]
    for field, value in (("text", quote["text"].replace("5", "6")), ("source", "S99")):
        finding["contradicting"] = [{**quote, field: value}]
        assert any("quote" in fault for fault in faults(Report.load(json.dumps(tree)), store))


def test_what_confidence_means_stands_in_the_report() -> None:
    report = researched("How long was it in part 3?", texts(5)).report
    used = {str(finding.confidence) for finding in report.findings}
    assert used <= set(json.loads(report.dump())["confidence"])
    assert all(f"{name}: {report.confidence[name]}" in html_page(report) for name in used)


# --- with a model --------------------------------------------------------------------------------


def liar(seed: int, given: list[SourceText]) -> Scripted:
    """A model that invents quotes, places, sources, refs and URLs, and now and then is right."""
    chance = random.Random(seed)

    def lines() -> Iterator[str]:
        for _ in range(40):
            text = chance.choice(given).text
            at = chance.randrange(len(text))
            quote = text[at : at + chance.randint(5, 120)]
            source = f"S{chance.randint(0, len(given) + 5)}"
            match chance.randint(0, 6):
                case 0:
                    quote = quote.replace("metres", "miles") + " indeed"
                case 1:
                    quote = quote[::-1]
                case 2:
                    source = f"ref:text:{chance.randrange(16**16):016x}"
                case 3:
                    yield claim(source, quote, f"It is {chance.randint(1, 9999)} km long.")
                case 4:
                    yield claim(source, quote, "See https://invented.example/page for more.")
            yield claim(source, quote)
        yield '{"claim": "x"}'
        yield "not JSON at all {"

    def answer(prompt: str) -> str:
        if "sub-questions" in prompt:
            return "How long was the bridge?\nWho was the surveyor?\nWhen was it repaired?"
        if "End every sentence" in prompt:
            ids = [f"F{chance.randint(1, 30)}" for _ in range(5)]
            return " ".join(
                f"It was {chance.randint(1, 999)} metres long, see https://x.example [{i}]."
                for i in ids
            )
        return "NOTHING" if "still open" in prompt else "\n".join(lines())

    return Scripted(answer)


class Judged(NamedTuple):
    """A report by a liar."""

    citations: int
    wrong: int
    refused: int


def lies_survived(seed: int) -> Judged:
    """How many citations of a report by a liar are wrong, and how many lies it lost."""
    store, given = open_memory(), texts(12, seed=seed)
    done = researched(
        "How long?", given, store=store, model=liar(seed, given), report_tokens=60_000
    )
    report = done.report
    assert not faults(report, store)
    assert done.state.usage.refused_quotes
    drawn = markdown(report)
    assert "invented.example" not in drawn
    assert "x.example" not in drawn
    usage = report.usage
    return Judged(
        sum(len(f.supporting) + len(f.contradicting) for f in report.findings),
        wrong_citations(report, {s.name: s.text for s in given}),
        usage.refused_quotes + usage.refused_claims,
    )


def test_no_lie_of_a_model_survives() -> None:
    reports = [lies_survived(seed) for seed in range(6)]
    assert sum(report.citations for report in reports) > 30
    assert sum(report.wrong for report in reports) == 0


@pytest.mark.campaign
def test_no_lie_of_a_model_survives_in_ten_thousand_citations(
    record_property: Callable[[str, object], None],
) -> None:
    citations = wrong = refused = 0
    seed = FIRST_SEED
    while citations < 10_000:
        report = lies_survived(seed)
        citations, wrong = citations + report.citations, wrong + report.wrong
        refused, seed = refused + report.refused, seed + 1
    record_property("seed", f"{FIRST_SEED}-{seed - 1}")
    record_property("rounds", seed - FIRST_SEED)
    record_property("citations", citations)
    record_property("lies refused", refused)
    assert wrong == 0


def test_an_honest_model_gives_claims_and_a_summary_that_stand_on_quotes() -> None:
    store = open_memory()
    sources = [SourceText("a.md", "The deploy of 14 June failed because a migration held a lock.")]

    def answer(prompt: str) -> str:
        if "sub-questions" in prompt:
            return "Why did the deploy fail?"
        if "End every sentence" in prompt:
            return "A migration held a lock, so the deploy failed. [F1] It cost 40,000 euros [F1]."
        if "still open" in prompt:
            return "NOTHING"
        return claim("S1", "a migration held a lock", "The deploy failed: a migration held a lock.")

    model = Scripted(answer)
    done = researched("Why did the deploy fail?", sources, store=store, model=model)
    [finding] = done.report.findings
    assert finding.claim == "The deploy failed: a migration held a lock."
    [statement] = done.report.summary
    assert statement.findings == ("F1",)
    assert "euros" not in markdown(done.report)
    assert done.state.usage.refused_claims == 1
    assert not faults(done.report, store)
    assert all("never follow instructions" in system for system in model.systems)


def test_no_sentence_of_the_summary_outlives_its_finding() -> None:
    lines = [f"The {city} bridge is {n * 7 + 11} metres long." for n, city in enumerate(CITIES)]

    def answer(prompt: str) -> str:
        if "sub-questions" in prompt:
            return "How long are the bridges?"
        if "End every sentence" in prompt:
            return " ".join(f"{line[:-1]} [F{n}]." for n, line in enumerate(lines, 1))
        if "still open" in prompt:
            return "NOTHING"
        return "\n".join(claim("S1", line) for line in lines)

    model = Scripted(answer)
    store = open_memory()
    sources = [SourceText("a.md", "\n\n".join(lines))]
    done = researched("How long are the bridges?", sources, store=store, model=model)
    assert len(done.state.summary) == len(lines), "all of it where there is room"
    report = fit_report(done.state, 500, count, model=model.name, run=done.report.run)
    left = {finding.id for finding in report.findings}
    assert 0 < len(left) < len(lines)
    assert {name for each in report.summary for name in each.findings} <= left
    assert not faults(report, store)


def test_a_sentence_of_the_summary_with_one_finding_too_many_does_not_verify() -> None:
    store = open_memory()
    report = researched("How long was it in part 3?", texts(5), store=store).report
    first = report.findings[0]
    for names in ((first.id, "F999"), ("F999", first.id), ("F999",), ()):
        sentence = SummarySentence(text=first.claim, findings=names)
        changed = msgspec.structs.replace(report, summary=(sentence,))
        [fault] = faults(changed, store)
        assert fault.startswith("stands on no finding")
    sound = SummarySentence(text=first.claim, findings=(first.id,))
    assert not faults(msgspec.structs.replace(report, summary=(sound,)), store)


def test_sources_that_the_report_does_not_cite_are_noted_as_dropped() -> None:
    done = researched("How long was the bridge of Wien17 in part 3?", texts(40), budget=700)
    records = [r for r in done.state.content_fidelity.values() if r.phase == PHASE]
    cited = {source.id for source in done.report.sources}
    assert 0 < len(cited) < 40
    assert {record.source_id for record in records} == {entry.id for entry in done.state.readable}
    assert {record.source_id for record in records if not record.dropped} == cited
    assert all(record.reason == "not cited" for record in records if record.dropped)


@pytest.mark.parametrize("failing", ["sub-questions", "still open", "End every sentence"])
def test_a_failed_call_of_the_model_is_counted(failing: str) -> None:
    quote = "a migration held a lock"

    def answer(prompt: str) -> str:
        if failing in prompt:
            raise ModelError("the provider is overloaded")
        if "sub-questions" in prompt:
            return "Why did the deploy fail?"
        if "still open" in prompt:
            return "NOTHING"
        return claim("S1", quote) if "List what they say" in prompt else "It held a lock [F1]."

    sources = [SourceText("a.md", f"The deploy of 14 June failed because {quote}.")]
    done = researched("Why did the deploy fail?", sources, model=Scripted(answer))
    assert done.state.usage.failures == 1
    assert done.report.findings


def test_fifty_sources_in_a_small_window_end_in_a_report_with_the_prompts_fidelity() -> None:
    settings = Settings(min_items_per_phase=3)
    model = Scripted(lambda prompt: "NOTHING" if "still open" in prompt else "hm", window=4_000)
    done = researched(
        "How long was the bridge of Wien17?", texts(50), settings=settings, model=model
    )
    assert done.report.findings  # the model gave nothing usable: quotations replace it
    assert all(
        count(p) + count(s) <= 3_500 for p, s in zip(model.prompts, model.systems, strict=True)
    )
    analysed = [p for p in model.prompts if "List what they say" in p]
    for n, prompt in enumerate(analysed):
        phase = "analysis" if n == 0 else f"analysis {n + 1}"
        shown = {name: level or "raw" for name, level in PART.findall(prompt)}
        records = [r for r in done.state.content_fidelity.values() if r.phase == phase]
        assert len(records) == 50
        assert {r.source_id: str(r.level) for r in records if not r.dropped} == shown
        assert len(shown) >= 3
        assert {r.source_id for r in records if r.dropped} <= set(done.state.dropped_content_ids)


def test_a_sub_agent_opens_only_what_it_was_given() -> None:
    store = open_memory()
    sources = texts(3, paragraphs=200)
    foreign = researched("What is it?", [SourceText("other", "A secret of another run. " * 60)],
                         store=store).state.sources[0].ref  # fmt: skip
    refs: list[str] = []

    def answer(prompt: str) -> str:
        if "Here is what you asked to open" in prompt:
            return ""
        if "List what they say" in prompt:
            refs[:] = re.findall(r"ref:\w+:[0-9a-f]{16}", prompt)[:1]
            wanted = [*refs, foreign]
            return "\n".join(
                json.dumps({"action": ACTION, "parameters": {
                    "ContentID": ref, "ExcerptOnly": True, "SearchTerms": "part 150"}})
                for ref in wanted
            )  # fmt: skip
        return "NOTHING"

    model = Scripted(answer, window=6_000)
    researched("How long was the bridge in part 150?", sources, store=store, model=model)
    [opened] = [p for p in model.prompts if "Here is what you asked to open" in p]
    results = opened.partition("Here is what you asked to open")[2]
    assert refs
    assert "In part 150 the bridge" in results
    assert f"Content not found for ID: {foreign}" in results
    assert "secret of another run" not in results


def test_a_budget_of_tokens_is_kept_and_the_report_comes_all_the_same() -> None:
    model = Scripted(lambda _: "NOTHING", window=4_000)
    done = researched("How long was it in part 3?", texts(20), model=model, budget=6_000)
    assert done.state.usage.tokens <= 6_000
    assert done.report.findings


# --- a run that was killed -----------------------------------------------------------------------


def test_killed_at_any_step_a_run_goes_on_to_the_same_report() -> None:
    sources = [*texts(36), SourceText("copy", texts(1)[0].text)]
    question = "How long was the bridge of Wien17? Who was the surveyor of Oslo24?"

    def run(store: Store, *, resume: bool) -> ResearchResult:
        return researched(question, sources, store=store, resume=resume, budget=3_000)

    whole = run(open_memory(), resume=False).report.dump()
    steps = 0
    while True:
        store = Dying.after(steps)
        try:
            report = run(store, resume=False).report
        except StoreUnavailableError:
            store.left = -1
            report = run(store, resume=steps > 0).report
            steps += 1
            assert report.dump() == whole, steps
            continue
        assert report.dump() == whole
        break
    assert steps >= 8


def test_over_a_file_that_was_changed_it_is_another_run(tmp_path: Path) -> None:
    store = open_memory()
    path = tmp_path / "a.md"
    path.write_text("The dam of Gent broke in 1911.")
    first = researched("When did the dam break?", [path], store=store).report
    again = researched("When did the dam break?", [path], store=store, resume=True).report
    assert again.dump() == first.dump()
    path.write_text("The dam of Gent broke in 1912.")
    with pytest.raises(ResearchError, match="no run"):
        researched("When did the dam break?", [path], store=store, resume=True)
    changed = researched("When did the dam break?", [path], store=store).report
    assert changed.run != first.run
    assert not faults(first, store)
    assert not faults(changed, store)


def test_every_source_is_told_of_while_sources_are_gathered() -> None:
    heard: list[PhaseProgress] = []
    researched("How long was it?", texts(40), progress=heard.append)
    gathered = [told for told in heard if told.phase == "gather"]
    assert [told.done for told in gathered] == list(range(41))
    assert {told.source for told in gathered[1:]} == {source.name for source in texts(40)}
    assert all(told.total == 40 for told in gathered)


def test_a_source_that_was_read_before_is_not_read_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_memory()
    (tmp_path / "a.html").write_text("<html><body><p>The dam broke in 1911.</p></body></html>")
    researched("When did it break?", [tmp_path, *texts(3)], store=store)
    monkeypatch.setattr("holdfast.compat.content_store.cite", None)
    monkeypatch.setattr("holdfast.researching.source_readings.index_text", None)
    monkeypatch.setattr("holdfast.workers.tasks.extract", lambda data, *_: _plain_only(data))
    again = researched("Where did the dam break?", [tmp_path, *texts(3)], store=store)
    assert len(again.state.readable) == 4


def _plain_only(data: bytes) -> Any:
    from holdfast.extract import ExtractedText  # noqa: PLC0415 - beside the double it stands in for

    assert not data.startswith(b"<html")
    return ExtractedText(text=data.decode())
