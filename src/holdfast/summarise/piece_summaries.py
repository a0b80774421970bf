"""Request the summary of one piece from a model, and keep only supported sentences.

By default there are three attempts, with a wait between them that honours the provider's
`Retry-After`. An empty, refused or error-shaped answer, or one longer than its source, is an error
and is never cached: other tools have put `Previous conversation was too long to summarize` in place
of the conversation (docs/discussions/summaries.md).
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
from holdfast.condense.digest import Count
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
from holdfast.models.digest import digest
from holdfast.models.protocol import Completion, CompletionModel
from holdfast.search.passages import rank
from holdfast.settings import Settings
from holdfast.summarise.cache import SummaryCache, cache_key
from holdfast.summarise.levels import SummarizationLevel, target_tokens
from holdfast.summarise.prompts import Prompt, prompt
from holdfast.summarise.support import sentences_of, shared_words, supported
from holdfast.tokens import prices
from holdfast.trim.excerpts import error_line

# An answer that was cut inside its thoughts contains no summary.
_THOUGHTS = re.compile(r"\A\s*<think(?:ing)?>(?:.*?</think(?:ing)?>|.*)", re.DOTALL)
# Terminal colours and control characters that programs print, and lone surrogates that JSON allows:
# readers do not need them, and some stores reject them.
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
# Messages that gateways, SDKs and agents send instead of an answer, with status 200.
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
# Minimum share of the answer's words that occur in the source: real summaries share 0.6 to 0.9, an
# essay on another subject less than 0.2.
_LEAST_SHARED = 0.3


def strip_wrapping(answer: str, *, cut: bool) -> str:
    """Return an answer without thoughts, fence, introduction and an incomplete last sentence."""
    text = _THOUGHTS.sub("", _UNREADABLE.sub("", answer)).strip()
    fenced = _FENCED.match(text)
    text = fenced[1].strip() if fenced else text
    text = _INTRODUCTION.sub("", text, count=1).strip()
    if cut and text and text[-1] not in ".!?…。！？\"'”’)":  # noqa: RUF001
        *sentences, _ = sentences_of(text)
        text = "".join(sentence.text + sentence.gap for sentence in sentences).strip()
    return text


def objection(text: str, source: str, boundary: str = "") -> str:
    """Return why a text is no summary of a source; empty if it may be one. It quotes neither."""
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
"""An answer may have this multiple of its target plus this many tokens. A longer one is an essay,
which the provider cuts. Twice the target of `condensed` would be the complete piece.
"""
_LINES = re.compile(r"lines (\d+)-(\d+)")
_PLACED = 100
"""Maximum sentences of one piece that are located in it, because each search reads the piece."""


class SummaryLine(msgspec.Struct, frozen=True, array_like=True):
    """A sentence of a summary and the lines of its piece that support it, counted from 0."""

    text: str
    gap: str
    first: int
    last: int


class SummaryDraft(msgspec.Struct, frozen=True, array_like=True):
    """The checked summary of one piece."""

    lines: tuple[SummaryLine, ...]
    checked: int
    unsupported: int
    model: str
    cost: float | None
    cached: bool = False
    is_quoted: bool = False
    """Whether the piece is quoted because the model's answer was unusable."""


class SummaryPiece(msgspec.Struct, frozen=True):
    """A piece of a content with its requested level."""

    text: str
    tokens: int
    level: SummarizationLevel
    context: str
    budget: int | None
    """Budget of the complete content; part of the cache key."""

    @property
    def target(self) -> int:
        """Return the target tokens of the summary."""
        return target_tokens(self.level, self.tokens)


