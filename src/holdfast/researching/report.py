"""The report as a value: what is said, what it stands on, and what became of every source.

report: after finding. It holds only what is cited: the sources of a report are those that one of
its claims quotes. The value is the JSON; Markdown and HTML are drawn from it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from holdfast.allocate import Confidence, Quality, Rung
from holdfast.errors import ResearchError
from holdfast.researching.records import Finding, Origin, SourceEntry, Statement, Usage

VERSION = 1
CONFIDENCE = {
    Confidence.CONFIRMED.value: "at least two sources say so that do not repeat each other",
    Confidence.HIGH.value: "one source says so, and it bears on the question at least half as much"
    " as the best finding does",
    Confidence.MEDIUM.value: "one source says so, and it bears less on the question",
    Confidence.LOW.value: "another source states another number or date of the same",
}
"""How well a finding is supported by the sources that were given; not whether they are right."""


class Fidelity(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a source stands in the report."""

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
    fidelity: Fidelity

    @property
    def name(self) -> str:
        """What it was given as."""
        return self.url or self.path or self.ref


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A source that was given and could not be read, or repeats another."""

    name: str
    note: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A cited report."""

    version: int = VERSION
    run: str = ""
    """The run that made it: its record in the store says where each source was read."""
    question: str
    sub_questions: tuple[str, ...]
    model: str = ""
    """Who wrote the summary and the claims; empty: every claim is a quotation."""
    created: float | None = None
    summary: tuple[Statement, ...] = ()
    findings: tuple[Finding, ...] = ()
    confidence: dict[str, str] = msgspec.field(default_factory=lambda: dict(CONFIDENCE))
    """What is meant by the confidence of a finding."""
    sources: tuple[CitedSource, ...] = ()
    """Those that a finding quotes, and no others."""
    left_out: tuple[LeftOut, ...] = ()
    sources_read: int = 0
    source_tokens: int = 0
    """Of all sources that were read: what their text would have cost in a prompt."""
    findings_left_out: int = 0
    """Findings for which the budget had no room."""
    budget: int = 0
    brief: bool = False
    """Whether the Markdown only counts sources that were left out, to have room for findings."""
    usage: Usage = Usage()
    warnings: tuple[str, ...] = ()

    def dump(self) -> bytes:
        """The report as JSON."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"

    @classmethod
    def load(cls, data: bytes | str) -> Report:
        """A report from the JSON that `dump` wrote.

        Raises:
            ResearchError: it is none.
        """
        try:
            report = msgspec.json.decode(data, type=cls)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ResearchError(
                f"this is no report of ours: {str(error)[:200]}",
                fix="Give the JSON of `holdfast research --format json`.",
            ) from None
        if report.version != VERSION:
            raise ResearchError(f"the report is of version {report.version}, not {VERSION}")
        return report

    def __repr__(self) -> str:
        return f"<Report {len(self.findings)} findings of {len(self.sources)} sources>"


def left_out_of(entries: Iterable[SourceEntry]) -> tuple[LeftOut, ...]:
    """The entries that are not searched, with the reasons."""
    return tuple(
        LeftOut(name=entry.name, note=entry.note) for entry in entries if entry.status != "read"
    )


def cited(entry: SourceEntry, fidelity: Fidelity) -> CitedSource:
    """An entry as the report lists it."""
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
