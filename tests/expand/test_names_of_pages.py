"""A page's description of itself: the lines, passages and characters that it shows."""

from __future__ import annotations

import json
import re

from holdfast.expand.region import between_words
from tests.expand.made import LOG, opened, pages


def test_each_page_of_a_run_of_lines_names_the_lines_it_shows() -> None:
    lines = LOG.splitlines(keepends=True)
    shown = pages(LOG, {"lines": "11-200", "max_tokens": 300})
    assert len(shown) > 3
    following = 11
    for page in shown:
        [(first, last)] = re.findall(r"lines (\d+)-(\d+)", page.where)
        assert int(first) == following
        assert page.content == "".join(lines[int(first) - 1 : int(last)])
        following = int(last) + 1
    assert following == 201


def test_passages_far_from_the_beginning_are_named_by_their_own_numbers() -> None:
    page = "".join(f"<p>Paragraph {n} of a page. {'Many words. ' * 30}</p>" for n in range(1, 121))
    html = f"<!doctype html><html><body><article>{page}</article></body></html>"
    made = opened(html, {"around": "paragraphs 90-91", "max_tokens": 400}, "html")
    [(first, last)] = re.findall(r"paragraphs (\d+)-(\d+)", made.where)
    assert int(first) <= 90
    assert int(last) >= 91
    assert "Paragraph 90 of a page" in made.content
    assert "Paragraph 91 of a page" in made.content


def test_a_text_without_lines_is_cut_behind_a_space() -> None:
    text = "a few words of eleven letters " * 20
    for limit in range(60, 200):
        at = between_words(text, 0, limit)
        assert limit - 40 < at <= limit
        assert text[at - 1] == " "


def test_a_text_without_spaces_is_cut_where_it_must_be_but_not_inside_a_character() -> None:
    assert between_words("a" * 300, 0, 200) == 200
    assert between_words("e\u0301" * 150, 0, 201) == 200


def test_rows_of_a_path_are_those_of_that_array() -> None:
    value = {
        "first": [{"n": n, "text": "one " * 20} for n in range(50)],
        "second": [{"m": n, "text": "two " * 20} for n in range(50)],
    }
    text = json.dumps(value)
    for path, key in (("$.first", '"n"'), ("$.second", '"m"')):
        made = opened(text, {"around": f"rows 20-21 of {path}", "max_tokens": 300}, "json_tree")
        assert f"{key}: 19" in made.content
        assert f"{key}: 20" in made.content


def test_what_is_found_in_one_long_line_is_shown_in_parts_of_it() -> None:
    text = f"first\n{'a word ' * 3_000}needle {'and more ' * 3_000}\nlast needle\n"
    made = opened(text, {"pattern": "needle", "max_tokens": 300})
    assert made.content.count("needle") == 2


def test_lines_that_are_found_are_shown_whole_and_numbered() -> None:
    text = "\n".join(["a needle"] * 600)
    found = opened(text, {"pattern": "needle", "max_tokens": 200}).content.splitlines()
    assert found == [f"{n}: a needle" for n in range(1, len(found) + 1)]


def test_each_page_of_an_array_names_the_rows_it_shows() -> None:
    text = json.dumps({"rows": [{"n": n, "text": "x " * 20} for n in range(60)]})
    for options, start in (({"path": "$.rows"}, 1), ({"offset": 10, "limit": 30}, 11)):
        following = start
        for page in pages(text, {**options, "max_tokens": 300}, "json_tree"):
            [(first, last)] = re.findall(r"rows (\d+)-(\d+) of \$\.rows", page.where)
            assert int(first) == following
            numbers = [int(n) + 1 for n in re.findall(r'"n": (\d+)', page.content)]
            assert numbers == list(range(int(first), int(last) + 1))
            following = int(last) + 1


def test_each_page_of_an_object_names_the_keys_it_shows() -> None:
    text = json.dumps({f"key{n}": "x " * 40 for n in range(1, 61)})
    following = 1
    for page in pages(text, {"max_tokens": 300}, "json_tree"):
        [(first, last)] = re.findall(r"keys (\d+)-(\d+) of \$", page.where)
        assert int(first) == following
        numbers = [int(n) for n in re.findall(r'"key(\d+)"', page.content)]
        assert numbers == list(range(int(first), int(last) + 1))
        following = int(last) + 1


def test_each_page_of_a_table_names_the_rows_it_shows() -> None:
    text = "id,text\n" + "".join(f"{n},{'x ' * 30}\n" for n in range(1, 61))
    following = 11
    for page in pages(text, {"offset": 10, "limit": 30, "max_tokens": 300}, "csv"):
        [(first, last)] = re.findall(r"rows (\d+)-(\d+)", page.where)
        assert int(first) == following
        numbers = [int(n) for n in re.findall(r"^(\d+),", page.content, re.MULTILINE)]
        assert numbers == list(range(int(first), int(last) + 1))
        following = int(last) + 1
    assert following == 41


def test_an_emoji_made_of_several_is_never_cut_apart() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    text = family * 40
    for limit in range(60, 120):
        at = between_words(text, 0, limit)
        assert at % len(family) == 0, limit


def numbers_in(where: str) -> set[int]:
    """The lines that a place names; of several places between two, only the ends are known."""
    ranges = re.findall(r"lines (\d+)-(\d+)", where)
    return {n for first, last in ranges for n in range(int(first), int(last) + 1)}


def test_each_page_of_hits_names_the_lines_it_shows_and_no_more() -> None:
    text = "\n".join("a needle" if n % 9 < 7 else f"line {n}" for n in range(1, 400))
    shown = pages(text, {"pattern": "needle", "max_tokens": 120})
    assert len(shown) > 5
    for page in shown:
        here = {int(n) for n in re.findall(r"^(\d+)[:-] ", page.content, re.M)}
        assert here, page.where
        assert numbers_in(page.where) <= here
        assert {min(here), max(here)} <= numbers_in(page.where)
        if "more places" not in page.where:
            assert numbers_in(page.where) == here


def test_a_part_of_a_long_line_or_value_is_named_by_its_characters() -> None:
    line = f"{'a word ' * 300}needle {'and more ' * 300}"
    for text in (f"first\n{line}\nlast\n", json.dumps({"rows": [{"text": line}]})):
        page = opened(text, {"pattern": "needle"})
        [(first, last)] = re.findall(r"characters (\d+)-(\d+)", page.where)
        assert int(last) - int(first) < 400
        assert "needle" in text[int(first) : int(last)]
        assert text[int(first) : int(last)] in page.content
        again = opened(text, {"around": page.where.rpartition("; ")[2], "max_tokens": 200})
        assert "line 3" in page.where or "needle" in again.content
