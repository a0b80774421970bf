"""Contents that are slow to condense, by name, of any size.

They are what a fetched page, a log or an answer would contain if its author wanted to stop us.
Repeats of the signs of each kind, after a valid beginning; near misses, which match up to the last
character; nesting; very many of a usually rare item. A name always gives the same bytes for the
same size, so that other campaigns can use them too.
"""

from __future__ import annotations

import random
from collections.abc import Callable

Maker = Callable[[int], bytes]

SIGNS = {
    "less": "<",
    "open_tag": "<a",
    "open_tags": "<a ",
    "end_tags": "</a>",
    "comments": "<!---->",
    "open_comments": "<!--",
    "comment_dashes": "<!-- - ",
    "cdata": "<![CDATA[]]>",
    "open_cdata": "<![CDATA[",
    "instructions": "<?a ?>",
    "open_instructions": "<?xml ",
    "entities": "&amp;",
    "open_entities": "&#x",
    "attributes": " a=b",
    "quotes": '"',
    "single_quotes": "'",
    "back_quotes": "`",
    "fences": "```",
    "tilde_fences": "~~~",
    "open_quoted": '"a',
    "quoted": '"a" ',
    "curly_quotes": "\u201c",
    "escapes": "\\",
    "escaped_quotes": "\\'",
    "escaped_double_quotes": '\\"',
    "unicode_escapes": "\\u0041",
    "brackets": "[",
    "closed_brackets": "[]",
    "closing_brackets": "]",
    "braces": "{",
    "closed_braces": "{}",
    "round": "(",
    "closed_round": "()",
    "mixed_brackets": "[{(",
    "round_words": "a(",
    "tuples": "),(",
    "spaced_tuples": ") , (",
    "json_keys": '{"a":',
    "json_lists": "[[1],",
    "dots": ".",
    "dotted": "a.",
    "dotted_digits": "1.",
    "commas": ",",
    "semicolons": ";",
    "bars": "|",
    "colons": ":",
    "slashes": "/",
    "backslash_words": "a\\",
    "dashes": "-",
    "equals": "=",
    "underscores": "_",
    "stars": "*",
    "emphasis": "**a",
    "hashes": "#",
    "pluses": "+",
    "ats": "@",
    "addresses": "a@b.",
    "dollars": "$",
    "percents": "%",
    "backspaces": "\x08",
    "nuls": "\0",
    "tabs": "\t",
    "spaces": " ",
    "spaced": "a ",
    "double_spaced": "a  ",
    "returns": "\r",
    "windows_lines": "\r\n",
    "lines": "\n",
    "spaced_lines": " \n",
    "tab_lines": "\t\n",
    "letters": "a",
    "capitals": "A",
    "digits": "1",
    "mixed": "a1",
    "humps": "aB",
    "hex": "0f",
    "one_letter_lines": "a\n",
    "one_digit_lines": "1\n",
    "two_letter_lines": "aa\n\n",
    "links": "[a](b)",
    "open_links": "[a](",
    "link_names": "[a",
    "urls": "http://a/ ",
    "one_url": "/a",
    "headings": "# a\n",
    "heading_signs": "# ",
    "underlined": "a\n=\n",
    "nearly_underlined": "a\n=x\n",
    "lists": "- a\n",
    "deeper_lists": " - ",
    "quotes_of_quotes": "> ",
    "callouts": "> [!WARNING]\n",
    "rules": "---\n",
    "tables": "|a|b|\n",
    "table_rules": "|-",
    "colour_codes": "\x1b[",
    "colours": "\x1b[31m",
    "long_colours": "\x1b[1;",
    "combining": "e\u0301",
    "marks_alone": "\u0301",
    "zero_width": "\u200b",
    "soft_hyphens": "\xad",
    "right_to_left": "\u202e\u05d0",
    "wide": "\u4e2d",
    "wide_ends": "\u3002",
    "emoji": "\U0001f600",
    "joined_emoji": "\U0001f468\u200d",
    "dotless": "\u0130",
    "no_break_spaces": "\xa0",
    "line_separators": "\u2028",
    "surrogate_escapes": "\\ud800",
    "error_words": "error ",
    "error_lines": "error\n",
    "errors_joined": "error",
    "warnings": "Warning: a\n",
    "nearly_warnings": "error a\n",
    "errors_of_code": "aError",
    "exits": "exit code ",
    "exit_codes": "exit code 1\n",
    "verdicts": "1 passed ",
    "verdict_lines": "FAILED\n",
    "truncations": "[truncated",
    "saved": "output saved to ",
    "saved_paths": "full output: /a",
    "frames": "  at a(b:1)\n",
    "nearly_frames": "  at a(",
    "python_frames": '  File "a", line 1\n',
    "stamps": "2024-01-01 00:00:00 ",
    "stamp_lines": "2024-01-01 00:00:00 a\n",
    "clocks": "00:00:0",
    "levels": "INFO ",
    "level_lines": "[INFO] a\n",
    "level_keys": 'level="',
    "status_codes": '" 500 ',
    "statements": "CREATE TABLE a (b);\n",
    "statement_words": "CREATE OR REPLACE ",
    "inserts": "INSERT INTO a VALUES (1),(2);\n",
    "definitions": "def a(\n",
    "functions": "int a(b) {\n",
    "modifiers": "public static ",
    "arrows": "const a = (",
    "numbered": "1| a\n",
    "hunks": "@@ -1 +1 @@\n",
    "file_heads": "--- a\n+++ b\n",
    "git_heads": "diff --git a/a b/a\n",
    "git_renames": "diff --git a/a b/a\n--- a\n+++ a\n",
    "mail_heads": "From: a\nSubject: b\n",
    "mails": "From: a\nSubject: b\n\nc\n\n",
    "results": "Title: a\nURL: http://b\n",
    "json_lines": '{"a":1}\n',
    "none": "None, ",
    "python_calls": "a(b=",
    "thousands": "1,111",
    "times": "1:",
}
"""The repeated text, by name."""