class PieceSummarizer:
    """Requests summaries of pieces from models and adds up their usage."""

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

    async def draft(self, model: CompletionModel, piece: SummaryPiece) -> SummaryDraft:
        """Return the summary of a piece, from the cache or from the model.

        Raises:
            ModelError: all attempts failed.
        """
        key = self._key(model, piece)
        if (draft := await self._kept(key)) is not None:
            self.hits += 1
            return msgspec.structs.replace(draft, cached=True, cost=0.0)
        self.misses += 1
        draft = await self._patiently(model, piece)
        if self._cache is not None:
            ttl = self._settings.summarization_cache_ttl_seconds
            # The summary was paid for, so a failing store must not lose it.
            with suppress(StoreError):
                await self._cache.put(key, msgspec.msgpack.encode(draft), ttl)
        return draft

    async def _kept(self, key: str) -> SummaryDraft | None:
        """Return the cached draft; None if there is none or another version wrote it."""
        with suppress(StoreError, msgspec.MsgspecError):
            summary = await self._cache.get(key) if self._cache is not None else None
            return None if summary is None else msgspec.msgpack.decode(summary, type=SummaryDraft)
        return None

    def _key(self, model: CompletionModel, piece: SummaryPiece) -> str:
        content = hashlib.sha256(piece.text.encode("utf-8", "surrogatepass")).hexdigest()
        version = self._settings.summarization_prompt_version
        return cache_key(content, piece.context, piece.level, model.name, version, piece.budget)

    async def _patiently(self, model: CompletionModel, piece: SummaryPiece) -> SummaryDraft:
        # All attempts use one prompt, so that the provider's cache can serve it.
        request = prompt(piece.text, piece.level, piece.context, piece.target)
        attempts = 1 + self._settings.summarization_max_retries
        for retries_left in range(attempts - 1, -1, -1):
            try:
                return await self._once(model, piece, request)
            except ModelRefusedError:
                raise  # the provider understood and refused
            except ModelError as error:
                wait = self._wait(error)
                if not retries_left or wait > self._settings.summarization_timeout:
                    raise
            await self._sleep(wait)
        raise AssertionError  # the last attempt returns or raises

    def _wait(self, error: ModelError) -> float:
        delay = self._settings.summarization_retry_delay
        retry_after = error.retry_after if isinstance(error, ModelRateLimitedError) else None
        return max(delay, retry_after or 0.0)

    async def _once(
        self, model: CompletionModel, piece: SummaryPiece, request: Prompt
    ) -> SummaryDraft:
        try:
            # Built-in models enforce their own timeout; a custom one may not.
            async with asyncio.timeout(self._settings.summarization_timeout + 1):
                completion = await model.complete(
                    request.text,
                    system=request.system,
                    max_tokens=int(MOST_OF_TARGET * piece.target) + _SLACK,
                )
        except TimeoutError:
            raise ModelTimeoutError("the model kept no time limit", where=model.name) from None
        cost = self._account(model, completion)
        drafted = await asyncio.to_thread(self._checked, completion, piece, request.boundary)
        if isinstance(drafted, str):
            raise ModelAnswerError(drafted, where=model.name)
        return msgspec.structs.replace(drafted, cost=cost)

    def _account(self, model: CompletionModel, completion: Completion) -> float | None:
        """Record the usage of a call, even if its answer is unusable, and return its cost."""
        tokens = completion.input_tokens, completion.output_tokens
        if self._ledger is not None:
            self._ledger.track_usage(model.name, Usage(*tokens))
        if completion.cost is not None:
            return completion.cost
        price = prices.bundled().price(model.name, at=datetime.now(UTC))
        if price is None or not any(tokens):
            return None
        return float(price.cost(input_tokens=tokens[0], output_tokens=tokens[1]))

    def _checked(
        self, completion: Completion, piece: SummaryPiece, boundary: str
    ) -> SummaryDraft | str:
        """Return the checked draft of an answer, or why it is no summary."""
        text = strip_wrapping(completion.text, cut=completion.cut)
        if problem := objection(text, piece.text, boundary):
            return problem
        if self._counted(text) >= piece.tokens:
            return "the answer is as long as what it is of"
        support = supported(text, piece.text)
        if not support.sentences:
            return "nothing in the answer is borne out by its source"
        places = _places([sentence.text for sentence in support.sentences], piece.text)
        lines = tuple(
            SummaryLine(*sentence, *place)
            for sentence, place in zip(support.sentences, places, strict=True)
        )
        return SummaryDraft(lines, support.checked, support.unsupported, completion.model, None)


def unchanged_draft(text: str) -> SummaryDraft:
    """Return a piece that is too short to summarise, unchanged."""
    return SummaryDraft(
        (SummaryLine(text.strip(), "", 0, text.rstrip().count("\n")),), 0, 0, "", 0.0
    )


def quotation_draft(piece: SummaryPiece, counted: Count) -> SummaryDraft:
    """Return quotations of a piece for which the model's answer was unusable."""
    chosen = digest(piece.text, piece.target, piece.context, counted=counted)
    lines = []
    for quotation in chosen.quotations:
        numbers = _LINES.fullmatch(quotation.where)
        first, last = map(int, numbers.groups()) if numbers else (1, piece.text.count("\n") + 1)
        lines.append(SummaryLine(quotation.text, "\n", first - 1, last - 1))
    return SummaryDraft(tuple(lines), 0, 0, "", 0.0, is_quoted=True)


def _places(sentences: list[str], source: str) -> list[tuple[int, int]]:
    """Return for each sentence the lines that support it best, or all lines if none stand out."""
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
