"""The report as a value, which is also its JSON form; Markdown and HTML are rendered from it.

It lists only the sources that one of its claims quotes.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from holdfast.allocate import Confidence, Quality, Rung
from holdfast.errors import ResearchError
from holdfast.researching.records import Finding, ModelUsage, Origin, SourceEntry, SummarySentence

VERSION = 1
CONFIDENCE = {
    Confidence.CONFIRMED.value: "at least two sources say so that do not repeat each other",
    Confidence.HIGH.value: "one source says so, and it bears on the question at least half as much"
    " as the best finding does",
    Confidence.MEDIUM.value: "one source says so, and it bears less on the question",
    Confidence.LOW.value: "another source states another number or date of the same",
}
"""How well the given sources support a finding; not whether they are right."""


class SourceFidelity(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a source the report quotes."""

    level: Rung
    tokens_from: int
    tokens_to: int


class CitedSource(msgspec.Struct, frozen=True, kw_only=True):
    """A source that the report quotes."""

    id: str
    path: str = ""
    url: str = ""
    origin: Origin
    ref: str
    sha256: str
    title: str = ""
    kind: str = ""
    quality: Quality = Quality.UNKNOWN
    published: float | None = None
    provenance: str = ""
    note: str = ""
    fidelity: SourceFidelity

    @property
    def name(self) -> str:
        """Return the path, URL or ref as given."""
        return self.url or self.path or self.ref


class SkippedSource(msgspec.Struct, frozen=True, kw_only=True):
    """A source that could not be read or repeats another."""

    name: str
    note: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A report with quotations."""

    version: int = VERSION
    run: str = ""
    """The name of the run, whose record in the store has the origin of each source."""
    question: str
    sub_questions: tuple[str, ...]
    model: str = ""
    """The model that wrote summary and claims; empty if every claim is a quotation."""
    created: float | None = None
    summary: tuple[SummarySentence, ...] = ()
    findings: tuple[Finding, ...] = ()
    confidence: dict[str, str] = msgspec.field(default_factory=lambda: dict(CONFIDENCE))
    """The meaning of each confidence level."""
    sources: tuple[CitedSource, ...] = ()
    """The sources that a finding quotes."""
    left_out: tuple[SkippedSource, ...] = ()
    sources_read: int = 0
    source_tokens: int = 0
    """Tokens of all sources read: their cost in a prompt."""
    findings_left_out: int = 0
    """Number of findings that exceeded the budget."""
    budget: int = 0
    brief: bool = False
    """Whether the Markdown only counts the sources left out, to have room for findings."""
    usage: ModelUsage = ModelUsage()
    warnings: tuple[str, ...] = ()

    def dump(self) -> bytes:
        """Return the report as JSON."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"

    @classmethod
    def load(cls, data: bytes | str) -> Report:
        """Return a report from the JSON that `dump` wrote.

        Raises:
            ResearchError: if it is not a report.
        """
        try:
            report = msgspec.json.decode(data, type=cls)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ResearchError(
                f"this is not a Holdfast report: {str(error)[:200]}",
                fix="Give the JSON of `holdfast research --format json`.",
            ) from None
        if report.version != VERSION:
            raise ResearchError(f"the report is of version {report.version}, not {VERSION}")
        return report

    def __repr__(self) -> str:
        return f"<Report {len(self.findings)} findings of {len(self.sources)} sources>"


def skipped_sources(entries: Iterable[SourceEntry]) -> tuple[SkippedSource, ...]:
    """Return the entries that are not searched, with the reasons."""
    return tuple(
        SkippedSource(name=entry.name, note=entry.note)
        for entry in entries
        if entry.status != "read"
    )


def cited_source(entry: SourceEntry, fidelity: SourceFidelity) -> CitedSource:
    """Return an entry as the report lists it."""
    is_url = entry.origin in ("url", "search")
    return CitedSource(
        id=entry.id,
        path="" if is_url or entry.origin == "ref" else entry.name,
        url=entry.name if is_url else "",
        origin=entry.origin,
        ref=entry.ref,
        sha256=entry.sha256,
        title=entry.title,
        kind=entry.kind,
        quality=entry.quality,
        published=entry.published,
        provenance=entry.provenance,
        note=entry.note,
        fidelity=fidelity,
    )
