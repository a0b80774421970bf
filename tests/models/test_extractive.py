"""The offline model: quotations with their place, openings before them, and never a failure."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.expand.tool import NAME, definition
from holdfast.guard.final_turn import final_turn_guidance
from holdfast.models import OfflineAnswer, Opening, answer, count
from holdfast.models.extractive import INTRODUCTION
from tests.fitting.test_citing import DIALECTS, chat, in_dialect, log

REF = "ref:log:00112233445566aa"
OTHER_REF = "ref:csv:ffeeddccbbaa9988"
CITATION = f"[Stored as {REF}; 900 lines, 40 KB; excerpts]\nLog, 900 lines: disks of the databases"
PAGE = (
    f"[{REF} lines 310-311 (1 of 30 passages match)]\n"
    "```\n- ok\n  the disk of db-7 is full (lines 310-311)\n```"
)


def said(
    body: dict[str, Any], dialect: str = "openai-chat", *, tool: str | None = None
) -> OfflineAnswer:
    return answer(holdfast.read(in_dialect(body, dialect), dialect), expansion_tool=tool)


def opened(body: dict[str, Any], page: str, ref: str = REF) -> dict[str, Any]:
    call = {"id": "call_x", "type": "function",
            "function": {"name": NAME, "arguments": json.dumps({"ref": ref})}}  # fmt: skip
    body["messages"] += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_x", "content": page},
    ]
    return body


# --- quotations ----------------------------------------------------------------------------------

FACTS = "The office in Oslo opens at nine.\n\nThe office in Bergen opens at half past ten."
ASKED = "When does the office in Bergen open?"


@pytest.mark.parametrize(
    "words",
    [
        f"{FACTS}\n\n{ASKED}",
        f"{ASKED}\n\n{FACTS}",
        f"{FACTS} {ASKED}".replace("\n\n", " "),
        f"{ASKED}\n{FACTS}".replace("\n\n", "\n"),
        f"```\n{FACTS}\n```\n{ASKED}",
        f"<facts>\n{FACTS}\n</facts>\n{ASKED}",
        f"{FACTS}\n\n{log(300)}\n\n{ASKED}",
    ],
    ids=["behind", "before", "one line", "lines", "fence", "tag", "long"],
)
def test_a_document_and_a_question_in_one_message_are_told_apart(words: str) -> None:
    for dialect in DIALECTS:
        body = {"model": "gpt-4o", "messages": [{"role": "user", "content": words}]}
        text = said(body, dialect).text
        assert "> The office in Bergen opens at half past ten." in text
        assert f"> {ASKED}" not in text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_passage_on_the_question_is_quoted_with_its_place(dialect: str) -> None:
    lines = [*log(300).splitlines()[:200], "the disk of db-7 is full", *log(300).splitlines()[200:]]
    text = said(chat("\n".join(lines), question="Which disk is full?"), dialect).text
    assert text.startswith(INTRODUCTION)
    assert "From the result of `read_log`" in text
    assert "the disk of db-7 is full" in text
    if dialect != "gemini":  # there a text is wrapped in an object
        place = r"From the result of `read_log`, lines? (\d+)(?:-(\d+))?:"
        [(first, last)] = re.findall(place, text)
        quoted = [line[2:] for line in text.splitlines() if line.startswith("> ")]
        assert quoted == lines[int(first) - 1 : int(last or first)]


def test_what_the_user_said_and_earlier_answers_are_quoted_too() -> None:
    body = {
        "messages": [
            {"role": "system", "content": "The budget of each project is 40 crowns."},
            {"role": "user", "content": "My cat is called Mirabelle."},
            {"role": "assistant", "content": "Cats like Mirabelle sleep a lot."},
            {"role": "user", "content": "What is my cat called, and the budget?"},
        ]
    }
    text = said(body).text
    assert "From the instructions, line 1:\n> The budget of each project" in text
    assert "From what you said in message 2, line 1:\n> My cat is called Mirabelle." in text
    assert "From the answer in message 3, line 1:\n> Cats like Mirabelle" in text
    assert "> What is my cat called" not in text


def test_it_does_not_quote_its_own_quotations() -> None:
    body = chat("the disk of db-7 is full", question="Which disk is full?")
    first = said(body).text
    body["messages"] += [
        {"role": "assistant", "content": first},
        {"role": "user", "content": "Which disk, again?"},
    ]
    assert said(body).text == first


@pytest.mark.parametrize("form", ["{question}\n\n{text}", "{text}\n\n{question}"])
def test_a_pasted_text_is_what_the_question_is_about(form: str) -> None:
    question = "Which disk is full?"
    text = "\n\n".join([log(20), "the disk of db-7 is full", log(20, 1)])
    body = {"messages": [{"role": "user", "content": form.format(question=question, text=text)}]}
    spoken = said(body)
    assert "> the disk of db-7 is full" in spoken.text
    assert question not in spoken.text


def test_the_word_that_a_last_turn_is_the_last_is_no_question() -> None:
    body = chat("the disk of db-7 is full", question="Which disk is full?")
    plain = said(body)
    body["messages"].append({"role": "user", "content": final_turn_guidance(())})
    assert said(body) == plain


def test_without_a_match_it_says_what_there_is() -> None:
    text = said(chat(*(f"result {n}" for n in range(12)), question="Bananas?")).text
    assert "Nothing in this conversation bears on the question." in text
    assert "- 4 older texts" in text
    assert "- the result of `read_log`, 9 characters" in text


# --- openings ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_citation_on_the_question_is_opened_first_and_then_quoted(dialect: str) -> None:
    body = chat(CITATION, question="Which disk is full?")
    assert said(body, dialect, tool=NAME) == OfflineAnswer(
        openings=(Opening(REF, "Which disk is full?"),)
    )
    text = said(opened(body, PAGE), dialect, tool=NAME).text
    assert f"From the stored {REF}" in text
    assert "the disk of db-7 is full" in text
    assert "Stored as" not in text  # the citation shows no more than the opened part


@pytest.mark.parametrize(
    "where",
    [
        *("lines 310-311", "row 4", "rows 4-9 of $.disks", "paragraph 9", "characters 0-214"),
        *("$.disks[3].name", "section: Disks (lines 3-9)", "$.disks[3], characters 10-90"),
    ],
)
def test_a_quotation_of_what_was_opened_names_its_place_there(where: str) -> None:
    head = f"[{REF} {where} (1 of 30 passages match)]"
    page = f"{head}\n```\n- {where}: the disk of db-7 is full\n```"
    text = said(opened(chat(CITATION, question="Which disk is full?"), page), tool=NAME).text
    assert f"From the stored {REF}, {where}:\n> the disk of db-7 is full" in text


def test_a_page_of_what_was_opened_is_quoted_without_its_heading() -> None:
    page = f"[{REF} lines 40-41 of 900]\n````\nok\n```\nthe disk of db-7 is full\n````"
    text = said(
        opened(chat(CITATION, question=f"Which disk is full, {REF}?"), page), tool=NAME
    ).text
    assert "> the disk of db-7 is full" in text
    assert "> [ref:" not in text


def test_the_word_on_what_remains_is_not_quoted() -> None:
    page = f"{PAGE}\n[57 passages remain: expand_ref with the same options and page=2]"
    text = said(opened(chat(CITATION, question="Which disk is full?"), page), tool=NAME).text
    assert "> the disk of db-7 is full" in text
    assert "remain" not in text


def test_without_the_tool_nothing_is_opened() -> None:
    assert said(chat(CITATION, question="Which disk is full?")).openings == ()


def test_a_citation_that_does_not_bear_on_the_question_stays_closed() -> None:
    body = chat(
        CITATION, f"[{OTHER_REF}] salaries of cooks", "a plum costs 3", question="salaries?"
    )
    assert [one.ref_id for one in said(body, tool=NAME).openings] == [OTHER_REF]
    body["messages"].append({"role": "user", "content": "How much is a plum?"})
    assert said(body, tool=NAME).openings == ()


def test_where_nothing_matches_the_latest_ref_is_opened() -> None:
    body = chat(CITATION, f"[{OTHER_REF}] salaries of cooks", question="Bananas?")
    assert [one.ref_id for one in said(body, tool=NAME).openings] == [OTHER_REF]


def test_what_was_opened_for_an_older_question_is_opened_anew() -> None:
    body = opened(chat(CITATION, question="Which disk is full?"), PAGE)
    body["messages"] += [
        {"role": "assistant", "content": "db-7"},
        {"role": "user", "content": "Which databases have other disks?"},
    ]
    assert [one.ref_id for one in said(body, tool=NAME).openings] == [REF]


def test_a_citation_that_shows_the_answer_stays_closed() -> None:
    shown = f"{CITATION}\nBest matches:\n- ok\n  the disk of db-7 is full (lines 310-311)"
    spoken = said(chat(shown, question="Which disk is full?"), tool=NAME)
    assert spoken.openings == ()
    assert "the disk of db-7 is full" in spoken.text


def test_a_line_that_only_shares_a_word_with_the_question_is_no_answer() -> None:
    shown = f"{CITATION}\nBeginning and end:\n- lines 1-1: the disk of db-1 in rack 4 is new"
    question = "How many writes did the disk of db-9 in rack 77 serve on Sunday?"
    body = chat(shown, question=question)
    assert said(body, tool=NAME).openings == (Opening(REF, question),)


def test_the_place_of_a_quotation_is_a_part_of_it() -> None:
    """The names of fields are only in the path of a value."""
    shown = f"{CITATION}\nBest matches:\n- $.disks[7].state: full (name: db-7)"
    assert said(chat(shown, question="What is the state of db-7?"), tool=NAME).openings == ()


def test_an_outline_behind_a_quotation_is_no_part_of_it() -> None:
    shown = f"{CITATION}\nKey lines:\n- lines 1-1: disks\nOutline:\nfull backups of db-7"
    assert said(chat(shown, question="Which disk is full?"), tool=NAME).openings


def test_nothing_is_opened_for_a_task_that_is_too_long_for_a_question() -> None:
    steps = [f"Then check the disk of the database in hall {n}x{n}." for n in range(30)]
    assert said(chat(CITATION, question=" ".join(steps)), tool=NAME).openings == ()


RACKS = [f"[ref:log:{n:016x}] disks of rack {n}" for n in range(9)]


def test_one_citation_is_opened_at_a_time() -> None:
    assert len(said(chat(*RACKS, question="Which disk is full?"), tool=NAME).openings) == 1


def test_another_is_opened_if_the_first_did_not_answer_and_then_no_more() -> None:
    body = chat(*RACKS, question="Which disk is full?")
    refs = []
    for _ in range(2):
        [opening] = said(body, tool=NAME).openings
        refs.append(opening.ref_id)
        body = opened(body, f"[{opening.ref_id} lines 1-1 of 9]\n```\nnothing here\n```", refs[-1])
    assert len(set(refs)) == 2
    assert said(body, tool=NAME).pieces


def test_what_was_opened_for_the_same_question_is_not_opened_again() -> None:
    body = chat(CITATION, question="Which disk is full?")
    [opening] = said(body, tool=NAME).openings
    arguments = json.dumps({"ref": REF, "find": opening.query})
    call = {"id": "call_x", "type": "function", "function": {"name": NAME, "arguments": arguments}}
    body["messages"] += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_x", "content": f"[{REF} lines 1-1]\n```\nno\n```"},
        {"role": "assistant", "content": "I do not know."},
        {"role": "user", "content": "Which disk is full?"},
    ]
    assert said(body, tool=NAME).openings == ()


def test_an_opening_that_failed_ends_in_an_answer() -> None:
    body = opened(chat(CITATION, question="Which disk is full?"), "[no content is stored there]")
    assert said(body, tool=NAME).pieces


# --- limits and odd conversations ----------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("most", [1, 2, 7, 30])
def test_an_answer_is_no_longer_than_the_request_allows(dialect: str, most: int) -> None:
    body = chat("the disk of db-7 is full", question="Which disk is full?", max_tokens=most)
    spoken = said(body, dialect)
    assert spoken.cut
    assert 0 < count(spoken.text) <= most
    whole = said(chat("the disk of db-7 is full", question="Which disk is full?"), dialect)
    assert whole.text.startswith(spoken.text)
    assert not whole.cut


@given(st.integers(1, 80), st.text(max_size=300))
def test_a_cut_answer_is_a_beginning_of_the_whole(most: int, found: str) -> None:
    body = chat(f"disk {found}", question="Which disk?")
    whole = said(body).text
    spoken = said({**body, "max_tokens": most})
    assert whole.startswith(spoken.text)
    assert count(spoken.text) <= most
    assert spoken.cut is (spoken.text != whole)


ODD: dict[str, tuple[str, dict[str, Any]]] = {
    "no messages": ("openai-chat", {"model": "m", "messages": []}),
    "no input": ("openai-responses", {"model": "m", "input": ""}),
    "no user": ("openai-chat", {"messages": [{"role": "assistant", "content": "a"}]}),
    "empty texts": ("anthropic", {"messages": [{"role": "user", "content": ""}]}),
    "only an image": (
        "anthropic",
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "image", "source": {"type": "url", "url": "x"}}],
                }
            ]
        },
    ),
    "only a result": (
        "openai-chat",
        {"messages": [{"role": "tool", "tool_call_id": "nobody", "content": "42"}]},
    ),
    "no parts": ("gemini", {"contents": [{"role": "user", "parts": []}]}),
    "stop words only": ("openai-chat", {"messages": [{"role": "user", "content": "the of and"}]}),
    "odd limit": (
        "openai-chat",
        {"max_tokens": "many", "messages": [{"role": "user", "content": "Hello"}]},
    ),
    "zero limit": (
        "openai-chat",
        {"max_tokens": 0, "messages": [{"role": "user", "content": "Hello"}]},
    ),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("tool", [None, NAME])
def test_odd_conversations_are_answered_too(name: str, tool: str | None) -> None:
    dialect, body = ODD[name]
    conversation = holdfast.read(json.dumps(body).encode(), dialect)
    spoken = answer(conversation, expansion_tool=tool)
    assert spoken.text.startswith(INTRODUCTION)


@st.composite
def conversations(draw: st.DrawFn) -> dict[str, Any]:
    words = st.text(max_size=80) | st.sampled_from(
        [CITATION, PAGE, log(40), "disk full?", '{"a": [1, {"b": "disk"}]}', "x" * 700]
    )
    messages: list[dict[str, Any]] = []
    for n in range(draw(st.integers(0, 6))):
        role = draw(st.sampled_from(["user", "assistant", "system", "tool"]))
        extra = {"tool_call_id": f"call_{n}"} if role == "tool" else {}
        messages.append({"role": role, "content": draw(words), **extra})
    return {"model": "m", "messages": messages, "tools": [definition("openai-chat")]}


@given(conversations(), st.sampled_from([None, NAME]))
def test_any_conversation_gets_the_same_answer_twice(
    body: dict[str, Any], tool: str | None
) -> None:
    data = json.dumps(body).encode()
    spoken = answer(holdfast.read(data), expansion_tool=tool)
    assert spoken == answer(holdfast.read(data), expansion_tool=tool)
    assert bool(spoken.pieces) is not bool(spoken.openings)
    held = " ".join(str(message["content"]) for message in body["messages"])
    for line in spoken.text.splitlines():
        if line.startswith("> ") and "…" not in line:
            assert _plain(line[2:]) in _plain(held)


def _plain(text: str) -> str:
    """Quotations are compared by their letters: JSON is quoted as values."""
    return "".join(c for c in text if c.isalnum())


def test_pieces_are_small() -> None:
    rng = random.Random(7)
    words = " ".join(f"disk{rng.randrange(100)}" for _ in range(200))
    spoken = said(chat(words, question="disk5?"))
    assert len(spoken.pieces) > 5
    assert max(map(len, spoken.pieces)) < 60
