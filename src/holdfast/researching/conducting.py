"""Research from a question to a report: plan, gather, analyse, refine, synthesise.

conducting: the last word of researching. Each step is written down when it is done, and a run that
was killed goes on behind its last. Without a model every claim is a quotation; with one each step
asks it, checks what it says, and falls back to quotations where it says nothing that holds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from itertools import count

import numpy as np

from holdfast.allocate import ContextBudgetManager
from holdfast.allocate.manager import token_counter
from holdfast.compat import ContentStore, Payload
from holdfast.engine import Holdfast
from holdfast.errors import HoldfastError, ResearchError
from holdfast.models.embedding import open_embedder
from holdfast.models.opening import open_model
from holdfast.models.protocol import CompletionModel
from holdfast.researching.agents import SubAgent, source_name
from holdfast.researching.asking import Asker
from holdfast.researching.composing import compose
from holdfast.researching.finding import find, settle
from holdfast.researching.gathering import (
    Gatherer,
    Lead,
    SourceGiven,
    identity_of,
    leads_of,
)
from holdfast.researching.index import PassageIndex, names_in
from holdfast.researching.options import Options, PhaseProgress, Researched
from holdfast.researching.places import SourceContent
from holdfast.researching.planning import refers_back, sub_questions
from holdfast.researching.ranking import rank
from holdfast.researching.reading import Readings
from holdfast.researching.records import Finding, ResearchState, SearchHit, SourceEntry
from holdfast.researching.report import Report
from holdfast.researching.saving import (
    Analysed,
    Begun,
    Gathered,
    GatheredAll,
    Planned,
    Record,
    Refined,
    Searched,
    Synthesised,
    run_of,
)
from holdfast.researching.searching import open_search
from holdfast.researching.synthesising import Writer
from holdfast.settings import Settings
from holdfast.summarise import ContentSummarizer

ROUNDS = 2
"""Refinements at most; it ends earlier when nothing new was found."""
_SHOWN = 60
"""Sources that one sub-agent is given: those that bear most on its question."""


async def conduct(
    question: str,
    sources: Sequence[SourceGiven],
    engine: Holdfast,
    settings: Settings,
    options: Options | None = None,
) -> Researched:
    """Research a question in sources.

    Raises:
        ResearchError: nothing is asked, nothing was given, or there is nothing to go on from.
    """
    if not question.strip():
        raise ResearchError("nothing is asked", fix="Give a question.")
    options = options or Options()
    limits = options.limits

    def looked_at() -> tuple[list[Lead], str]:
        leads = list(leads_of(sources, limits, options.stdin))
        names = [identity_of(lead, limits) for lead in leads]
        return leads, run_of([question, options.model_name, str(options.budget), *names])

    leads, run = await asyncio.to_thread(looked_at)
    return await _Run(question, leads, run, engine, settings, options).run()


class _Run:
    """One run: what it shares between its steps."""

    def __init__(
        self,
        question: str,
        leads: Sequence[Lead],
        run: str,
        engine: Holdfast,
        settings: Settings,
        options: Options,
    ) -> None:
        self.question, self.leads = question, leads
        self.engine, self.settings, self.options = engine, settings, options
        self.record = Record(engine.store, engine.scope, run)
        self.contents = ContentStore(engine)
        self.count = token_counter(options.model_name)
        self.readings = Readings(engine.store, engine.scope, open_embedder())
        self.texts: dict[str, SourceContent] = {}
        self._index: PassageIndex | None = None

    @property
    def state(self) -> ResearchState:
        return self.record.state

    async def run(self) -> Researched:
        await self.record.open(resume=self.options.resume)
        if not self.state.query:
            now = time.time() if self.options.now is None else self.options.now
            await self.record.add(Begun(self.question, now))
        writer = self._writer()
        await self._plan(writer)
        await self._gather()
        await self._read()
        await self._analyse(writer)
        await self._refine(writer)
        await self._synthesise(writer)
        report = await self._report()
        if self.options.discard:
            await self.contents.close_run(self.record.run)
        return Researched(report, self.state)

    # --- the phases ------------------------------------------------------------------------------

    async def _plan(self, writer: Writer | None) -> None:
        self._tell("plan", 0, 1)
        if not self.state.sub_questions:
            by_rules = sub_questions(self.question)
            planned = await writer.plan(self.question, by_rules) if writer else Planned(by_rules)
            await self.record.add(planned)
        self._tell("plan", 1, 1)

    async def _gather(self) -> None:
        """Read every source that was not read before the run was killed."""
        if self.record.gathered:
            return
        await self._search()
        leads = [*self.leads, *(Lead(hit.url, "search") for hit in self.state.search_hits)]
        if not leads:
            raise ResearchError(
                "no sources were given", fix="Give files, folders, URLs, refs, or - for a pipe."
            )
        gatherer = Gatherer(
            self.contents,
            self.record.run,
            self.engine.workers,
            self.options.limits,
            self.readings,
        )
        await gatherer.take_up(self.state.sources)
        read_before = len(self.state.sources)
        numbers = count(read_before + 1)

        async def save(entries: list[SourceEntry]) -> None:
            await self.record.add(Gathered(tuple(entries)))

        def show(name: str) -> None:
            self._tell("gather", next(numbers), len(leads), name)

        self._tell("gather", read_before, len(leads))
        await gatherer.gather(leads[read_before:], save, numbered_from=read_before + 1, show=show)
        await self.record.add(GatheredAll())

    async def _search(self) -> None:
        """Ask for pages, where the settings name a search provider and URLs are allowed."""
        provider = open_search(self.settings) if self.options.limits.allow_urls else None
        if provider is None or self.record.searched:
            return
        hits: dict[str, SearchHit] = {}
        warnings: list[str] = []
        for question in self.state.sub_questions:
            try:
                for hit in await provider.search(question):
                    hits.setdefault(hit.url, hit)
            except ResearchError as error:
                warnings.append(f"{error.where}: {error.what}")
        await self.record.add(Searched(tuple(hits.values()), tuple(warnings)))

    async def _read(self) -> None:
        """Open the sources that are searched, and index them."""
        entries = self.state.readable
        for entry in entries:
            stored = await self.engine.store.get(self.engine.scope, entry.sha256)
            if stored is None:  # removed since an earlier process had read it
                raise ResearchError(
                    "the store no longer has all sources of this run",
                    where=entry.name,
                    fix="Leave --resume out: then they are read again.",
                )
            self.texts[entry.id] = SourceContent(entry, stored)
        texts = [self.texts[entry.id].text for entry in entries]
        readings = [
            await self.readings.of(entry.sha256, text)
            for entry, text in zip(entries, texts, strict=True)
        ]
        titles = [entry.title for entry in entries]
        self._index = await asyncio.to_thread(
            PassageIndex, texts, titles, readings, self.readings.embedder
        )

    async def _analyse(self, writer: Writer | None) -> None:
        """Answer each question that was not answered yet, some at once where a model is asked."""
        questions = self.state.sub_questions
        self._tell("analyse", len(self.record.analysed), len(questions))
        waiting = [n for n in range(len(questions)) if n not in self.record.analysed]
        lane = asyncio.Semaphore(self.settings.parallel_calls)

        async def analysed(number: int) -> Analysed:
            async with lane:
                if writer is None:
                    return Analysed(question=number, findings=await self._quotations(number))
                return await self._by_sub_agent(writer, number)

        # Written down in the order of the questions, so that a run that was killed in between
        # numbers its findings as one that was not.
        for task in [asyncio.ensure_future(analysed(number)) for number in waiting]:
            await self.record.add(await task)
            self._tell("analyse", len(self.record.analysed), len(questions))

    async def _quotations(self, number: int, also: Sequence[str] = ()) -> tuple[Finding, ...]:
        """The passages on a question."""
        index = self.index
        contents = [self.texts[entry.id] for entry in self.state.readable]
        most = self.options.most_of_report // max(len(self.state.sub_questions), 1)
        question = self.state.sub_questions[number]
        if refers_back(question):
            also = [*also, self.question]
        return tuple(
            await asyncio.to_thread(
                find, [question], index, contents, first=number, also=also, most_tokens=most
            )
        )

    async def _by_sub_agent(self, writer: Writer, number: int) -> Analysed:
        """What a sub-agent finds, with the sources that bear most on its question."""
        question = self.state.sub_questions[number]
        entries = await asyncio.to_thread(self._nearest, question)
        names = {source_name(entry.ref) for entry in entries}
        payload = Payload(self.contents, self.record.run).only(lambda s: s.source_id in names)
        agent = SubAgent(writer.asker, writer.manager, self.settings, self.texts)
        step = await agent.analyse(number, question, payload, entries, self.state)
        if step.findings:
            return step
        return Analysed(
            question=number,
            findings=await self._quotations(number),
            fidelity=step.fidelity,
            usage=step.usage,
            warnings=step.warnings,
        )

    def _nearest(self, question: str) -> list[SourceEntry]:
        """The sources whose passages score best, the best first."""
        entries, scores = self.state.readable, rank(self.index, question)
        best = np.zeros(len(entries), np.float32)
        np.maximum.at(best, self.index.source, scores)
        order = np.argsort(-best, kind="stable")[:_SHOWN]
        return [entries[int(number)] for number in order]

    async def _refine(self, writer: Writer | None) -> None:
        """Ask for what is missing until nothing new is found, nobody asks, or it is enough."""
        while not self.record.synthesised and len(self.record.refinements) < ROUNDS:
            if self.record.refinements and not self.record.refinements[-1]:
                return
            self._tell("refine", len(self.record.refinements), ROUNDS)
            places_before = _places(self.state.findings)
            if writer is None:
                await self._search_again()
                return
            await self.record.add(await writer.refine(self.state, len(self.record.refinements) + 1))
            await self._analyse(writer)
            if _places(self.state.findings) <= places_before:
                return

    async def _search_again(self) -> None:
        """Questions without findings are searched once more, with the names that others led to."""
        names = [name for finding in self.state.findings[:5] for name in names_in(finding.claim)]
        answered = {finding.question for finding in self.state.findings}
        for number in range(len(self.state.sub_questions)):
            if number not in answered and names:
                quotations = await self._quotations(number, names)
                await self.record.add(Analysed(question=number, findings=quotations))
        await self.record.add(Refined(()))

    async def _synthesise(self, writer: Writer | None) -> None:
        if self.record.synthesised:
            return
        self._tell("synthesise", 0, 1)
        voices = {entry.id: entry.voice for entry in self.state.sources if entry.voice}
        settled = await asyncio.to_thread(settle, self.state.findings, voices)
        if writer is None or not settled:
            await self.record.add(Synthesised(findings=tuple(settled)))
        else:
            await self.record.add(await writer.summarise(self.state, settled, self.texts))
        self._tell("synthesise", 1, 1)

    async def _report(self) -> Report:
        return await asyncio.to_thread(
            compose,
            self.state,
            self.options.most_of_report,
            self.count,
            model=self.options.model_name,
            run=self.record.run,
        )

    # --- what the phases share -------------------------------------------------------------------

    @property
    def index(self) -> PassageIndex:
        assert self._index is not None  # noqa: S101 - it is built before anything is searched
        return self._index

    def _writer(self) -> Writer | None:
        """The model that is asked; None where every claim is to be a quotation."""
        model = self.options.model
        if not self.options.model_name or model is None:
            return None
        if isinstance(model, str):
            model = open_model(model, self.settings)
        asker = Asker(model, self.count, self.options.budget, self.state.usage)
        manager = ContextBudgetManager(
            self.settings,
            ContentSummarizer(self.settings, counted=self.count),
            store=self.engine.store,
            scope=self.engine.scope.of(self.record.run),
            count=self.count,
        )
        return Writer(asker, manager, self.settings)

    def _tell(self, phase: str, done: int, total: int, source: str = "") -> None:
        self.options.progress(PhaseProgress(phase, done, total, self.state.usage.tokens, source))


def _places(findings: Sequence[Finding]) -> set[tuple[str, int]]:
    """Where findings stand: by these it is known whether a new one says anything new."""
    return {(quote.ref, quote.start) for finding in findings for quote in finding.supporting}


def research(
    question: str,
    sources: Sequence[SourceGiven],
    *,
    model: str | CompletionModel | None = None,
    budget: int | None = None,
    settings: Settings | None = None,
    options: Options | None = None,
) -> Researched:
    """Research a question in files, folders, URLs, refs and texts: a report that quotes.

    Each claim has a quote that stands byte for byte in a stored source at the named place; without
    a model every claim is a quotation. `options` has what is asked for rarely. In a running event
    loop, await `holdfast.researching.conduct` instead.
    """
    settings = settings or Settings.load()
    defaults = options or Options()
    run_options = defaults._replace(model=model or defaults.model, budget=budget or defaults.budget)

    async def work() -> Researched:
        async with Holdfast.open(settings=settings) as engine:
            return await conduct(question, sources, engine, settings, run_options)

    try:
        return asyncio.run(work())
    except RuntimeError as error:
        if "running event loop" not in str(error):
            raise
        raise HoldfastError(
            "research() was called inside a running event loop",
            fix="Await holdfast.researching.conduct instead.",
        ) from None
