"""Read sources into the table of sources; each text is stored once.

Sources are read a few at a time and numbered in the given order, so that equal runs number them
alike. A text that is stored already is only looked up; a file that needs extraction (PDF, Word,
e-book, web page) is recognised by the hash of its bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from holdfast.allocate import Quality
from holdfast.compat import ContentStore, StoredContent
from holdfast.compat.content_store import text_of
from holdfast.errors import ExtractError, HoldfastError, PrivacyError, ResearchError
from holdfast.extract import ExtractedText, FileKind, kind_of_file
from holdfast.researching.records import Origin, SourceEntry
from holdfast.researching.similar import NearDuplicates
from holdfast.researching.source_files import WalkLimits, walk_files
from holdfast.researching.source_readings import SourceReading, SourceReadings
from holdfast.researching.web_pages import FetchLimits, fetch
from holdfast.store.refs import digest, parse
from holdfast.workers import Workers

STDIN = "-"
STDIN_NAME = "standard input"
_EXTRACTED = "extracted:1"
"""Part of the key of stored extractions; a new number invalidates all of them."""
_HIGH = (".gov", ".edu", ".int", ".mil", "arxiv.org", "doi.org", "nih.gov", "ietf.org", "w3.org")
_LOW = ("reddit.com", "quora.com", "x.com", "twitter.com", "facebook.com", "tiktok.com")


class SourceText(NamedTuple):
    """A source given as a named text."""

    name: str
    text: str


SourceGiven = str | Path | SourceText
"""A path, a URL, a ref, `-`, or a text."""


class SourceLimits(NamedTuple):
    """Limits for reading sources."""

    walk: WalkLimits = WalkLimits()
    fetch: FetchLimits = FetchLimits()
    allow_urls: bool = False
    at_once: int = 4


class SourceLead(NamedTuple):
    """A source to read, or the reason why it is skipped."""

    name: str
    origin: Origin
    path: Path | None = None
    text: str | None = None
    modified: float | None = None
    skipped: str = ""


class _ExtractedSource(NamedTuple):
    """The text of a lead."""

    extracted: ExtractedText
    kind: FileKind
    size: int
    url: str = ""


def lead_identity(lead: SourceLead, limits: SourceLimits) -> str:
    """Return an identifier of a lead without network access: its name and content hash.

    Runs are named by these, so that a changed file makes another run.
    """
    if lead.text is not None:
        contents = digest(lead.text.encode("utf-8", "replace"))
    elif lead.path is not None and not lead.skipped:
        try:
            contents = digest(_read(lead.path, limits.walk.bytes))
        except (OSError, ExtractError):
            contents = ""  # the table of sources has the reason
    else:
        contents = lead.skipped
    return f"{lead.origin} {lead.name} {contents}"


def find_leads(
    sources: Sequence[SourceGiven], limits: SourceLimits, stdin: str = ""
) -> Iterator[SourceLead]:
    """Yield everything that is to be read, in the given order."""
    for source in sources:
        if isinstance(source, SourceText):
            yield SourceLead(source.name, "text", text=source.text)
        elif source == STDIN:
            yield SourceLead(STDIN_NAME, "stdin", text=stdin)
        elif isinstance(source, str) and source.startswith(("http://", "https://")):
            skipped = "" if limits.allow_urls else "URLs are not read unless --allow-urls says so"
            yield SourceLead(source, "url", skipped=skipped)
        elif isinstance(source, str) and parse(source) is not None and not Path(source).exists():
            yield SourceLead(source, "ref")
        else:
            for file in walk_files(Path(source), limits.walk):
                name = str(file.path).encode("utf-8", "replace").decode()
                yield SourceLead(name, "file", file.path, None, file.modified, file.skipped)


class Gatherer:
    """Reads leads and stores their texts for one run."""

    def __init__(
        self,
        contents: ContentStore,
        run: str,
        workers: Workers,
        limits: SourceLimits,
        readings: SourceReadings,
    ) -> None:
        self.contents = contents
        self.run = run
        self._workers = workers
        self._limits = limits
        self._readings = readings
        self._voices = NearDuplicates()
        self._first: dict[str, str] = {}
        """The first entry with each text, by the hash of the text."""

    async def gather(
        self,
        leads: Sequence[SourceLead],
        save: Callable[[list[SourceEntry]], Awaitable[None]],
        *,
        numbered_from: int = 1,
        show: Callable[[str], None] = lambda _: None,
    ) -> list[SourceEntry]:
        """Read all leads; entries are passed to `save` in batches.

        `show` is called with the name of each source after it was read.
        """
        entries: list[SourceEntry] = []
        step = 8 * self._limits.at_once
        lane = asyncio.Semaphore(self._limits.at_once)
        for begin in range(0, len(leads), step):
            batch = leads[begin : begin + step]

            async def read_lead(
                place: int, lead: SourceLead
            ) -> tuple[SourceEntry, SourceReading | None]:
                pair = await self._entry(lead, f"S{numbered_from + place}", lane)
                show(lead.name)
                return pair

            pairs = await asyncio.gather(*map(read_lead, count(begin), batch))
            judged = [self._with_repetition(entry, reading) for entry, reading in pairs]
            await save(judged)
            entries += judged
        return entries

    async def resume_from(self, entries: Sequence[SourceEntry]) -> None:
        """Continue from the entries that an earlier process gathered."""
        for entry in entries:
            if entry.status == "read":
                content = await self.contents.get_content(entry.ref)
                self._first.setdefault(entry.sha256, entry.id)
                if content is not None:
                    reading = await self._readings.of(entry.sha256, content.full_content)
                    self._voices.add(entry.id, reading.sketch)

    def _with_repetition(self, entry: SourceEntry, reading: SourceReading | None) -> SourceEntry:
        """Return an entry with the earlier source that it repeats, if any."""
        if reading is None:
            return entry
        first = self._first.setdefault(entry.sha256, entry.id)
        if first != entry.id:
            return msgspec.structs.replace(
                entry, status="duplicate", note=f"the same text as {first}", voice=first
            )
        voice, share = self._voices.add(entry.id, reading.sketch)
        if not voice:
            return entry
        note = f"{share:.0%} the same words as {voice}"
        return msgspec.structs.replace(entry, note=_joined(entry.note, note), voice=voice)

    async def _entry(
        self, lead: SourceLead, number: str, lane: asyncio.Semaphore
    ) -> tuple[SourceEntry, SourceReading | None]:
        """Return the entry of a lead, and the index of its text if it has one."""
        blank = SourceEntry(
            id=number, name=lead.name, origin=lead.origin, status="skipped", note=lead.skipped
        )
        if lead.skipped:
            return blank, None
        async with lane:
            try:
                entry, text = await self._read_lead(blank, lead)
                return entry, await self._readings.of(entry.sha256, text)
            except (ExtractError, PrivacyError, ResearchError) as error:
                stop = "" if error.what.endswith("?") else "."
                reason = f"{error.what}{stop} {error.fix}" if error.fix else error.what
            except OSError as error:
                reason = f"cannot be read: {error.strerror or type(error).__name__}"
            return msgspec.structs.replace(blank, note=reason), None

    async def _read_lead(self, blank: SourceEntry, lead: SourceLead) -> tuple[SourceEntry, str]:
        if lead.origin == "ref":
            return await self._read_ref(blank)
        text = await self._text(lead)
        return await self._store(blank, lead, text), text.extracted.text

    async def _read_ref(self, blank: SourceEntry) -> tuple[SourceEntry, str]:
        """Read a source that is in the store already."""
        try:
            stored = await self.contents.store.get(self.contents.scope.of(self.run), blank.name)
        except HoldfastError as error:  # damaged, or an ambiguous ref
            raise ResearchError(error.what) from None
        if stored is None:
            raise ResearchError("nothing is stored under this ref")
        info = stored.info
        text = text_of(stored.data)
        entry = msgspec.structs.replace(
            blank,
            status="read",
            ref=info.ref_id,
            sha256=info.sha256,
            title=_title(text, info.meta.get("url") or blank.name),
            kind=info.kind,
            tokens=info.tokens,
            size=info.size,
            quality=Quality.MEDIUM,
            published=info.created_at,
            provenance=f"stored content, {info.kind}",
        )
        return entry, text

    async def _text(self, lead: SourceLead) -> _ExtractedSource:
        """Return the text of a lead, extracted from its file unless that is stored."""
        url = ""
        if lead.text is not None:
            data = lead.text.encode("utf-8", "replace")
        elif lead.origin in ("url", "search"):
            page = await fetch(lead.name, self._limits.fetch)
            data, url = page.data, page.url
        else:
            assert lead.path is not None  # noqa: S101 - a file lead has a path
            data = await asyncio.to_thread(_read, lead.path, self._limits.walk.bytes)
        kind = "text" if lead.origin == "text" else kind_of_file(lead.name, data)
        if kind == "text":
            return _ExtractedSource(
                await asyncio.to_thread(self._workers.extract, data, kind), kind, len(data)
            )
        return _ExtractedSource(await self._extract(data, kind, url), kind, len(data), url)

    async def _extract(self, data: bytes, kind: FileKind, url: str) -> ExtractedText:
        scope, store = self.contents.scope, self.contents.store
        key = f"{_EXTRACTED}:{kind}:{digest(data)}"
        if (earlier := await store.summary(scope, key)) is not None:
            return msgspec.msgpack.decode(earlier, type=ExtractedText)
        extracted = await asyncio.to_thread(self._workers.extract, data, kind, url)
        if not extracted.is_late:  # on a less busy machine the next run extracts all of it
            await store.put_summary(scope, key, msgspec.msgpack.encode(extracted))
        return extracted

    async def _store(
        self, blank: SourceEntry, lead: SourceLead, text: _ExtractedSource
    ) -> SourceEntry:
        extracted = text.extracted
        published = extracted.published if extracted.published is not None else lead.modified
        title = extracted.title or _title(extracted.text, lead.name)
        quality = estimate_quality(lead, text.kind)
        provenance = _provenance(lead, text)
        content = await self.contents.store_condensed(
            StoredContent(
                full_content=extracted.text,
                source_type="web" if text.url else "storage",
                source_url=text.url or None,
                content_type=text.kind,
                metadata={
                    "title": title,
                    "quality": quality,
                    "published": published,
                    "provenance": provenance,
                },
                agent_run_id=self.run,
            )
        )
        return msgspec.structs.replace(
            blank,
            status="read",
            note=extracted.note,
            ref=content.ref_id,
            sha256=content.sha256,
            title=title,
            kind=text.kind,
            tokens=content.tokens,
            size=text.size,
            quality=quality,
            published=published,
            provenance=provenance,
        )


def estimate_quality(lead: SourceLead, kind: FileKind) -> Quality:
    """Return the quality of a source by its origin; files given by the user are at least medium."""
    if lead.origin not in ("url", "search"):
        return Quality.UNKNOWN if lead.origin == "stdin" else Quality.MEDIUM
    host = (urlsplit(lead.name).hostname or "").lower()
    if host.endswith(_HIGH) or kind == "pdf":
        return Quality.HIGH
    if host.endswith(_LOW):
        return Quality.LOW
    return Quality.MEDIUM if lead.origin == "url" else Quality.UNKNOWN


def _read(path: Path, most: int) -> bytes:
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:  # the file has grown since it was listed
        raise ExtractError(f"more than {most:,} bytes are not read of one file")
    return data


def _title(text: str, name: str) -> str:
    """Return the first Markdown heading, or the file's name without its extension."""
    head = text[:2_000].lstrip().partition("\n")[0].strip()
    if head.startswith("# "):
        return head[2:].strip()[:200]
    return Path(name).stem if "://" not in name else name


def _provenance(lead: SourceLead, text: _ExtractedSource) -> str:
    parts = [text.url or lead.origin, text.kind, f"{text.size:,} bytes"]
    if lead.modified:
        parts.append(f"changed {datetime.fromtimestamp(lead.modified, UTC):%Y-%m-%d}")
    return ", ".join(parts)


def _joined(first: str, second: str) -> str:
    return f"{first}; {second}" if first else second
