"""Ask one model for the summary of one piece, patiently, and keep only what its source bears out.

asking: after prompts, support, judging and cache. Three attempts by default (C6): a wait before
each but the first, a longer one where the provider asks for it, none after the last. What comes
back is judged and checked before anyone sees it; what is wrong with it is an error like others.

Whether what a model said is a summary at all. A failed, empty, refused or error-shaped answer, and
one longer than what it is of, is no summary and is never kept: others put `Previous conversation
was too long to summarize`, or the provider's error, in the place of the conversation
(docs/discussions/summaries.md names them).
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime

import msgspec

from holdfast.budget.manager import TokenBudgetManager
from holdfast.budget.usage import Usage
from holdfast.condense.source import Source
from holdfast.condense.spans import paragraphs, passages_of
from holdfast.errors import (
    ModelAnswerError,
    ModelError,
    ModelRateLimitedError,
    ModelRefusedError,
    ModelTimeoutError,
    StoreError,
)
from holdfast.models.digest import Count, digest
from holdfast.models.protocol import Completion, CompletionModel
from holdfast.search.passages import rank
from holdfast.settings import Settings
from holdfast.summarise.cache import SummaryCache, cache_key
from holdfast.summarise.levels import SummarizationLevel, target_tokens
from holdfast.summarise.prompts import Prompt, prompt
from holdfast.summarise.support import sentences_of, shared_words, supported
from holdfast.tokens import prices
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


Sleep = Callable[[float], Awaitable[None]]

MOST_OF_TARGET = 1.5
_SLACK = 64
"""An answer may have so many times its target, and so many tokens: more is an essay, and is cut by
its provider rather than paid for. Twice the target of `condensed` would be all of the piece."""
_LINES = re.compile(r"lines (\d+)-(\d+)")
_PLACED = 100
"""Sentences of one piece whose places are looked for: each look reads the piece once."""


class Line(msgspec.Struct, frozen=True, array_like=True):
    """A sentence of a summary, and the lines of its piece that bear it out, counted from 0."""

    text: str
    gap: str
    first: int
    last: int


class Draft(msgspec.Struct, frozen=True, array_like=True):
    """What a model made of a piece, checked."""

    lines: tuple[Line, ...]
    checked: int
    unsupported: int
    model: str
    cost: float | None
    cached: bool = False
    quoted: bool = False
    """The piece speaks for itself: the model made nothing usable of it."""


class Piece(msgspec.Struct, frozen=True):
    """A piece of a content, and what is wanted of it."""

    text: str
    tokens: int
    level: SummarizationLevel
    context: str
    budget: int | None
    """Of the whole content: part of the key of what is kept (X06)."""

    @property
    def target(self) -> int:
        """The tokens that its summary aims at."""
        return target_tokens(self.level, self.tokens)


class Asker:
    """Asks models for summaries of pieces, and adds up what they took."""

    def __init__(
        self,
        settings: Settings,
        *,
        cache: SummaryCache | None,
        counted: Count,
        ledger: TokenBudgetManager | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._settings = settings
        self._cache = cache if settings.summarization_cache_enabled else None
        self._counted = counted
        self._ledger = ledger
        self._sleep = sleep
        self.hits = 0
        self.misses = 0

    async def draft(self, model: CompletionModel, piece: Piece) -> Draft:
        """The summary of a piece, kept or made.

        Raises:
            ModelError: the model gave none in all its attempts.
        """
        key = self._key(model, piece)
        if (draft := await self._kept(key)) is not None:
            self.hits += 1
            return msgspec.structs.replace(draft, cached=True, cost=0.0)
        self.misses += 1
        draft = await self._patiently(model, piece)
        if self._cache is not None:
            ttl = self._settings.summarization_cache_ttl_seconds
            with suppress(StoreError):  # it was paid for: a store that is away must not lose it
                await self._cache.put(key, msgspec.msgpack.encode(draft), ttl)
        return draft

    async def _kept(self, key: str) -> Draft | None:
        """What is kept under a key; None also for what another version wrote."""
        with suppress(StoreError, msgspec.MsgspecError):
            summary = await self._cache.get(key) if self._cache is not None else None
            return None if summary is None else msgspec.msgpack.decode(summary, type=Draft)
        return None

    def _key(self, model: CompletionModel, piece: Piece) -> str:
        content = hashlib.sha256(piece.text.encode("utf-8", "surrogatepass")).hexdigest()
        version = self._settings.summarization_prompt_version
        return cache_key(content, piece.context, piece.level, model.name, version, piece.budget)

    async def _patiently(self, model: CompletionModel, piece: Piece) -> Draft:
        # One prompt for all attempts: what a provider keeps of it, it has not to read again.
        wanted = prompt(piece.text, piece.level, piece.context, piece.target)
        attempts = 1 + self._settings.summarization_max_retries
        for left in range(attempts - 1, -1, -1):
            try:
                return await self._once(model, piece, wanted)
            except ModelRefusedError:
                raise  # it was understood, and the answer is no
            except ModelError as error:
                wait = self._wait(error)
                if not left or wait > self._settings.summarization_timeout:
                    raise
            await self._sleep(wait)
        raise AssertionError  # the last attempt returns or raises

    def _wait(self, error: ModelError) -> float:
        delay = self._settings.summarization_retry_delay
        asked = error.retry_after if isinstance(error, ModelRateLimitedError) else None
        return max(delay, asked or 0.0)

    async def _once(self, model: CompletionModel, piece: Piece, wanted: Prompt) -> Draft:
        try:
            # Models keep their own time; one of another's making may not.
            async with asyncio.timeout(self._settings.summarization_timeout + 1):
                completion = await model.complete(
                    wanted.text,
                    system=wanted.system,
                    max_tokens=int(MOST_OF_TARGET * piece.target) + _SLACK,
                )
        except TimeoutError:
            raise ModelTimeoutError("the model kept no time limit", where=model.name) from None
        cost = self._account(model, completion)
        drafted = await asyncio.to_thread(self._checked, completion, piece, wanted.boundary)
        if isinstance(drafted, str):
            raise ModelAnswerError(drafted, where=model.name)
        return msgspec.structs.replace(drafted, cost=cost)

    def _account(self, model: CompletionModel, completion: Completion) -> float | None:
        """Add what a call took to the ledger, also of one whose answer is no summary."""
        used = completion.input_tokens, completion.output_tokens
        if self._ledger is not None:
            self._ledger.track_usage(model.name, Usage(*used))
        if completion.cost is not None:
            return completion.cost
        price = prices.bundled().price(model.name, at=datetime.now(UTC))
        if price is None or not any(used):
            return None
        return float(price.cost(input_tokens=used[0], output_tokens=used[1]))

    def _checked(self, completion: Completion, piece: Piece, boundary: str) -> Draft | str:
        """What stands of an answer, or why it is no summary."""
        text = bare(completion.text, cut=completion.cut)
        if problem := objection(text, piece.text, boundary):
            return problem
        if self._counted(text) >= piece.tokens:
            return "the answer is as long as what it is of"
        support = supported(text, piece.text)
        if not support.sentences:
            return "nothing in the answer is borne out by its source"
        places = _places([sentence.text for sentence in support.sentences], piece.text)
        lines = tuple(
            Line(*sentence, *place)
            for sentence, place in zip(support.sentences, places, strict=True)
        )
        return Draft(lines, support.checked, support.unsupported, completion.model, None)


def quoted(text: str) -> Draft:
    """A piece too short to be summarised, as it stands."""
    return Draft((Line(text.strip(), "", 0, text.rstrip().count("\n")),), 0, 0, "", 0.0)


def quoted_instead(piece: Piece, counted: Count) -> Draft:
    """What stands for a piece of which a model made nothing usable: its own sentences."""
    chosen = digest(piece.text, piece.target, piece.context, counted=counted)
    lines = []
    for quotation in chosen.quotations:
        numbers = _LINES.fullmatch(quotation.where)
        first, last = map(int, numbers.groups()) if numbers else (1, piece.text.count("\n") + 1)
        lines.append(Line(quotation.text, "\n", first - 1, last - 1))
    return Draft(tuple(lines), 0, 0, "", 0.0, quoted=True)


def _places(sentences: list[str], source: str) -> list[tuple[int, int]]:
    """For each sentence the lines that bear it out best; all of them where none stands out."""
    everything = (0, source.count("\n"))
    reading = Source(source.encode("utf-8", "replace"))
    spans = list(paragraphs(reading.text))
    passages = passages_of(reading, spans)
    if len(passages) < 2 or len(passages) != len(spans):
        return [everything] * len(sentences)
    places = []
    for sentence in sentences[:_PLACED]:
        best = rank(sentence, passages)[:1]
        span = spans[best[0].index] if best else None
        places.append(
            (reading.line_at(span[0]) - 1, reading.line_at(max(span[0], span[1] - 1)) - 1)
            if span
            else everything
        )
    return places + [everything] * (len(sentences) - len(places))
