"""A research run from question to report: plan, gather, analyse, refine, synthesise.

Each finished step is written to a journal, and a killed run resumes after the last one. Without a
model every claim is a quotation. With a model each step checks its answer, and falls back to
quotations if none of it is supported.
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
from holdfast.researching.findings import find_passages, number_findings
from holdfast.researching.index import PassageIndex, find_names
from holdfast.researching.model_calls import BudgetedModel
from holdfast.researching.model_writer import ModelWriter
from holdfast.researching.options import Options, PhaseProgress, ResearchResult
from holdfast.researching.places import SourceContent
from holdfast.researching.ranking import rank
from holdfast.researching.records import Finding, ResearchState, SearchHit, SourceEntry
from holdfast.researching.report import Report
from holdfast.researching.report_budget import fit_report
from holdfast.researching.run_record import (
    AnalysisStep,
    GatherEnd,
    GatherStep,
    PlanStep,
    RefinementStep,
    RunRecord,
    RunStart,
    SearchStep,
    SynthesisStep,
    run_name,
)
from holdfast.researching.search_providers import open_search
from holdfast.researching.source_readings import SourceReadings
from holdfast.researching.sources import (
    Gatherer,
    SourceGiven,
    SourceLead,
    find_leads,
    lead_identity,
)
from holdfast.researching.sub_questions import refers_back, sub_questions
from holdfast.settings import Settings
from holdfast.summarise import ContentSummarizer

ROUNDS = 2
"""Maximum number of refinements; the run ends earlier if nothing new is found."""
_SHOWN = 60
"""Sources per sub-agent: those most relevant to its question."""


async def conduct(
    question: str,
    sources: Sequence[SourceGiven],
    engine: Holdfast,
    settings: Settings,
    options: Options | None = None,
) -> ResearchResult:
    """Research a question in sources.

    Raises:
        ResearchError: if there is no question, no source, or no run to resume.
    """
    if not question.strip():
        raise ResearchError("the question is empty", fix="Give a question.")
    options = options or Options()
    limits = options.limits

    def read_leads() -> tuple[list[SourceLead], str]:
        leads = list(find_leads(sources, limits, options.stdin))
        names = [lead_identity(lead, limits) for lead in leads]
        return leads, run_name([question, options.model_name, str(options.budget), *names])

    leads, run = await asyncio.to_thread(read_leads)
    return await _ResearchRun(question, leads, run, engine, settings, options).run()


class _ResearchRun:
    """One run and the state that its steps share."""

    def __init__(
        self,
        question: str,
        leads: Sequence[SourceLead],
        run: str,
        engine: Holdfast,
        settings: Settings,
        options: Options,
    ) -> None:
        self.question, self.leads = question, leads
        self.engine, self.settings, self.options = engine, settings, options
        self.record = RunRecord(engine.store, engine.scope, run)
        self.contents = ContentStore(engine)
        self.count = token_counter(options.model_name)
        self.readings = SourceReadings(engine.store, engine.scope, open_embedder())
        self.texts: dict[str, SourceContent] = {}
        self._index: PassageIndex | None = None

    @property
    def state(self) -> ResearchState:
        return self.record.state

    async def run(self) -> ResearchResult:
        await self.record.open(resume=self.options.resume)
        if not self.state.query:
            now = time.time() if self.options.now is None else self.options.now
            await self.record.add(RunStart(self.question, now))
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
        return ResearchResult(report, self.state)

    # --- the phases ------------------------------------------------------------------------------

    async def _plan(self, writer: ModelWriter | None) -> None:
        self._report_progress("plan", 0, 1)
        if not self.state.sub_questions:
            by_rules = sub_questions(self.question)
            planned = await writer.plan(self.question, by_rules) if writer else PlanStep(by_rules)
            await self.record.add(planned)
        self._report_progress("plan", 1, 1)

    async def _gather(self) -> None:
        """Read the sources that were not read before the run was killed."""
        if self.record.gathered:
            return
        await self._search()
        leads = [*self.leads, *(SourceLead(hit.url, "search") for hit in self.state.search_hits)]
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
        await gatherer.resume_from(self.state.sources)
        read_before = len(self.state.sources)
        numbers = count(read_before + 1)

        async def save(entries: list[SourceEntry]) -> None:
            await self.record.add(GatherStep(tuple(entries)))

        def show(name: str) -> None:
            self._report_progress("gather", next(numbers), len(leads), name)

        self._report_progress("gather", read_before, len(leads))
        await gatherer.gather(leads[read_before:], save, numbered_from=read_before + 1, show=show)
        await self.record.add(GatherEnd())

    async def _search(self) -> None:
        """Search the web if the settings name a provider and URLs are allowed."""
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
        await self.record.add(SearchStep(tuple(hits.values()), tuple(warnings)))

    async def _read(self) -> None:
        """Load the contents of the readable sources and index their passages."""
        entries = self.state.readable
        for entry in entries:
            stored = await self.engine.store.get(self.engine.scope, entry.sha256)
            if stored is None:  # deleted since an earlier process read it
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

    async def _analyse(self, writer: ModelWriter | None) -> None:
        """Answer the open questions; with a model, several concurrently."""
        questions = self.state.sub_questions
        self._report_progress("analyse", len(self.record.analysed), len(questions))
        waiting = [n for n in range(len(questions)) if n not in self.record.analysed]
        lane = asyncio.Semaphore(self.settings.parallel_calls)

        async def analysed(number: int) -> AnalysisStep:
            async with lane:
                if writer is None:
                    return AnalysisStep(question=number, findings=await self._quotations(number))
                return await self._by_sub_agent(writer, number)

        # Recorded in the order of the questions, so that a resumed run numbers its findings like an
        # uninterrupted one.
        for task in [asyncio.ensure_future(analysed(number)) for number in waiting]:
            await self.record.add(await task)
            self._report_progress("analyse", len(self.record.analysed), len(questions))

    async def _quotations(self, number: int, also: Sequence[str] = ()) -> tuple[Finding, ...]:
        """Return the best passages for a question as findings."""
        index = self.index
        contents = [self.texts[entry.id] for entry in self.state.readable]
        most = self.options.most_of_report // max(len(self.state.sub_questions), 1)
        question = self.state.sub_questions[number]
        if refers_back(question):
            also = [*also, self.question]
        return tuple(
            await asyncio.to_thread(
                find_passages,
                [question],
                index,
                contents,
                first=number,
                also=also,
                most_tokens=most,
            )
        )

    async def _by_sub_agent(self, writer: ModelWriter, number: int) -> AnalysisStep:
        """Return the findings of a sub-agent that gets the most relevant sources."""
        question = self.state.sub_questions[number]
        entries = await asyncio.to_thread(self._nearest, question)
        names = {source_name(entry.ref) for entry in entries}
        payload = Payload(self.contents, self.record.run).only(lambda s: s.source_id in names)
        agent = SubAgent(writer.asker, writer.manager, self.settings, self.texts)
        step = await agent.analyse(number, question, payload, entries, self.state)
        if step.findings:
            return step
        return AnalysisStep(
            question=number,
            findings=await self._quotations(number),
            fidelity=step.fidelity,
            usage=step.usage,
            warnings=step.warnings,
        )

    def _nearest(self, question: str) -> list[SourceEntry]:
        """Return the sources whose passages score best, best first."""
        entries, scores = self.state.readable, rank(self.index, question)
        best = np.zeros(len(entries), np.float32)
        np.maximum.at(best, self.index.source, scores)
        order = np.argsort(-best, kind="stable")[:_SHOWN]
        return [entries[int(number)] for number in order]

    async def _refine(self, writer: ModelWriter | None) -> None:
        """Refine until nothing new is found, no question is added, or the maximum is reached."""
        while not self.record.synthesised and len(self.record.refinements) < ROUNDS:
            if self.record.refinements and not self.record.refinements[-1]:
                return
            self._report_progress("refine", len(self.record.refinements), ROUNDS)
            places_before = _places(self.state.findings)
            if writer is None:
                await self._search_again()
                return
            await self.record.add(await writer.refine(self.state, len(self.record.refinements) + 1))
            await self._analyse(writer)
            if _places(self.state.findings) <= places_before:
                return

    async def _search_again(self) -> None:
        """Search once more for questions without findings, with names from other findings."""
        names = [name for finding in self.state.findings[:5] for name in find_names(finding.claim)]
        answered = {finding.question for finding in self.state.findings}
        for number in range(len(self.state.sub_questions)):
            if number not in answered and names:
                quotations = await self._quotations(number, names)
                await self.record.add(AnalysisStep(question=number, findings=quotations))
        await self.record.add(RefinementStep(()))

    async def _synthesise(self, writer: ModelWriter | None) -> None:
        if self.record.synthesised:
            return
        self._report_progress("synthesise", 0, 1)
        voices = {entry.id: entry.voice for entry in self.state.sources if entry.voice}
        settled = await asyncio.to_thread(number_findings, self.state.findings, voices)
        if writer is None or not settled:
            await self.record.add(SynthesisStep(findings=tuple(settled)))
        else:
            await self.record.add(await writer.summarise(self.state, settled, self.texts))
        self._report_progress("synthesise", 1, 1)

    async def _report(self) -> Report:
        return await asyncio.to_thread(
            fit_report,
            self.state,
            self.options.most_of_report,
            self.count,
            model=self.options.model_name,
            run=self.record.run,
        )

    # --- what the phases share -------------------------------------------------------------------

    @property
    def index(self) -> PassageIndex:
        assert self._index is not None  # noqa: S101 - built before anything is searched
        return self._index

    def _writer(self) -> ModelWriter | None:
        """Return the model's writer; None if every claim is to be a quotation."""
        model = self.options.model
        if not self.options.model_name or model is None:
            return None
        if isinstance(model, str):
            model = open_model(model, self.settings)
        asker = BudgetedModel(model, self.count, self.options.budget, self.state.usage)
        manager = ContextBudgetManager(
            self.settings,
            ContentSummarizer(self.settings, counted=self.count),
            store=self.engine.store,
            scope=self.engine.scope.of(self.record.run),
            count=self.count,
        )
        return ModelWriter(asker, manager, self.settings)

    def _report_progress(self, phase: str, done: int, total: int, source: str = "") -> None:
        self.options.progress(PhaseProgress(phase, done, total, self.state.usage.tokens, source))


def _places(findings: Sequence[Finding]) -> set[tuple[str, int]]:
    """Return the positions of findings, by which new ones are recognised."""
    return {(quote.ref, quote.start) for finding in findings for quote in finding.supporting}


def research(
    question: str,
    sources: Sequence[SourceGiven],
    *,
    model: str | CompletionModel | None = None,
    budget: int | None = None,
    settings: Settings | None = None,
    options: Options | None = None,
) -> ResearchResult:
    """Research a question in files, folders, URLs, refs and texts; return a report with quotations.

    Each claim has a quotation that occurs byte for byte at its place in a stored source. Without a
    model every claim is a quotation. `options` has rarely used parameters. In a running event loop,
    await `holdfast.researching.conduct` instead.
    """
    settings = settings or Settings.load()
    defaults = options or Options()
    run_options = defaults._replace(model=model or defaults.model, budget=budget or defaults.budget)

    async def work() -> ResearchResult:
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
