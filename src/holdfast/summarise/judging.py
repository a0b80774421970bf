"""Whether what a model said is a summary at all.

judging: after support. A failed, empty, refused or error-shaped answer, and one longer than what it
is of, is no summary and is never kept: others put `Previous conversation was too long to
summarize`, or the provider's error, in the place of the conversation (docs/discussions/summaries.md
names them).
"""

from __future__ import annotations

import re

from holdfast.summarise.support import sentences_of, shared_words
from holdfast.trim.excerpts import error_line

# Of an answer that was cut before the thoughts ended, nothing is left: they are no summary.
_THOUGHTS = re.compile(r"\A\s*<think(?:ing)?>(?:.*?</think(?:ing)?>|.*)", re.DOTALL)
# Colours and signs for a terminal, which programs print, and halves of characters, which JSON can
# hold: nobody reads them, and some stores refuse them.
_UNREADABLE = re.compile(r"\x1b\[[0-?]*+[ -/]*+[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_FENCED = re.compile(r"\A```[a-z]*\n(.*)\n```\s*\Z", re.DOTALL)
_INTRODUCTION = re.compile(
    r"\A(?:(?:sure|certainly|of course|okay|ok)\b[^\n:!.,]{0,80}[:!.,]\s*+)?+"
    r"(?:(?:here(?:'s| is| are)|below is|the following is)\b[^\n:]{0,120}:"
    r"|\*{0,2}(?:summary|shortened text|condensed version|key points|headline)\*{0,2}:)"
    r"\*{0,2}\s*+",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"\A\W{0,5}(?:i['’]?m (?:really |very )?(?:sorry|unable|afraid|not able)|i am (?:sorry|unable)"  # noqa: RUF001
    r"|sorry\b|i (?:can(?:no|['’])t|cannot|could not|couldn['’]t|won['’]t|will not)\b"  # noqa: RUF001
    r"|as an ai\b|unfortunately,? i\b|(?:please )?provide (?:me )?(?:with )?the text"
    r"|there is no text|no text (?:was|is) (?:given|provided))",
    re.IGNORECASE,
)
# What gateways, SDKs and agents print in the place of an answer, with status 200.
_FAILURE = re.compile(
    r"\A\s*(?:<!doctype html|<html|\{\s*\"(?:error|errors|detail|message)\"\s*:"
    r"|\{\s*\"type\"\s*:\s*\"error\"|(?:http |status |code )?[45]\d\d:? [a-z]"
    r"|(?:previous )?conversation was too long|error generating"
    r"|(?:rate limit|quota|usage limit) (?:exceeded|reached)|too many requests"
    r"|(?:the |your )?(?:model|server|service|engine|api|request) (?:is |was |has |currently )*"
    r"(?:overloaded|unavailable|busy|timed out|rejected|blocked)"
    r"|(?:an? )?(?:unexpected |internal |unknown )?error (?:has )?occurred|something went wrong"
    r"|(?:invalid|incorrect|missing) api key|insufficient[ _]quota|unauthori[sz]ed\b"
    r"|\W{0,3}(?:null|none|undefined|nan|n/a|no (?:output|response|content|answer|summary))"
    r"\W{0,3}\Z"
    r"|(?:internal server error|bad gateway|service unavailable|gateway time-?out)\b)",
    re.IGNORECASE,
)
_LEAST_SHARED = 0.3
"""Of its words; real summaries share 0.6 to 0.9 with their source, an essay on another matter less
than 0.2."""


def bare(answer: str, *, cut: bool) -> str:
    """An answer without thoughts, a fence, an introduction, and a last sentence that is torn."""
    text = _THOUGHTS.sub("", _UNREADABLE.sub("", answer)).strip()
    fenced = _FENCED.match(text)
    text = fenced[1].strip() if fenced else text
    text = _INTRODUCTION.sub("", text, count=1).strip()
    if cut and text and text[-1] not in ".!?…。！？\"'”’)":  # noqa: RUF001
        *whole, _ = sentences_of(text)
        text = "".join(sentence.text + sentence.gap for sentence in whole).strip()
    return text


def objection(text: str, source: str, boundary: str = "") -> str:
    """Why a text is no summary of a source; empty if it may be one. It never quotes either."""
    if not text or not any(map(str.isalnum, text)):
        return "the answer is empty"
    if boundary and boundary in text:
        return "the answer repeats the prompt"
    beginning = text[:40]
    if _REFUSAL.match(text) and beginning not in source:
        return "the model declined"
    error = error_line(text) or (_FAILURE.match(text) and beginning)
    if error and error not in source:
        return "the answer is an error"
    if shared_words(text, source) < _LEAST_SHARED:
        return "the answer is about something else"
    return ""
