"""Say less of a content without saying anything else.

summarizer: the last of summarise. The providers of the settings are asked in turn; each gets the
content in pieces that it can take, and its sentences are put together as they stand, so that
originals are summarised and never summaries. What is too long is asked for once more at the next
tighter level, and in the end some sentences are left out. Quotations are the last provider, which
cannot fail. The original is kept before anything is made of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol, TypeVar

import msgspec

from holdfast.budget.manager import TokenBudgetManager
from holdfast.errors import (
    ModelAnswerError,
    ModelError,
    ModelRefusedError,
    SummarizationError,
)
from holdfast.models.digest import (
    Count,
    Digest,
    Quotation,
    choose,
    count,
    digest,
    text_of,
)
from holdfast.models.opening import EXTRACTIVE, open_model
from holdfast.models.protocol import CompletionModel
from holdfast.privacy import apply, find
from holdfast.settings import Settings
from holdfast.summarise.asking import (
    MOST_OF_TARGET,
    Asker,
    Draft,
    Piece,
    Sleep,
    quoted,
    quoted_instead,
)
from holdfast.summarise.cache import MemorySummaryCache, SummaryCache
from holdfast.summarise.chunking import Chunk, chunks
from holdfast.summarise.levels import (
    LADDER,
    RATIO,
    SummarizationLevel,
    SummarizationResult,
    level_for,
    target_tokens,
    tighter,
)
from holdfast.summarise.prompts import prompt
from holdfast.summarise.results import (
    SHORT,
    Wanted,
    affordable,
    check_budget,
    exhausted,
    fair_shares,
    fits_as_it_is,
    quotations_of,
    result_of,
    unchanged,
    with_warnings,
)

_T = TypeVar("_T")

Keep = Callable[[str], Awaitable[str]]
"""Stores an original and returns its ref."""

_MOST_PIECE = 12_000
"""Tokens of a piece, also where the model could take more: what is appended to a content costs a
piece anew, and a place in it should lead somewhere."""
_LEAST_PIECE = 200
_SPARE = 100
"""Tokens for the boundary, the roles of messages, and an answer's least room."""
_MARGIN = 0.15
"""Share of a window that stays free: models count otherwise than we do."""
_OFF_LOOP = 20_000
"""Characters; what is longer is not read on the event loop."""


class HasContent(Protocol):
    """What is needed of an item of a batch."""

    @property
    def content(self) -> str:
        """Its text."""


