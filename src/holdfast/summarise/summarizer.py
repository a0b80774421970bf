"""Summarise contents with the configured providers, without adding anything.

Each provider receives the original content in pieces, never a summary, and its supported sentences
are joined unchanged. A summary that is too long is requested once more at the next shorter level,
then cut; quoting the content is the last provider and cannot fail. The original is stored before
anything else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol, TypeVar

import msgspec

from holdfast.budget.manager import TokenBudgetManager
from holdfast.condense.digest import Count, Digest, Quotation, choose, text_of
from holdfast.errors import (
    ModelAnswerError,
    ModelError,
    ModelRefusedError,
    SummarizationError,
)
from holdfast.models.digest import count, digest
from holdfast.models.opening import EXTRACTIVE, open_model
from holdfast.models.protocol import CompletionModel
from holdfast.privacy import apply, find
from holdfast.settings import Settings
from holdfast.summarise.cache import MemorySummaryCache, SummaryCache
from holdfast.summarise.chunks import Chunk, chunks
from holdfast.summarise.levels import (
    LADDER,
    RATIO,
    SummarizationLevel,
    SummarizationResult,
    level_for,
    target_tokens,
    tighter,
)
from holdfast.summarise.piece_summaries import (
    MOST_OF_TARGET,
    PieceSummarizer,
    Sleep,
    SummaryDraft,
    SummaryPiece,
    quotation_draft,
    unchanged_draft,
)
from holdfast.summarise.prompts import prompt
from holdfast.summarise.results import (
    SHORT,
    SummaryRequest,
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
"""Store an original and return its ref."""

# Maximum tokens of a piece, even if the model accepts more. Appending to a content changes only its
# last pieces, and smaller pieces give more precise source positions.
_MOST_PIECE = 12_000
_LEAST_PIECE = 200
_SPARE = 100
"""Tokens reserved for the boundary, the message roles and a minimal answer."""
# Share of a window left free, because models count differently.
_MARGIN = 0.15
_OFF_LOOP = 20_000
"""Maximum characters processed on the event loop."""


class HasContent(Protocol):
    """An item of a batch."""

    @property
    def content(self) -> str:
        """Return the text of the item."""


class ContentSummarizer:
    """Compresses contents to a level or budget, with models if the settings name any."""

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
        """Use the providers of the settings, or `models` if given.

        `counted` counts the tokens of budgets, `keep` stores originals before they are summarised,
        and `ledger` records the usage of every model call.
        """
        self.settings = Settings() if settings is None else settings
        self._models = models
        self._counted = counted
        self._keep = keep
        self._asker = PieceSummarizer(
            self.settings,
            cache=MemorySummaryCache() if cache is None else cache,
            counted=counted,
            ledger=ledger,
            sleep=sleep,
        )

    @property
    def cache_hits(self) -> int:
        """Return the number of pieces whose summary came from the cache."""
        return self._asker.hits

    @property
    def cache_misses(self) -> int:
        """Return the number of pieces that a model was asked to summarise."""
        return self._asker.misses

    async def summarize(
        self,
        content: str,
        target_level: SummarizationLevel,
        context: str = "",
        target_budget: int | None = None,
    ) -> SummarizationResult:
        """Compress a content to a level, and to a token budget if one is given.

        `context` is the reader's question, which decides what matters. Without a budget the level's
        ratio is a target.

        Raises:
            SummarizationError: every provider failed, and quoting is disabled.
        """
        limit = asyncio.Semaphore(self.settings.parallel_calls)
        return await self._summarize(content, target_level, context, target_budget, limit)

    async def batch_summarize(
        self, items: Sequence[HasContent], target_budget: int, context: str = ""
    ) -> list[SummarizationResult]:
        """Compress items so that together they keep a budget, each with a fair share.

        Short items stay complete and the others share the remainder; each takes the longest level
        that its share allows. Equal contents are summarised once. Items are summarised separately,
        because each sentence must be compared with its own source.
        """
        check_budget(target_budget)
        sizes = {item.content: 0 for item in items}
        for content in sizes:
            sizes[content] = await self._off_loop(content, self._counted, content)
        shares = fair_shares([sizes[item.content] for item in items], target_budget)
        shares_by_content: dict[str, int] = {}
        for item, share in zip(items, shares, strict=True):
            shares_by_content[item.content] = min(share, shares_by_content.get(item.content, share))
        limit = asyncio.Semaphore(self.settings.parallel_calls)
        results = await _gather_or_cancel(
            self._summarize(content, level_for(sizes[content], share), context, share, limit)
            for content, share in shares_by_content.items()
        )
        by_content = dict(zip(shares_by_content, results, strict=True))
        return [by_content[item.content] for item in items]

    def extract(
        self,
        content: str,
        level: SummarizationLevel,
        context: str = "",
        budget: int | None = None,
    ) -> SummarizationResult:
        """Compress synchronously and without a model: quotations with their source positions."""
        check_budget(budget)
        visible = self._visible(content)
        return self._extracted(
            SummaryRequest(visible, self._counted(visible), level, context, budget, ref="")
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
        # The question goes to the provider as well, so the privacy policy applies to it.
        request = SummaryRequest(visible, tokens, level, self._visible(context), budget, ref)
        if fits_as_it_is(request):
            return unchanged(request)
        failures: list[ModelError] = []
        for provider in self._chain():
            try:
                model = self._opened(provider)
                if model.name == EXTRACTIVE:
                    break
                return await self._by_model(model, request, limit)
            except ModelError as error:
                failures.append(error)
        if not self.settings.summarization_extractive:
            raise exhausted(failures)
        result = await self._off_loop(content, self._extracted, request)
        return with_warnings(
            result, [f"{error.where}: {error.what}. {error.fix}".rstrip(". ") for error in failures]
        )

    def _visible(self, content: str) -> str:
        """Return the content that the privacy policy allows providers and readers to see."""
        policy = self.settings.privacy_policy
        return content if policy == "allow" else apply(policy, content, find(content))

    def _opened(self, provider: str | CompletionModel) -> CompletionModel:
        return open_model(provider, self.settings) if isinstance(provider, str) else provider

    def _chain(self) -> Iterable[str | CompletionModel]:
        """Return the providers in order, without duplicates."""
        if self._models is not None:
            return self._models
        named = [self.settings.summarization_provider, *self.settings.summarization_providers]
        return dict.fromkeys(filter(None, named))

    async def _by_model(
        self, model: CompletionModel, request: SummaryRequest, limit: asyncio.Semaphore
    ) -> SummarizationResult:
        """Return a model's summary at the requested level, or at a shorter level that fits."""
        level: SummarizationLevel | None = affordable(request)
        drafts: list[SummaryDraft] = []
        all_drafts: list[SummaryDraft] = []
        reached = SummarizationLevel.HEADLINE
        quotations: list[Quotation] = []
        while level is not None:
            reached = level
            pieces = await self._off_loop(request.content, self._pieces, model, request, level)
            drafts = await self._map(model, request, level, pieces, limit)
            all_drafts += drafts
            quotations = quotations_of(drafts, pieces, request.content, self._counted)
            text = text_of(quotations)
            tokens = self._counted(text)
            if request.budget is None or tokens <= request.budget:
                complete_digest = Digest(text, tokens, tuple(quotations))
                return result_of(
                    request,
                    complete_digest,
                    level=level,
                    model=model,
                    all_drafts=all_drafts,
                    last_drafts=drafts,
                )
            level = tighter(level)
        if request.budget is None or not self.settings.summarization_truncate_fallback:
            raise ModelAnswerError("the summary is too long at every level", where=model.name)
        chosen = choose(quotations, request.budget, request.context, self._counted, prose=True)
        if not chosen.text:
            raise ModelAnswerError("no sentence of the summary fits", where=model.name)
        shortened = result_of(
            request, chosen, level=reached, model=model, all_drafts=all_drafts, last_drafts=drafts
        )
        omitted = len(quotations) - len(chosen.quotations)
        return msgspec.structs.replace(
            with_warnings(shortened, [f"{omitted} sentences were left out to keep the budget"]),
            truncated=True,
        )

    def _pieces(
        self, model: CompletionModel, request: SummaryRequest, level: SummarizationLevel
    ) -> list[Chunk]:
        frame = prompt("", level, request.context, request.tokens)
        # Exclude the random boundary, whose token count varies: it would shift the pieces, and no
        # cached summary would match.
        words = frame.text.replace(frame.boundary, "")
        prompt_tokens = self._counted(frame.system) + self._counted(words) + _SPARE
        # The window must hold the piece, its longest answer and the prompt.
        room = int(
            (model.window * (1 - _MARGIN) - prompt_tokens) / (1 + MOST_OF_TARGET * RATIO[level])
        )
        if room < _LEAST_PIECE:
            raise ModelRefusedError(
                f"a window of {model.window:,} tokens is too small to summarise in",
                where=model.name,
                fix="Name a larger model, or its window in model_context_overrides.",
            )
        return list(chunks(request.content, min(room, _MOST_PIECE), self._counted))

    async def _map(
        self,
        model: CompletionModel,
        request: SummaryRequest,
        level: SummarizationLevel,
        pieces: Sequence[Chunk],
        limit: asyncio.Semaphore,
    ) -> list[SummaryDraft]:
        async def drafted(chunk: Chunk) -> SummaryDraft:
            async with limit:
                text = request.content[chunk.start : chunk.stop]
                if chunk.tokens <= SHORT:  # the end of a content, too short to summarise
                    return unchanged_draft(text)
                piece = SummaryPiece(text, chunk.tokens, level, request.context, request.budget)
                try:
                    return await self._asker.draft(model, piece)
                except ModelAnswerError:
                    # One of fifty pieces may be a list of characters that no model can summarise.
                    # The summaries of the others were paid for and are kept.
                    if len(pieces) < 2 or not self.settings.summarization_extractive:
                        raise
                    return await asyncio.to_thread(quotation_draft, piece, self._counted)

        drafts = await _gather_or_cancel(drafted(chunk) for chunk in pieces)
        if 2 * sum(draft.is_quoted for draft in drafts) > len(drafts):
            raise ModelAnswerError("most answers are no summaries", where=model.name)
        return drafts

    def _extracted(self, request: SummaryRequest) -> SummarizationResult:
        if fits_as_it_is(request):
            return unchanged(request)
        level = affordable(request)
        limit = target_tokens(level, request.tokens)
        if request.budget is not None:
            # Quotations may fill a budget between two levels, up to the requested level.
            loosest = max(request.level, SummarizationLevel.CONDENSED, key=LADDER.index)
            limit = min(target_tokens(loosest, request.tokens), request.budget)
        quotation_digest = digest(request.content, limit, request.context, counted=self._counted)
        while quotation_digest.torn and request.budget is None and limit < request.tokens:
            # Without a budget the ratio is a target, and a complete sentence is better than half of
            # one.
            limit *= 2
            quotation_digest = digest(
                request.content, limit, request.context, counted=self._counted
            )
        if request.budget is None and (
            quotation_digest.torn or quotation_digest.tokens >= request.tokens
        ):
            return unchanged(request)
        if quotation_digest.torn and not self.settings.summarization_truncate_fallback:
            raise SummarizationError(
                f"nothing of the content fits into {limit:,} tokens without being cut",
                fix="Raise the budget, or switch summarization_truncate_fallback on.",
            )
        result = result_of(request, quotation_digest, level=level)
        if not quotation_digest.torn:
            return result
        warned = with_warnings(result, ["even the best sentence was cut to keep the budget"])
        return msgspec.structs.replace(warned, truncated=True)

    async def _off_loop(self, content: str, work: Callable[..., _T], *args: object) -> _T:
        if len(content) <= _OFF_LOOP:
            return work(*args)
        return await asyncio.to_thread(work, *args)


async def _gather_or_cancel(work: Iterable[Awaitable[_T]]) -> list[_T]:
    """Await all results in order; if one fails, cancel the others to stop their cost."""
    tasks = [asyncio.ensure_future(awaitable) for awaitable in work]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
