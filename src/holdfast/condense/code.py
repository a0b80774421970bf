"""Source code: its definitions, with signatures and places.

Simple rules for each language find definitions line by line. The code need not parse, so parts of
files and files with line numbers work too.

The patterns use `re`, because a file may have a definition in every line and RE2 takes ten times as
long for each match. They run on the first 6,000 bytes, or are linear: anchored to the start of a
line, on at most a few hundred characters of it, without two long repeats that can match the same
text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from holdfast.condense.condenser import Condensed, Note, Passage
from holdfast.condense.source import Source
from holdfast.condense.spans import Span, counted, cut, head, passages_of, quote, until_next, where

kind = "code"

SNIFFED = 6000
"""Bytes of the beginning that are looked at."""
SIGNATURES = 60
"""Maximum number of definitions that are listed one by one."""
HEAD = 400
"""Characters of the beginning that are quoted."""

_NUMBER = r"(?: {0,6}\d{1,6}[\t|:→])?"  # as `cat -n` and many tools show files
_MODIFIERS = (
    r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|override"
    r"|virtual|sealed|open|inline|extern|unsafe|const|pub(?:\([^)\n]{1,20}\))?|data|suspend) ){0,5}"
)
_DEFINITION = re.compile(
    rf"^{_NUMBER}(?P<indent>[ \t]{{0,40}})(?P<signature>{_MODIFIERS}(?:"
    r"(?:def|class|function\*?|func|fn|interface|trait|enum|struct|impl|module|namespace|fun|object"
    r"|protocol|extension|record|macro_rules!|sub|procedure|type) [^\n]{1,300}"
    r"|(?:const|let|var) [\w$]{1,80} ?(?::[^\n=]{1,80})?= ?(?:async )?"
    r"(?:function\b|\([^\n]{0,200}=>|[\w$]{1,40} =>)[^\n]*"
    r"|[A-Za-z_][\w<>\[\],.*& ?]{0,80} [*&]?[\w~]{1,80}\([^;\n]{0,300}\)[^;\n=){]{0,60}+\{))",
    re.MULTILINE,
)
_NOT_CALLED = re.compile(r"\s*(?:if|for|while|switch|catch|return|else|do|with|match|throw|new)\b")
_LANGUAGES = (
    ("Python", re.compile(r"^(?:import \w|from [\w.]+ import |def \w+\(|class \w+[(:]|@\w)")),
    ("Rust", re.compile(r"^(?:use [\w:]+|(?:pub )?fn \w|impl\b|#\[|let mut |mod \w+;)")),
    ("Go", re.compile(r"^(?:package \w+$|func |import [(\"]|type \w+ (?:struct|interface))")),
    ("C or C++", re.compile(r"^(?:#include|#define|#ifn?def|using |typedef |template ?<)")),
    ("Java or C#", re.compile(
        r"^(?:package [\w.]+;|import [\w.*]+;|using [\w.]+;|namespace "
        r"|public (?:final |abstract )?(?:class|interface|enum))")),
    ("JavaScript or TypeScript", re.compile(
        r"^(?:import .* from ['\"]|import ['\"]|export |const |let |(?:async )?function "
        r"|module\.exports|require\(|interface \w+ \{|type \w+ = )")),
    ("Ruby", re.compile(
        r"^(?:require ['\"]|require_relative |module [A-Z]\w*$|class [A-Z]\w*(?: < \w+)?$"
        r"|\s*def \w+[?!]?$|end$)")),
    ("PHP", re.compile(r"^(?:<\?php|namespace [\w\\]+;|use [\w\\]+;)")),
    ("shell", re.compile(r"^(?:#!.*sh$|set -[eux]|export \w+=|fi$|done$|esac$|function \w+ *\{)")),
)  # fmt: skip
_CODE_LINE = re.compile(
    r"^[^\n]*(?:[;{}]|\):|\)|,|\\)\s*$|^\s*(?://|#|/?\*|--)|^\s*(?:return|if|elif|else|for|while|try"
    r"|except|finally|with|raise|import|from|end|case|break|pass)\b[^.]*$"
    r"|^\s*[\w.\[\]\"']+ [+\-*/]?= "
)
_CLOSED = re.compile(r"^[^\n()]{0,40}\)[^\n]*", re.MULTILINE)
_STRIP_NUMBER = re.compile(r"^ {0,6}\d{1,6}[\t|:→] ?", re.MULTILINE)


class Definition(msgspec.Struct, frozen=True):
    """Something the code defines."""

    signature: str
    depth: int
    span: Span


def sniff(source: Source) -> float:
    """By lines that only one language has, if most others look like code too."""
    first = head(source, SNIFFED)
    if first.lstrip()[:1] in ("{", "[", "<") and not first.startswith("<?php"):
        return 0.0
    if "\n```" in first:  # code inside prose
        return 0.0
    bare, numbers = _STRIP_NUMBER.subn("", first)
    lines = [line for line in bare.split("\n")[:120] if line.strip()]
    if len(lines) < 3:
        return 0.0
    signs = _language(lines)[1]
    share = sum(1 for line in lines if _CODE_LINE.match(line)) / len(lines)
    # Little is enough where lines are numbered: that is how files are shown.
    least = 0.3 if numbers > 0.8 * len(lines) else 0.35 if signs > 1 else 0.55 if signs else 2
    return 0.5 + 0.4 * share if share >= least else 0.0


def condense(source: Source) -> Condensed:
    """The beginning and all signatures."""
    text = source.text
    defined = definitions(source)
    lines = _STRIP_NUMBER.sub("", head(source, SNIFFED)).split("\n")
    language = _language(lines)[0]
    notes = []
    if text.strip():
        start, end = next(cut(text, 0, len(text), HEAD, by="line"))
        notes.append(Note("sample", text[start:end].rstrip(), where(source, start, end)))
    shallowest = sorted(
        sorted(defined, key=lambda definition: definition.depth)[:SIGNATURES],
        key=lambda definition: definition.span,
    )
    for definition in shallowest:
        indent = "  " * min(definition.depth // 2, 4)
        notes.append(
            Note("outline", indent + quote(definition.signature), where(source, *definition.span))
        )
    if len(defined) > len(shallowest):
        notes.append(Note("outline", f"{len(defined) - len(shallowest):,} more definitions"))
    return Condensed(
        title=f"{language or 'Source'} code, {counted(source.line_count, 'line')},"
        f" {counted(len(defined), 'definition')}",
        unit="lines",
        total=source.line_count,
        notes=tuple(notes),
    )


def passages(source: Source) -> Sequence[Passage]:
    """Return one passage per definition, and one for the text before the first."""
    starts = [definition.span[0] for definition in definitions(source)]
    if not starts or starts[0]:
        starts.insert(0, 0)
    spans = until_next(starts, len(source.text))
    return passages_of(
        source, (piece for span in spans for piece in cut(source.text, *span, by="line"))
    )


def definitions(source: Source) -> list[Definition]:
    """Return the definitions of the code, each up to the next one."""
    text = source.text
    matches = [
        match for match in _DEFINITION.finditer(text) if not _NOT_CALLED.match(match["signature"])
    ]
    spans = until_next([match.start() for match in matches], len(text))
    return [
        Definition(_signature(text, match), len(match["indent"].expandtabs(4)) // 2, span)
        for match, span in zip(matches, spans, strict=True)
    ]


def _signature(text: str, found: re.Match[str]) -> str:
    """Return the matched line and the following lines up to its closing bracket."""
    signature = found["signature"]
    if signature.count("(") > signature.count(")"):
        closed = _CLOSED.search(text, found.end(), found.end() + 500)
        signature = (
            " ".join(text[found.start("signature") : closed.end()].split()) if closed else signature
        )
    return signature.rstrip(" {:\r")


def _language(lines: Sequence[str]) -> tuple[str, int]:
    """The language with the most lines that only it has, and how many these are."""
    counts = [
        (sum(1 for line in lines if sign.match(line.strip())), name) for name, sign in _LANGUAGES
    ]
    count, name = max(counts, key=lambda one: one[0])
    return (name, count) if count else ("", 0)