class ContentSummarizer:
    """Compresses contents by level and budget, with models where the settings name some."""

    def __init__(  # noqa: PLR0913 - what it works with, each by its name
        self,
        settings: Settings | None = None,
        models: Sequence[CompletionModel] | None = None,
        cache: SummaryCache | None = None,
        *,
        counted: Count = count,
        keep: Keep | None = None,
        ledger: TokenBudgetManager | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Take providers from the settings, unless `models` are given in their place.

        `counted` counts the tokens that budgets are in; `keep` stores originals before they are
        summarised; `ledger` is told what every call of a model took.
        """
        self.settings = Settings() if settings is None else settings
        self._models = models
        self._counted = counted
        self._keep = keep
        self._asker = Asker(
            self.settings,
            cache=MemorySummaryCache() if cache is None else cache,
            counted=counted,
            ledger=ledger,
            sleep=sleep,
        )

    @property
    def cache_hits(self) -> int:
        """Pieces whose summary was kept from before."""
        return self._asker.hits

    @property
    def cache_misses(self) -> int:
        """Pieces that a model was asked about."""
        return self._asker.misses

    async def summarize(
        self,
        content: str,
        target_level: SummarizationLevel,
        context: str = "",
        target_budget: int | None = None,
    ) -> SummarizationResult:
        """Compress a content to a level, and to a budget of tokens if one is given.

        `context` is what the content is read for: it decides what matters. Without a budget the
        level's ratio is a target, no promise.

        Raises:
            SummarizationError: every provider failed, and quotations are switched off.
        """
        limit = asyncio.Semaphore(self.settings.parallel_calls)
        return await self._summarize(content, target_level, context, target_budget, limit)

    async def batch_summarize(
        self, items: Sequence[HasContent], target_budget: int, context: str = ""
    ) -> list[SummarizationResult]:
        """Compress items so that together they keep a budget, each with a fair share of it.

        What is short stays whole, and the others share what is left; each gets the loosest level
        that its share allows. Equal contents are summarised once; each is asked for by itself, for
        a sentence must be held against its own source.
        """
        check_budget(target_budget)
        sizes = {item.content: 0 for item in items}
        for content in sizes:
            sizes[content] = await self._off_loop(content, self._counted, content)
        shares = fair_shares([sizes[item.content] for item in items], target_budget)
        wanted: dict[str, int] = {}
        for item, share in zip(items, shares, strict=True):
            wanted[item.content] = min(share, wanted.get(item.content, share))
        limit = asyncio.Semaphore(self.settings.parallel_calls)
        results = await _together(
            self._summarize(content, level_for(sizes[content], share), context, share, limit)
            for content, share in wanted.items()
        )
        by_content = dict(zip(wanted, results, strict=True))
        return [by_content[item.content] for item in items]

    def extract(
        self,
        content: str,
        level: SummarizationLevel,
        context: str = "",
        budget: int | None = None,
    ) -> SummarizationResult:
        """The same at once and without a model: quotations, each with its place."""
        check_budget(budget)
        visible = self._visible(content)
        return self._extracted(
            Wanted(visible, self._counted(visible), level, context, budget, ref="")
        )

    async def _summarize(
        self,
        content: str,
        level: SummarizationLevel,
        context: str,
        budget: int | None,
        limit: asyncio.Semaphore,
    ) -> SummarizationResult:
        check_budget(budget)
        visible = await self._off_loop(content, self._visible, content)
        tokens = await self._off_loop(visible, self._counted, visible)
        ref = await self._keep(content) if self._keep is not None else ""
        # The question goes to the provider as well.
        wanted = Wanted(visible, tokens, level, self._visible(context), budget, ref)
        if fits_as_it_is(wanted):
            return unchanged(wanted)
        failures: list[ModelError] = []
        for provider in self._chain():
            try:
                model = self._opened(provider)
                if model.name == EXTRACTIVE:
                    break
                return await self._by_model(model, wanted, limit)
            except ModelError as error:
                failures.append(error)
        if not self.settings.summarization_extractive:
            raise exhausted(failures)
        result = await self._off_loop(content, self._extracted, wanted)
        return with_warnings(
            result, [f"{error.where}: {error.what}. {error.fix}".rstrip(". ") for error in failures]
        )

    def _visible(self, content: str) -> str:
        """What may be shown of a content, to a provider as well as to who reads the summary."""
        policy = self.settings.privacy_policy
        return content if policy == "allow" else apply(policy, content, find(content))

    def _opened(self, provider: str | CompletionModel) -> CompletionModel:
        return open_model(provider, self.settings) if isinstance(provider, str) else provider

    def _chain(self) -> Iterable[str | CompletionModel]:
        """The providers in the order in which they are asked, each once."""
        if self._models is not None:
            return self._models
        named = [self.settings.summarization_provider, *self.settings.summarization_providers]
        return dict.fromkeys(filter(None, named))

    async def _by_model(
        self, model: CompletionModel, wanted: Wanted, limit: asyncio.Semaphore
    ) -> SummarizationResult:
        """A summary by one model: at the level that is wanted, or at a tighter one that fits."""
        level: SummarizationLevel | None = affordable(wanted)
        drafts: list[Draft] = []
        asked: list[Draft] = []
        reached = SummarizationLevel.HEADLINE
        quotations: list[Quotation] = []
        while level is not None:
            reached = level
            pieces = await self._off_loop(wanted.content, self._pieces, model, wanted, level)
            drafts = await self._map(model, wanted, level, pieces, limit)
            asked += drafts
            quotations = quotations_of(drafts, pieces, wanted.content, self._counted)
            text = text_of(quotations)
            tokens = self._counted(text)
            if wanted.budget is None or tokens <= wanted.budget:
                whole = Digest(text, tokens, tuple(quotations))
                return result_of(wanted, whole, level=level, model=model, asked=asked, last=drafts)
            level = tighter(level)
        if wanted.budget is None or not self.settings.summarization_truncate_fallback:
            raise ModelAnswerError("the summary is too long at every level", where=model.name)
        rest = choose(quotations, wanted.budget, wanted.context, self._counted, prose=True)
        if not rest.text:
            raise ModelAnswerError("no sentence of the summary fits", where=model.name)
        cut = result_of(wanted, rest, level=reached, model=model, asked=asked, last=drafts)
        gone = len(quotations) - len(rest.quotations)
        return msgspec.structs.replace(
            with_warnings(cut, [f"{gone} sentences were left out to keep the budget"]),
            truncated=True,
        )

    def _pieces(
        self, model: CompletionModel, wanted: Wanted, level: SummarizationLevel
    ) -> list[Chunk]:
        frame = prompt("", level, wanted.context, wanted.tokens)
        # Without the random word, whose tokens vary: pieces would begin elsewhere each time, and
        # none of what was kept of them would be found again.
        words = frame.text.replace(frame.boundary, "")
        around = self._counted(frame.system) + self._counted(words) + _SPARE
        # A piece, and the longest answer to it, have to find room beside the prompt's words.
        room = int((model.window * (1 - _MARGIN) - around) / (1 + MOST_OF_TARGET * RATIO[level]))
        if room < _LEAST_PIECE:
            raise ModelRefusedError(
                f"a window of {model.window:,} tokens is too small to summarise in",
                where=model.name,
                fix="Name a larger model, or its window in model_context_overrides.",
            )
        return list(chunks(wanted.content, min(room, _MOST_PIECE), self._counted))

    async def _map(
        self,
        model: CompletionModel,
        wanted: Wanted,
        level: SummarizationLevel,
        pieces: Sequence[Chunk],
        limit: asyncio.Semaphore,
    ) -> list[Draft]:
        async def drafted(chunk: Chunk) -> Draft:
            async with limit:
                text = wanted.content[chunk.start : chunk.stop]
                if chunk.tokens <= SHORT:  # the end of a content: it says what it says
                    return quoted(text)
                piece = Piece(text, chunk.tokens, level, wanted.context, wanted.budget)
                try:
                    return await self._asker.draft(model, piece)
                except ModelAnswerError:
                    # Of fifty pieces one or the other is a list of signs that no model can make
                    # anything of: what it made of all others was paid for, and stays.
                    if len(pieces) < 2 or not self.settings.summarization_extractive:
                        raise
                    return await asyncio.to_thread(quoted_instead, piece, self._counted)

        drafts = await _together(drafted(chunk) for chunk in pieces)
        if 2 * sum(draft.quoted for draft in drafts) > len(drafts):
            raise ModelAnswerError("most answers are no summaries", where=model.name)
        return drafts

    def _extracted(self, wanted: Wanted) -> SummarizationResult:
        if fits_as_it_is(wanted):
            return unchanged(wanted)
        level = affordable(wanted)
        most = target_tokens(level, wanted.tokens)
        if wanted.budget is not None:
            # Quotations fill a budget that lies between two levels, up to the one that is wanted.
            asked = max(wanted.level, SummarizationLevel.CONDENSED, key=LADDER.index)
            most = min(target_tokens(asked, wanted.tokens), wanted.budget)
        quoted = digest(wanted.content, most, wanted.context, counted=self._counted)
        while quoted.torn and wanted.budget is None and most < wanted.tokens:
            # Without a budget the ratio is only a target, and a whole sentence better than half.
            most *= 2
            quoted = digest(wanted.content, most, wanted.context, counted=self._counted)
        if wanted.budget is None and (quoted.torn or quoted.tokens >= wanted.tokens):
            return unchanged(wanted)
        if quoted.torn and not self.settings.summarization_truncate_fallback:
            raise SummarizationError(
                f"nothing of the content fits into {most:,} tokens without being cut",
                fix="Raise the budget, or switch summarization_truncate_fallback on.",
            )
        result = result_of(wanted, quoted, level=level)
        if not quoted.torn:
            return result
        warned = with_warnings(result, ["even the best sentence was cut to keep the budget"])
        return msgspec.structs.replace(warned, truncated=True)

    async def _off_loop(self, content: str, work: Callable[..., _T], *args: object) -> _T:
        if len(content) <= _OFF_LOOP:
            return work(*args)
        return await asyncio.to_thread(work, *args)


async def _together(work: Iterable[Awaitable[_T]]) -> list[_T]:
    """All results in their order; when one fails, the others are not paid for any longer."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
