"""The values of a run: sources, quotes, findings, state.

A source that cannot be read is listed with the reason; no given source is silently ignored.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from holdfast.allocate import Confidence, ContentState, Quality

Origin = Literal["file", "url", "stdin", "ref", "text", "search"]
Status = Literal["read", "duplicate", "skipped"]


class SourceEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A row in the table of sources: a given source and its outcome."""

    id: str
    """`S1`, `S2`, … in the given order."""
    name: str
    """The path, URL or ref as given; `standard input`."""
    origin: Origin
    status: Status = "read"
    note: str = ""
    """Why it was skipped, which source it duplicates, or which part could not be read."""
    ref: str = ""
    """The ref of its stored text; empty if it was skipped."""
    sha256: str = ""
    """Hash of the stored text."""
    title: str = ""
    kind: str = ""
    """`text`, `html`, `pdf`, `docx`, `epub`."""
    tokens: int = 0
    size: int = 0
    """Size of the original in bytes."""
    quality: Quality = Quality.UNKNOWN
    published: float | None = None
    """Its own date if it has one, otherwise the modification time of the file."""
    provenance: str = ""
    """The origin of the text, in words."""
    voice: str = ""
    """The source that it fully or nearly repeats; sources with one voice do not confirm each other.
    """

    def __repr__(self) -> str:
        return f"<SourceEntry {self.id}, {self.status}>"


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """An exact part of a stored source and its place."""

    source: str
    """The id of the source."""
    ref: str
    text: str
    start: int
    """First byte in the stored content."""
    stop: int
    """End offset in bytes, exclusive."""
    lines: tuple[int, int]
    """First and last line, counted from 1."""
    page: int = 0
    """Page of a PDF or an e-book; 0 for other sources."""

    @property
    def where(self) -> str:
        """Return the place in words, as `expand_ref` opens it."""
        first, last = self.lines
        lines = f"line {first}" if first == last else f"lines {first}-{last}"
        return f"page {self.page}, {lines}" if self.page else lines

    def __repr__(self) -> str:
        return f"<Quote of {self.source}, {self.where}>"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A claim about a question, with supporting and contradicting quotes."""

    id: str
    question: int
    """Index of the sub-question that it answers."""
    claim: str
    """The quote itself, or a model's words that its quotes support."""
    confidence: Confidence = Confidence.UNKNOWN
    supporting: tuple[Quote, ...] = ()
    contradicting: tuple[Quote, ...] = ()
    score: float = 0.0
    """Relevance to the question relative to the best finding, from 0 to 1."""

    def __repr__(self) -> str:
        return f"<Finding {self.id}, {len(self.supporting)} quotes>"


class SummarySentence(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence of a model's summary and the findings that support it."""

    text: str
    findings: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<Statement on {', '.join(self.findings)}>"


class SearchHit(msgspec.Struct, frozen=True):
    """A page from a web search; its content is read only when it is fetched."""

    title: str
    url: str
    snippet: str = ""
    content_citation_id: str | None = None
    """The ref of its content after it was fetched."""

    def __repr__(self) -> str:
        return f"<SearchHit {self.content_citation_id or 'not fetched'}>"


class ModelUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The calls to models, and the rejected parts of their answers."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    refused_quotes: int = 0
    """Quotes that are in none of the sources shown to the model."""
    refused_claims: int = 0
    """Sentences that their quotes do not support."""
    failures: int = 0
    """Calls without a usable answer, replaced by quotations."""

    def __add__(self, other: ModelUsage) -> ModelUsage:
        fields = self.__struct_fields__
        return ModelUsage(**{name: getattr(self, name) + getattr(other, name) for name in fields})

    @property
    def tokens(self) -> int:
        """Return all tokens that were paid for."""
        return self.input_tokens + self.output_tokens


class ResearchState(ContentState, kw_only=True):
    """The state of a run; every field has a default, so that older states load."""

    sub_questions: tuple[str, ...] = ()
    sources: list[SourceEntry] = msgspec.field(default_factory=list)
    search_hits: list[SearchHit] = msgspec.field(default_factory=list)
    """Distinct pages of web searches; fetched ones have their refs."""
    findings: list[Finding] = msgspec.field(default_factory=list)
    summary: tuple[SummarySentence, ...] = ()
    rounds: int = 0
    """Number of refinements that added questions."""
    usage: ModelUsage = ModelUsage()
    warnings: list[str] = msgspec.field(default_factory=list)

    @property
    def readable(self) -> list[SourceEntry]:
        """Return the searched sources: neither duplicates nor unreadable ones."""
        return [entry for entry in self.sources if entry.status == "read"]

    def source(self, source_id: str) -> SourceEntry | None:
        """Return a source by its id."""
        return next((entry for entry in self.sources if entry.id == source_id), None)