BEGINNINGS = {
    "text": "It begins. ",
    "xml": "<feed>",
    "xml_comments": "<?xml version='1.0'?><!-- -->",
    "html": "<html><body><p>",
    "html_link": "<html><body><a href='",
    "json": '{"a": "',
    "json_array": '[{"a": 1}, ',
    "python": "[None, ",
    "python_text": "[{'a': '",
    "csv": "name,size\na,1\nb,2\nc,3\n",
    "csv_quoted": 'name,size\na,1\nb,2\nc,3\n"',
    "drawn": "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n",
    "log": "2024-01-01 00:00:00 INFO a\n2024-01-01 00:00:01 ERROR b\n2024-01-01 00:00:02 ",
    "diff": "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n",
    "trace": 'Traceback (most recent call last):\n  File "a", line 1\n  File "b", line 2\naError: ',
    "tests": "= test session starts =\n=== FAILURES ===\n___ test_a ___\nE  ",
    "markdown": "# A\n\n```py\n```\n\n- **a** [b](http://c)\n\n## ",
    "code": "import os\nfrom a import b\n\ndef a():\n    return 1\n\nclass B:\n    def c(self, ",
    "sql": "CREATE TABLE a (b int);\nINSERT INTO a VALUES (1);\nDROP TABLE a;\nCREATE TABLE c (\nd",
    "mail": "From: a\nSubject: b\nDate: c\n\nd\n\nFrom: e\nSubject: ",
    "search": "Title: a\nURL: http://a\nSnippet: b\n\nTitle: c\nURL: http://",
    "shell": "<returncode>0</returncode>\n<output>\n",
}
"""What makes a content one of a kind, up to where the repeated signs begin."""

FILLERS = {
    "spaces": " ",
    "lines": "\n",
    "spaced_words": "x ",
    "brackets": "[(",
    "tags": "<a ",
    "quotes": "'\"",
    "escapes": "\\'",
    "digits": "1.",
    "dashes": "- ",
}

ENDINGS = {
    "spaces": "!",
    "lines": "  x",
    "spaced_words": "\n",
    "brackets": "])\n",
    "tags": ">\n",
    "quotes": "\n",
    "escapes": "]\n",
    "digits": "\n",
    "dashes": "=\n",
}
"""What makes a near miss of it."""


