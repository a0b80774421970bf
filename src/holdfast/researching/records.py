"""What a research is about and what came of it, as values: sources, quotes, findings, the state.

records: the first word of researching; it does nothing. A source that could not be read stands here
as well, with the reason: nothing that was given is passed over in silence.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from holdfast.allocate import Confidence, ContentState, Quality

Origin = Literal["file", "url", "stdin", "ref", "text", "search"]
Status = Literal["read", "duplicate", "skipped"]


class SourceEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line in the table of sources: something that was given, and what became of it."""

    id: str
    """`S1`, `S2`, … in the order of giving."""
    name: str
    """The path, URL or ref as it was given; `standard input`."""
    origin: Origin
    status: Status = "read"
    note: str = ""
    """Why it was skipped, what it is a duplicate of, or what of it could not be read."""
    ref: str = ""
    """Its text in the store; empty if it was skipped."""
    sha256: str = ""
    """Of the stored text."""
    title: str = ""
    kind: str = ""
    """`text`, `html`, `pdf`, `docx`, `epub`."""
    tokens: int = 0
    size: int = 0
    """Bytes as it was given."""
    quality: Quality = Quality.UNKNOWN
    published: float | None = None
    """When it was written, as far as it says; else when its file was changed last."""
    provenance: str = ""
    """Where the text comes from, in words."""
    voice: str = ""
    """The source that it repeats, wholly or nearly; such sources confirm nothing together."""

    def __repr__(self) -> str:
        return f"<SourceEntry {self.id}, {self.status}>"


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a stored source as it stands there, and where."""

    source: str
    """The id of the entry."""
    ref: str
    text: str
    start: int
    """First byte in the stored content."""
    stop: int
    """Behind its last byte."""
    lines: tuple[int, int]
    """First and last line, counted from 1."""
    page: int = 0
    """Of a PDF or an e-book; 0 for what has no pages."""

    @property
    def where(self) -> str:
        """The place in words, as `expand_ref` opens it."""
        first, last = self.lines
        lines = f"line {first}" if first == last else f"lines {first}-{last}"
        return f"page {self.page}, {lines}" if self.page else lines

    def __repr__(self) -> str:
        return f"<Quote of {self.source}, {self.where}>"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A claim on a question, with the places that bear it out and those that speak against it."""

    id: str
    question: int
    """The sub-question that it answers, by its place among them."""
    claim: str
    """The quote itself, or words of a model that its quotes bear out."""
    confidence: Confidence = Confidence.UNKNOWN
    supporting: tuple[Quote, ...] = ()
    contradicting: tuple[Quote, ...] = ()
    score: float = 0.0
    """How much it has to do with the question, against the best: 0 to 1."""

    def __repr__(self) -> str:
        return f"<Finding {self.id}, {len(self.supporting)} quotes>"


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence of a model's summary, and the findings that it stands on."""

    text: str
    findings: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<Statement on {', '.join(self.findings)}>"


class SearchHit(msgspec.Struct, frozen=True):
    """A page that a search names; its content is read only when it is fetched (003-41)."""

    title: str
    url: str
    snippet: str = ""
    content_citation_id: str | None = None
    """The ref of its content, once it was fetched."""

    def __repr__(self) -> str:
        return f"<SearchHit {self.content_citation_id or 'not fetched'}>"


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What models were asked, and what was thrown away of their answers."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    refused_quotes: int = 0
    """Quotes that stand in no source that the model was shown."""
    refused_claims: int = 0
    """Sentences that state what their quotes do not say."""
    failures: int = 0
    """Calls that gave no usable answer; quotations took their place."""

    def __add__(self, other: Usage) -> Usage:
        fields = self.__struct_fields__
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in fields})

    @property
    def tokens(self) -> int:
        """All that was paid for."""
        return self.input_tokens + self.output_tokens


class ResearchState(ContentState, kw_only=True):
    """All that a run knows; every field has a default, so that older states load (000-70)."""

    sub_questions: tuple[str, ...] = ()
    sources: list[SourceEntry] = msgspec.field(default_factory=list)
    search_hits: list[SearchHit] = msgspec.field(default_factory=list)
    """Pages that a search named, each once; those that were fetched with their refs."""
    findings: list[Finding] = msgspec.field(default_factory=list)
    summary: tuple[Statement, ...] = ()
    rounds: int = 0
    """Refinements that found something."""
    usage: Usage = Usage()
    warnings: list[str] = msgspec.field(default_factory=list)

    @property
    def readable(self) -> list[SourceEntry]:
        """The sources that are searched: no duplicates, none that could not be read."""
        return [entry for entry in self.sources if entry.status == "read"]

    def source(self, source_id: str) -> SourceEntry | None:
        """A source by its id."""
        return next((entry for entry in self.sources if entry.id == source_id), None)
