"""Sources given → entries in the table of sources, each text stored once.

gathering: after walking, fetching and similar. What was given is read a few at a time, in order, so
that two runs over the same sources number them alike. A text that the store knows costs a look-up;
a file that had to be taken apart (PDF, Word, e-book, web page) is known by the hash of its bytes.
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
from holdfast.researching.fetching import FetchLimits, fetch
from holdfast.researching.reading import Readings, SourceReading
from holdfast.researching.records import Origin, SourceEntry
from holdfast.researching.similar import Voices
from holdfast.researching.walking import WalkLimits, files_of
from holdfast.store.refs import digest, parse
from holdfast.workers import Workers

STDIN = "-"
STDIN_NAME = "standard input"
_EXTRACTED = "extracted:1"
"""In the name under which an extraction is kept: another number makes all of them anew."""
_HIGH = (".gov", ".edu", ".int", ".mil", "arxiv.org", "doi.org", "nih.gov", "ietf.org", "w3.org")
_LOW = ("reddit.com", "quora.com", "x.com", "twitter.com", "facebook.com", "tiktok.com")


class SourceText(NamedTuple):
    """A source that is given as a text, with a name of its own."""

    name: str
    text: str


SourceGiven = str | Path | SourceText
"""A path, a URL, a ref, `-`, or a text."""


class SourceLimits(NamedTuple):
    """What is read of what is given."""

    walk: WalkLimits = WalkLimits()
    fetch: FetchLimits = FetchLimits()
    allow_urls: bool = False
    at_once: int = 4


class Lead(NamedTuple):
    """Something to be read, or why it is not."""

    name: str
    origin: Origin
    path: Path | None = None
    text: str | None = None
    modified: float | None = None
    skipped: str = ""


class _Text(NamedTuple):
    """What a lead gave."""

    extracted: ExtractedText
    kind: FileKind
    size: int
    url: str = ""


def identity_of(lead: Lead, limits: SourceLimits) -> str:
    """What a lead leads to, as far as can be told without asking anybody: its name and its bytes.

    A run is known by these: over a file that was changed it is another one.
    """
    if lead.text is not None:
        contents = digest(lead.text.encode("utf-8", "replace"))
    elif lead.path is not None and not lead.skipped:
        try:
            contents = digest(_read(lead.path, limits.walk.bytes))
        except (OSError, ExtractError):
            contents = ""  # the table of sources will say why
    else:
        contents = lead.skipped
    return f"{lead.origin} {lead.name} {contents}"


def leads_of(
    sources: Sequence[SourceGiven], limits: SourceLimits, stdin: str = ""
) -> Iterator[Lead]:
    """Everything that is to be read, in the order of giving."""
    for source in sources:
        if isinstance(source, SourceText):
            yield Lead(source.name, "text", text=source.text)
        elif source == STDIN:
            yield Lead(STDIN_NAME, "stdin", text=stdin)
        elif isinstance(source, str) and source.startswith(("http://", "https://")):
            skipped = "" if limits.allow_urls else "URLs are not read unless --allow-urls says so"
            yield Lead(source, "url", skipped=skipped)
        elif isinstance(source, str) and parse(source) is not None and not Path(source).exists():
            yield Lead(source, "ref")
        else:
            for file in files_of(Path(source), limits.walk):
                name = str(file.path).encode("utf-8", "replace").decode()
                yield Lead(name, "file", file.path, None, file.modified, file.skipped)


class Gatherer:
    """Reads leads and stores their texts for one run."""

    def __init__(
        self,
        contents: ContentStore,
        run: str,
        workers: Workers,
        limits: SourceLimits,
        readings: Readings,
    ) -> None:
        self.contents = contents
        self.run = run
        self._workers = workers
        self._limits = limits
        self._readings = readings
        self._voices = Voices()
        self._first: dict[str, str] = {}
        """The entry that had a text first, by the hash of the text."""

    async def gather(
        self,
        leads: Sequence[Lead],
        save: Callable[[list[SourceEntry]], Awaitable[None]],
        *,
        numbered_from: int = 1,
        show: Callable[[str], None] = lambda _: None,
    ) -> list[SourceEntry]:
        """Read all leads; what is read is handed to `save` a few at a time.

        `show` is given the name of each source once it was looked at.
        """
        entries: list[SourceEntry] = []
        step = 8 * self._limits.at_once
        lane = asyncio.Semaphore(self._limits.at_once)
        for begin in range(0, len(leads), step):
            batch = leads[begin : begin + step]

            async def looked_at(place: int, lead: Lead) -> tuple[SourceEntry, SourceReading | None]:
                pair = await self._entry(lead, f"S{numbered_from + place}", lane)
                show(lead.name)
                return pair

            pairs = await asyncio.gather(*map(looked_at, count(begin), batch))
            judged = [self._judged(entry, reading) for entry, reading in pairs]
            await save(judged)
            entries += judged
        return entries

    async def take_up(self, entries: Sequence[SourceEntry]) -> None:
        """Go on from entries that an earlier process gathered."""
        for entry in entries:
            if entry.status == "read":
                content = await self.contents.get_content(entry.ref)
                self._first.setdefault(entry.sha256, entry.id)
                if content is not None:
                    reading = await self._readings.of(entry.sha256, content.full_content)
                    self._voices.add(entry.id, reading.sketch)

    def _judged(self, entry: SourceEntry, reading: SourceReading | None) -> SourceEntry:
        """An entry with what it repeats of those before it."""
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
        self, lead: Lead, number: str, lane: asyncio.Semaphore
    ) -> tuple[SourceEntry, SourceReading | None]:
        """What became of a lead, and the reading of its text if it has one."""
        bare = SourceEntry(
            id=number, name=lead.name, origin=lead.origin, status="skipped", note=lead.skipped
        )
        if lead.skipped:
            return bare, None
        async with lane:
            try:
                entry, text = await self._of(bare, lead)
                return entry, await self._readings.of(entry.sha256, text)
            except (ExtractError, PrivacyError, ResearchError) as error:
                stop = "" if error.what.endswith("?") else "."
                reason = f"{error.what}{stop} {error.fix}" if error.fix else error.what
            except OSError as error:
                reason = f"cannot be read: {error.strerror or type(error).__name__}"
            return msgspec.structs.replace(bare, note=reason), None

    async def _of(self, bare: SourceEntry, lead: Lead) -> tuple[SourceEntry, str]:
        if lead.origin == "ref":
            return await self._of_ref(bare)
        text = await self._text(lead)
        return await self._stored(bare, lead, text), text.extracted.text

    async def _of_ref(self, bare: SourceEntry) -> tuple[SourceEntry, str]:
        """A source that is in the store already."""
        try:
            stored = await self.contents.store.get(self.contents.scope.of(self.run), bare.name)
        except HoldfastError as error:  # damaged, or digits that fit two contents
            raise ResearchError(error.what) from None
        if stored is None:
            raise ResearchError("nothing is stored under this ref")
        info = stored.info
        text = text_of(stored.data)
        entry = msgspec.structs.replace(
            bare,
            status="read",
            ref=info.ref_id,
            sha256=info.sha256,
            title=_title(text, info.meta.get("url") or bare.name),
            kind=info.kind,
            tokens=info.tokens,
            size=info.size,
            quality=Quality.MEDIUM,
            published=info.created_at,
            provenance=f"stored content, {info.kind}",
        )
        return entry, text

    async def _text(self, lead: Lead) -> _Text:
        """The text of a lead, taken out of its file where that was not done before."""
        url = ""
        if lead.text is not None:
            data = lead.text.encode("utf-8", "replace")
        elif lead.origin in ("url", "search"):
            page = await fetch(lead.name, self._limits.fetch)
            data, url = page.data, page.url
        else:
            assert lead.path is not None  # noqa: S101 - a lead to a file has one
            data = await asyncio.to_thread(_read, lead.path, self._limits.walk.bytes)
        kind = "text" if lead.origin == "text" else kind_of_file(lead.name, data)
        if kind == "text":
            return _Text(
                await asyncio.to_thread(self._workers.extract, data, kind), kind, len(data)
            )
        return _Text(await self._extracted(data, kind, url), kind, len(data), url)

    async def _extracted(self, data: bytes, kind: FileKind, url: str) -> ExtractedText:
        scope, store = self.contents.scope, self.contents.store
        key = f"{_EXTRACTED}:{kind}:{digest(data)}"
        if (earlier := await store.summary(scope, key)) is not None:
            return msgspec.msgpack.decode(earlier, type=ExtractedText)
        extracted = await asyncio.to_thread(self._workers.extract, data, kind, url)
        if not extracted.is_late:  # on a machine with less to do, the next run reads all of it
            await store.put_summary(scope, key, msgspec.msgpack.encode(extracted))
        return extracted

    async def _stored(self, bare: SourceEntry, lead: Lead, text: _Text) -> SourceEntry:
        extracted = text.extracted
        published = extracted.published if extracted.published is not None else lead.modified
        title = extracted.title or _title(extracted.text, lead.name)
        quality = quality_of(lead, text.kind)
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
            bare,
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


def quality_of(lead: Lead, kind: FileKind) -> Quality:
    """How good a source is, by where it comes from: what was given by hand is at least medium."""
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
    if len(data) > most:  # it grew since it was looked at
        raise ExtractError(f"more than {most:,} bytes are not read of one file")
    return data


def _title(text: str, name: str) -> str:
    """The first heading of Markdown, else the file's name without what it ends with."""
    head = text[:2_000].lstrip().partition("\n")[0].strip()
    if head.startswith("# "):
        return head[2:].strip()[:200]
    return Path(name).stem if "://" not in name else name


def _provenance(lead: Lead, text: _Text) -> str:
    parts = [text.url or lead.origin, text.kind, f"{text.size:,} bytes"]
    if lead.modified:
        parts.append(f"changed {datetime.fromtimestamp(lead.modified, UTC):%Y-%m-%d}")
    return ", ".join(parts)


def _joined(first: str, second: str) -> str:
    return f"{first}; {second}" if first else second