def _repeated(sign: str) -> Maker:
    encoded = sign.encode()
    return lambda size: encoded * (size // len(encoded))


def _filled(beginning: str, filler: str, ending: str) -> Maker:
    first, sign, last = beginning.encode(), filler.encode(), ending.encode()
    return lambda size: first + sign * ((size - len(first) - len(last)) // len(sign)) + last


def _numbered(form: str, beginning: str = "", ending: str = "") -> Maker:
    """A form with a number in it, again and again: no two are the same."""

    def make(size: int) -> bytes:
        first, last = form.format(0), form.format(size)
        count = 2 * size // (len(first.encode()) + len(last.encode()))
        return (beginning + "".join(form.format(n) for n in range(count)) + ending).encode()

    return make


def _nested(opening: str, closing: str, inner: str = "") -> Maker:
    def make(size: int) -> bytes:
        depth = size // (len(opening) + len(closing))
        return (opening * depth + inner + closing * depth).encode()

    return make


def _links_and_pieces(size: int) -> bytes:
    """Return one paragraph of many pieces, with links whose text is in none of them."""
    links = "".join(f"<a href='/{n}'><b>{n}</b>\u200b{n}</a> " for n in range(size // 60))
    return f"<html><body><p>{links}{'word ' * (size // 10)}</p></body></html>".encode()


def _attributes(size: int) -> bytes:
    count = size // 12
    return ("<feed " + " ".join(f"a{n}='1'" for n in range(count)) + "/>").encode()


def _html_attributes(size: int) -> bytes:
    count = size // 12
    return ("<html><body><p " + " ".join(f"a{n}='1'" for n in range(count)) + ">a</p>").encode()


def _columns(size: int) -> bytes:
    count = size // 20
    names = ",".join(f"c{n}" for n in range(count))
    values = ",".join("1" for _ in range(count))
    return "\n".join([names, *[values] * 4, ""]).encode()


def _wide_rows(size: int) -> bytes:
    """Objects that have no key in common."""
    count = size // 14
    return ("[" + ",".join(f'{{"k{n}":{n}}}' for n in range(count)) + "]").encode()


def _many_columns(size: int) -> bytes:
    count = size // 64
    row = "{" + ",".join(f'"k{n}":1' for n in range(count)) + "}"
    return ("[" + ",".join([row] * 4) + "]").encode()


def _noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def _noise_text(size: int) -> bytes:
    chance = random.Random(size)
    signs = "<>[]{}()'\"\\/|,;:=-_*#`~.!? \n\tab01\u00e9\u4e2d"
    return "".join(chance.choices(signs, k=size)).encode()[:size]


def _words(size: int) -> bytes:
    """Lines without a word in common."""
    chance = random.Random(size)
    letters = "abcdefghijklmnopqrstuvwxyz"
    lines = ("".join(chance.choices(letters, k=5)) for _ in range(size // 6))
    return "\n".join(lines).encode()


MADE: dict[str, Maker] = {
    "issue_xml_comments": lambda size: b"<!---->" * (size // 9) + b"<feed>" + b"x " * (size // 9),
    "issue_python_escapes": _filled("[None, ", "\\'", "]"),
    "issue_python_dots": _filled("[None, ", "a.", "]"),
    "issue_sql_spaces": _filled("CREATE TABLE a (\n" * 3 + ";", " (", ";\n"),
    "issue_sql_columns": _filled(
        "CREATE TABLE a (\n  b int);\nDROP TABLE a;\nDROP TABLE b;\nCREATE TABLE c (\n",
        " d ",
        "\n;",
    ),
    "issue_html_links": _links_and_pieces,
    "issue_attributes": _attributes,
    "html_attributes": _html_attributes,
    "html_hidden_attributes": _numbered("</x{0} ", "<html><body><p ", ">a</p>"),
    "html_quoted_attributes": _numbered('x{0}=">" ', "<html><body><p ", ">a</p>"),
    "html_many_attributes": _filled(
        "<html><body>", "<p " + " ".join(f"a{n}" for n in range(200)) + ">", ""
    ),
    "html_links": _numbered("<a href='/{0}'>a{0}</a>\n", "<html><body><p>"),
    "html_same_links": _filled("<html><body><p>", "<a href='/a'>a</a> ", "</p>"),
    "html_empty_links": _numbered("<a href='/{0}'></a>", "<html><body><p>"),
    "html_link_lines": _numbered("<p><a href='/{0}'>a{0}</a></p>", "<html><body>"),
    "html_nested_divs": _nested("<div>", "</div>", "a"),
    "html_open_divs": _filled("<html><body>", "<div>", "a"),
    "html_open_links": _filled("<html><body>", "<a href='b'>c", "d"),
    "html_open_formatting": _filled("<html><body>", "<b><p>a", ""),
    "html_nested_links": _filled("<html><body>", "<a href='b'><p>c", ""),
    "html_fonts": _numbered("<font color='{0}'><p>", "<html><body>"),
    "html_nested_tables": _nested("<table><tr><td>", "</td></tr></table>", "a"),
    "html_tables": _filled("<html><body><table>", "<tr><td>a<td>b", ""),
    "html_table_text": _filled("<html><body><table>", "a<b>", ""),
    "html_selects": _filled("<html><body>", "<select><option>", ""),
    "html_headings": _numbered("<h1>a{0}</h1>", "<html><body>"),
    "html_descriptions": _filled("<html><head><meta name=description content='", "a ", "'>"),
    "html_titles": _filled("<html><head><title>", "<a ", ""),
    "html_scripts": _filled("<html><body>", "<script>", ""),
    "html_script": _filled("<html><body><script>", "</scrip ", ""),
    "html_svg": _filled("<html><body>", "<svg><desc>", ""),
    "html_templates": _filled("<html><body>", "<template>", ""),
    "html_classes": _filled("<html><body><p class='", "nav- ", "'>a</p>"),
    "html_names": _filled("<html><body>", "<p class='recommenda recommend'>a</p>", ""),
    "html_pre": _filled("<html><body><pre>", "a\n", "</pre>"),
    "html_breaks": _filled("<html><body>", "a<br>", ""),
    "html_hidden": _filled("<html><body>", "<noscript>a</noscript>", ""),
    "html_unclosed": _filled("<html><body><p>a", "<b", ""),
    "html_doctypes": _filled("", "<!doctype html>", ""),
    "html_frames": _filled("<html>", "<frameset>", ""),
    "xml_nested": _nested("<a>", "</a>", "b"),
    "xml_nested_names": _numbered("<a{0}>", "<feed>"),
    "xml_elements": _numbered("<e>{0}</e>", "<feed>", "</feed>"),
    "xml_long_names": lambda size: (
        b"<feed><"
        + b"a" * (size // 2)
        + b">"
        + b"<b/>" * (size // 9)
        + b"</"
        + b"a" * (size // 2)
        + b"></feed>"
    ),
    "xml_names": _numbered("<e{0}/>", "<feed>", "</feed>"),
    "xml_paths": _numbered("<a{0}><b/></a{0}>", "<feed>", "</feed>"),
    "xml_texts": _filled("<feed>", "a<b/>", "</feed>"),
    "xml_attributes": _numbered('<e a="{0}" b="{0}"/>', "<feed>", "</feed>"),
    "xml_wide": _filled("<feed>", "<e>\u4e2d</e>", "</feed>"),
    "xml_entities": _filled("<feed>", "&lt;", "</feed>"),
    "xml_errors": _filled("<feed>", "<error>a</error>", "</feed>"),
    "xml_cdata": _filled("<feed>", "<![CDATA[a]]>", "</feed>"),
    "xml_declared": _numbered("<!ENTITY a{0} 'b'>", "<?xml version='1.0'?><!DOCTYPE a [", "]><a/>"),
    "xml_declared_attributes": _numbered(
        "<!ATTLIST a b{0} CDATA 'c'>", "<?xml version='1.0'?><!DOCTYPE a [", "]><a/>"
    ),
    "xml_instructions": _filled("<?xml version='1.0'?><a>", "<?b?>", "</a>"),
    "xml_namespaces": _numbered("<e xmlns:a{0}='b'/>", "<feed>", "</feed>"),
    "json_nested_arrays": _nested("[", "]"),
    "json_nested_objects": _nested('{"a":', "}", "1"),
    "json_nested_both": _nested('[{"a":', "}]", "1"),
    "json_open_arrays": _repeated('[{"a": ['),
    "json_empty_arrays": _filled("[", "[],", "[]]"),
    "json_empty_objects": _filled("[", "{},", "{}]"),
    "json_small_objects": _numbered('{{"a":{0}}},', "[", '{"a":0}]'),
    "json_wide_rows": _wide_rows,
    "json_many_columns": _many_columns,
    "json_one_object": _numbered('"k{0}":{0},', "{", '"k":0}'),
    "json_same_keys": _filled("{", '"k":1,', '"k":0}'),
    "json_numbers": _numbered("{0},", "[", "0]"),
    "json_fractions": _numbered("{0}.5,", "[", "0]"),
    "json_texts": _numbered('"a{0}",', "[", '"a"]'),
    "json_long_text": _filled('{"a": "', "word ", '"}'),
    "json_long_key": _filled('{"', "a b", '": 1}'),
    "json_errors": _filled("[", '{"error":"a"},', "1]"),
    "json_failed": _filled("[", '{"status":"failed"},', "1]"),
    "json_links": _numbered('{{"title":"a","url":"http://a/{0}","snippet":"b"}},', "[", "1]"),
    "json_mails": _filled("[", '{"from":"a","subject":"b"},', '{"from":"a","subject":"b"}]'),
    "json_entities": _filled(
        '[{"name":"a","fields":[', '{"name":"b","type":"c"},', '{"name":"b","type":"c"}]}]'
    ),
    "json_edges": _filled('{"edges":[', '{"node":{"a":1}},', '{"node":{"a":1}}]}'),
    "json_notion": _filled(
        '{"results":[',
        '{"object":"page","id":"a","properties":{}},',
        '{"object":"page","id":"a"}]}',
    ),
    "json_github": _filled(
        '{"total_count":3,"items":[',
        '{"full_name":"a/b","html_url":"https://github.com/a"},',
        '{"full_name":"a/b"}]}',
    ),
    "json_string": _filled('"', '[\\"a\\",', ']"'),
    "json_in_strings": _filled('["', "[1,", '"]'),
    "json_with_prose": _filled("The answer is: ", '[{"a": 1}] ', "and so on"),
    "json_lines": _numbered('{{"a":{0},"b":"c{0}"}}\n'),
    "json_cut_lines": _numbered('{{"a":{0}}}\n', "", '{"a":'),
    "json_escapes": _filled('{"a":"', "\\u00e9", '"}'),
    "json_surrogates": _filled('{"a":"', "\\ud83d\\ude00", '"}'),
    "json_deep_objects": _filled("[" * 300, '{"name":1,"status":2},', "1" + "]" * 300),
    "json_deep_rows": _filled("[", "[" * 40 + "1" + "]" * 40 + ",", "1]"),
    "json_spaces": _filled("[1,", " ", "2]"),
    "python_rows": _numbered("{{'a': {0}, 'b': None}}, ", "[", "]"),
    "python_nested": _nested("[None, ", "]"),
    "python_tuples": _filled("[", "(None,), ", "]"),
    "python_dates": _filled("[", "datetime.datetime(2024, 1, 1), ", "]"),
    "python_open_call": _filled("[None, a(", "b(", ""),
    "python_prose": _filled("Rows: ", "[None, ", "x"),
    "csv_columns": _columns,
    "csv_rows": _numbered("a{0},{0}\n", "name,size\n"),
    "csv_small_rows": _filled("a,b\n", "1,2\n", ""),
    "csv_empty_cells": _filled("a,b\n1,2\n3,4\n5,6\n", ",", "\n"),
    "csv_open_quote": _filled('a,b\n1,2\n3,4\n5,6\n7,"', "a,b\n", ""),
    "csv_quotes": _filled('a,b\n1,2\n3,4\n5,6\n7,"', '""', '"\n'),
    "csv_long_cell": _filled("a,b\n1,2\n3,4\n5,6\n7,", "word ", "\n"),
    "csv_dates": _numbered("2024-01-01,{0}\n", "day,size\n"),
    "csv_bad_dates": _filled("day,size\n2024-01-01T00:00", ":", "\n"),
    "drawn_rows": _numbered("| {0} | b |\n", "| a | b |\n|---|---|\n"),
    "drawn_others": _filled("| a | b |\n+---+---+\n| 1 | 2 |\n", "x\n", ""),
    "drawn_rules": _filled("| a | b |\n|---|---|\n| 1 | 2 |\n", "--- ", "\n"),
    "drawn_columns": _filled("a", "|a", "\n--|--\n"),
    "log_kinds": _numbered("2024-01-01 00:00:00 INFO {0:x}\n"),
    "log_words": lambda size: b"INFO a\nINFO b\nINFO c\n" + _words(size),
    "log_errors": _numbered("2024-01-01 00:00:00 ERROR {0:x} failed\n"),
    "log_short_lines": _filled("ERROR a\nERROR b\n" * 20, "a\n", ""),
    "log_short_errors": _filled("ERROR a\nERROR b\n" * 20, "error\n", ""),
    "log_long_line": _filled("ERROR a\nERROR b\n", "error 1 ", "\n"),
    "log_quotes": _filled("ERROR a\nERROR b\n", "'a ", "\n"),
    "log_continued": _filled("ERROR a\nERROR b\n" * 20, " a\n", ""),
    "log_servers": _filled('00:00:00 "GET /" 500 1\n' * 20, '" 500 ', ""),
    "log_colours": _filled("", "\x1b[31mERROR\x1b[0m a\n", ""),
    "log_returns": _filled("ERROR a\nERROR b\n" * 20, "\r1%", "\n"),
    "diff_files": _numbered("diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-a\n+b\n"),
    "diff_heads": _numbered("diff --git a/{0} b/{0}\n"),
    "diff_plain_heads": _filled("diff --git a/a b/a\n", "--- a\n+++ b\n", ""),
    "diff_index_heads": _filled("Index: a\n", "--- a\n+++ b\n", ""),
    "diff_hunks": _filled("--- a/a\n+++ b/a\n", "@@ -1 +1 @@\n+a\n", ""),
    "diff_lines": _filled("--- a/a\n+++ b/a\n@@ -1 +1 @@\n", "+\n", ""),
    "diff_nearly_hunks": _filled("diff --git a/a b/a\n", "@@ -1,1,1,1,1,1", " +1 @@\n"),
    "trace_frames": _numbered('  File "a{0}", line {0}\n', "Traceback (most recent call last):\n"),
    "trace_java": _numbered("\tat a.b.C{0}(C.java:{0})\n", "aException: b\n"),
    "trace_open": _filled("aError: b\n  at c(d:1)\n  at c(d:2)\n", "at a(b", "\n"),
    "trace_thrown": _filled("  at c(d:1)\n" * 9, "aError: b\n", ""),
    "trace_names": _filled("aError: b\n  at c(d:1)\n  at c(d:2)\n", "a.b$", "\n"),
    "trace_rust": _filled("thread 'a' panicked at b\n", "0: a::b\n", ""),
    "tests_failures": _numbered(
        "___ test_{0} ___\nE  a\n", "=== FAILURES ===\n", "= 1 failed in 1s =\n"
    ),
    "tests_sums": _filled("", "= " + "1 passed in 1s " * 30 + "\n", "1 passed in 1.0s\n"),
    "tests_sections": _filled("", "=== a ===\n", "=== 1 failed in 1.0s ===\n"),
    "tests_rules": _filled(
        "", "=" * 70 + "\nFAIL: a\n", "-" * 70 + "\nRan 1 test in 1s\n\nFAILED\n"
    ),
    "tests_nearly_rules": _filled("=== 1 passed in 1s ===\n", "=== a ", "\n1 passed in 1.0s\n"),
    "tests_underscores": _filled("___ ", "a ___ b", "\n1 passed in 1.0s\n"),
    "tests_ran": _filled("", "-" * 70 + "\n", "Ran 1 test in 1s\n\nOK\n"),
    "tests_names": _filled("", "a ... ", "FAIL\n1 failed in 1.0s\n"),
    "tests_listed": _filled("", "FAILED a.py::b\n", "1 failed in 1.0s\n"),
    "tests_go": _numbered("--- FAIL: Test{0}\n", "", "FAIL\ta\t1s\n"),
    "tests_blank": _filled("Ran 1 test in 1s\n", " \n", "x\n=== 1 passed in 1.0s ===\n"),
    "tests_jest": _numbered("  \u25cf a {0}\n", "", "Tests: 1 failed\n"),
    "markdown_sections": _numbered("# a{0}\n\nb\n\n", "```\n```\n"),
    "markdown_underlined": _numbered("a{0}\n---\n", "# a\n```\n```\n"),
    "markdown_links": _numbered("[a{0}](http://b/{0}) ", "# a\n\n"),
    "markdown_fences": _filled("# a\n# b\n# c\n# d\n", "```\n", ""),
    "markdown_open_fences": _filled("# a\n# b\n# c\n# d\n", "````\n```\n", ""),
    "markdown_long_fence": _filled("# a\n# b\n# c\n# d\n", "`", "\n"),
    "markdown_fence_name": _filled("# a\n# b\n# c\n# d\n```", "a ", "`\n"),
    "markdown_callouts": _filled("# a\n# b\n# c\n# d\n", "> [!WARNING] a\n> b\n", ""),
    "markdown_table": _filled("# a\n# b\n# c\n# d\n|a|\n", "|-", "x\n"),
    "markdown_nested_lists": lambda size: (
        b"# a\n# b\n# c\n# d\n" + b"".join(b" " * (n % 200) + b"- a\n" for n in range(size // 104))
    ),
    "markdown_emphasis": _filled("# a\n# b\n# c\n# d\n", "**a* ", "\n"),
    "markdown_rule": _filled("# a\n# b\n# c\n# d\na\n", "-", "x\n"),
    "markdown_words": _filled("# a\n# b\n# c\n# d\n", "[a [", "\n"),
    "code_definitions": _numbered("def a{0}(b):\n    return 1\n\n", "import os\n"),
    "code_open": _filled("import os\nfrom a import b\nimport c\ndef d(", "e, ", "\n"),
    "code_open_lines": _filled("import os\nfrom a import b\nimport c\n", "def d(\n", ""),
    "code_arrows": _filled("import 'a'\nexport b\nconst c = 1;\nlet d = (", "(e ", "\n"),
    "code_modifiers": _filled("package a;\nimport b;\nimport c;\n", "public static final ", "\n"),
    "code_types": _filled("#include a\n#include b\n#include c\nint ", "a<b> ", "\n"),
    "code_words": _filled("#include a\n#include b\n#include c\n", "a[b]", "\n"),
    "code_calls": _filled(
        "#include a\n#include b\n#include c\n",
        "public static a b(" + ")" * 300 + "x" * 60 + "\n",
        "",
    ),
    "code_methods": _numbered("int a{0}(b) {{\n", "#include a\n#include b\n#include c\n"),
    "code_spaces": _filled("import os\nfrom a import b\nimport c\nx", " ", "=\n"),
    "code_numbered": _numbered("{0:6}|import os\n"),
    "sql_tables": _numbered("CREATE TABLE a{0} (b int);\n"),
    "sql_rows": _numbered("INSERT INTO a VALUES ({0});\n", "CREATE TABLE a (b int);\n"),
    "sql_tuples": _filled("DROP TABLE a;\n" * 3 + "INSERT INTO a VALUES (1)", ", (1)", ";\n"),
    "sql_spaced_tuples": _filled("DROP TABLE a;\n" * 3 + "INSERT INTO a VALUES (1)", " ) ", ";\n"),
    "sql_table_brackets": _filled("DROP TABLE a;\n" * 3 + "CREATE TABLE b (\n c d", " (", "\n);\n"),
    "sql_copied": _filled("DROP TABLE a;\n" * 3 + "COPY a FROM stdin;\n", "1\n", "\\.\n"),
    "sql_copies": _filled("", "COPY a FROM stdin;\n", "\\.\n"),
    "sql_table_lines": _numbered(
        "  c{0} int,\n", "DROP TABLE a;\n" * 3 + "CREATE TABLE b (\n", ");\n"
    ),
    "sql_table_spaces": _filled("DROP TABLE a;\n" * 3 + "CREATE TABLE b (\n  c", " ", "d\n);\n"),
    "sql_table_comments": _filled(
        "DROP TABLE a;\n" * 3 + "CREATE TABLE b (\n c d", " --", "\n);\n"
    ),
    "sql_names": _filled("DROP TABLE a;\n" * 3 + "CREATE TABLE ", "a", " (b);\n"),
    "sql_views": _numbered("CREATE VIEW a{0} AS b;\n"),
    "sql_replaced": _filled("DROP TABLE a;\n" * 3 + "CREATE", " OR REPLACE", " x\n"),
    "mail_heads": _filled("From: a\nSubject: b\n", "To: a\n", "\n"),
    "mail_froms": _filled("From: a\nSubject: b\n\n", "\nFrom: a", "\n"),
    "mail_starts": _filled("From: a\nSubject: b\n\n", "\nDate: a\n", "\n"),
    "mail_list": _numbered("From: a{0}\nSubject: b\n\nc\n\n"),
    "mail_without_body": _filled("From: a\nSubject: b\n", "Date: c\n", ""),
    "search_results": _numbered("Title: a\nURL: http://a/{0}\nSnippet: b\n\n"),
    "search_numbers": _filled("Title: a\nURL: http://a\nURL: http://b\n", "1.", "\n"),
    "search_stars": _filled("Title: a\nURL: http://a\nURL: http://b\n", "*", "\n"),
    "search_lines": _filled("Title: a\nURL: http://a\nURL: http://b\n", "1. \n", "\n"),
    "glance_open_cuts": _repeated("output of [truncated] "),
    "glance_open_saved": _repeated("full output: /a "),
    "glance_tags": _filled("<html><body>", "a<b>c</b>", ""),
    "text_sentences": _numbered("A sentence {0}. "),
    "text_paragraphs": _numbered("a{0}\n\n"),
    "text_headings": _numbered("Heading {0}\n\nA sentence.\n\n"),
    "text_blank_lines": _filled("It begins. ", "\n ", "x"),
    "text_blank_words": _filled("It begins. ", " \n\n x", ""),
    "text_one_word": _repeated("a"),
    "text_one_url": _filled("http://", "a/", ""),
    "text_windows_path": _filled('"C:\\', "a b\\", ""),
    "text_long_words": _filled("", "a" * 600 + " ", ""),
    "text_distinct": _words,
    "text_warnings": _numbered("Warning {0}: a\n"),
    "text_nearly_warnings": _filled("", "warning" * 9 + " ", "\n"),
    "text_noise": _noise_text,
    "bytes_noise": _noise,
    "bytes_not_utf8": _repeated("a\n"),
    "bytes_half_characters": lambda size: b"\xf0\x9f\x98" * (size // 3),
    "bytes_high": lambda size: b"\xff" * size,
    "base64": lambda size: b"QUJD" * (size // 4),
    "minified": _filled("", "function a(b){return c?d:[e]};", ""),
    "zero_width_words": _filled("", "a\u200bb ", ""),
    "right_to_left_lines": _filled("", "\u202e\u05d0\u05d1\n", ""),
    "combining_lines": _filled("", "e" + "\u0301" * 50 + "\n", ""),
}
"""What needs more than a repeated sign."""


def _inputs() -> dict[str, Maker]:
    inputs = {f"repeated_{name}": _repeated(sign) for name, sign in SIGNS.items()}
    for kind, beginning in BEGINNINGS.items():
        for name, filler in FILLERS.items():
            inputs[f"{kind}_then_{name}"] = _filled(beginning, filler, ENDINGS[name])
    return inputs | MADE


INPUTS: dict[str, Maker] = _inputs()
"""Every hostile input, by its name: a size in bytes gives a content of about that size."""
