"""Code: its definitions."""

from __future__ import annotations

import pytest

from holdfast.condense import code, kinds
from holdfast.condense.source import Source

FILES = {
    "Python": (
        "import os\nfrom typing import Any\n\nclass Store(Base):\n    async def get(\n"
        "        self,\n        key: str,\n    ) -> Any:\n        return self.d[key]\n\n"
        "def main() -> None:\n    if x:\n        print(1)\n",
        ["class Store(Base)", "async def get( self, key: str, ) -> Any", "def main() -> None"],
    ),
    "Go": (
        'package main\n\nimport "fmt"\n\ntype Cat struct {\n\tName string\n}\n\n'
        "func (c *Cat) Speak(loud bool) error {\n\tif loud {\n\t\treturn nil\n\t}\n}\n",
        ["type Cat struct", "func (c *Cat) Speak(loud bool) error"],
    ),
    "Rust": (
        "use std::io;\n\npub struct Cat { name: String }\n\nimpl Cat {\n"
        "    pub fn speak(&self) -> String {\n        self.name.clone()\n    }\n}\n",
        ["pub struct Cat { name: String }", "impl Cat", "pub fn speak(&self) -> String"],
    ),
    "JavaScript or TypeScript": (
        "import fs from 'fs';\n\nexport class Cat {\n  speak() {\n    return 1;\n  }\n}\n\n"
        "export const run = async (a, b) => {\n  for (const x of a) { b(x); }\n};\n",
        ["export class Cat", "export const run = async (a, b) =>"],
    ),
    "Java or C#": (
        "package org.cats;\n\nimport java.util.List;\n\npublic class Cat {\n"
        "    private static int count(List<Cat> cats) {\n        return cats.size();\n    }\n}\n",
        ["public class Cat", "private static int count(List<Cat> cats)"],
    ),
    "C or C++": (
        "#include <stdio.h>\n#define N 3\n\nstatic int add(int a, int b) {\n    return a + b;\n}\n",
        ["static int add(int a, int b)"],
    ),
}


@pytest.mark.parametrize("language", FILES)
def test_signatures_are_listed(language: str) -> None:
    text, signatures = FILES[language]
    source = Source(text.encode())
    assert kinds.kind_of(source) == "code"
    condensed = code.condense(source)
    assert condensed.title.startswith(f"{language} code")
    listed = [note.text.strip() for note in condensed.notes if note.role == "outline"]
    assert [one for one in listed if one in signatures] == signatures


def test_a_file_shown_with_line_numbers_is_still_code() -> None:
    text = "\n".join(f"{n:6}\t{line}" for n, line in enumerate(FILES["Python"][0].split("\n"), 1))
    source = Source(text.encode())
    assert kinds.kind_of(source) == "code"
    assert code.definitions(source)[0].signature == "class Store(Base)"


def test_what_calls_is_not_what_defines() -> None:
    source = Source(b"#include <a.h>\nint f(int a) {\n  if (a) {\n  }\n  while (g(a)) {\n  }\n}\n")
    assert [one.signature for one in code.definitions(source)] == ["int f(int a)"]


def test_each_definition_is_a_passage() -> None:
    parts = code.passages(Source(FILES["Python"][0].encode()))
    assert [part.where for part in parts] == ["lines 1-2", "lines 4-4", "lines 5-9", "lines 11-13"]


def test_what_begins_like_markup_and_is_php_is_code() -> None:
    body = "namespace App;\nclass Order extends Base {\n    public function id() {\n"
    text = f"<?php\n{body}        return $this->id;\n    }}\n}}\n"
    assert code.sniff(Source(text.encode())) > 0.5
    assert code.sniff(Source(text.replace("<?php", "<html>").encode())) == 0


@pytest.mark.parametrize("text", ["Dear all,\nimport taxes rose.\n\nYours", '{"def": 1}', ""])
def test_other_texts_are_no_code(text: str) -> None:
    assert code.sniff(Source(text.encode())) == 0


def test_an_output_that_a_shell_tool_wraps_is_known_by_what_is_inside() -> None:
    wrapped = f"<returncode>0</returncode>\n<output>\n{FILES['Python'][0]}</output>"
    assert kinds.kind_of(Source(wrapped.encode())) == "code"


def test_code_in_prose_is_not_a_file_of_code() -> None:
    text = f"# How to\n\nUse it:\n\n```python\n{FILES['Python'][0]}```\n"
    assert kinds.kind_of(Source(text.encode())) == "markdown"
