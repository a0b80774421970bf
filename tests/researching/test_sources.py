"""The outcome of each given source: read, stored once, or skipped with a reason."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.compat import ContentStore, Payload, SourceRecord
from holdfast.engine import Holdfast
from holdfast.errors import ResearchError
from holdfast.researching import Options, SourceText, conduct
from holdfast.researching.passages import sentences, split_passages
from holdfast.researching.similar import NEARLY, NearDuplicates, similarity, sketch
from holdfast.researching.source_files import WalkLimits, walk_files
from holdfast.researching.web_pages import FetchLimits, check_address, check_url
from holdfast.settings import Settings
from holdfast.store.opening import open_memory
from holdfast.workers import Workers, WorkLimits
from tests.extract.files import epub, pdf, word
from tests.researching.made import NOW, researched, texts

PRIVATE = (
    "127.0.0.1 10.1.2.3 192.168.0.1 172.16.0.9 169.254.169.254 0.0.0.0 100.64.0.1 ::1 fe80::1 "
    "fc00::1 ::ffff:127.0.0.1 2002:7f00:1:: 224.0.0.1 255.255.255.255 64:ff9b::7f00:1 "
    "64:ff9b::a9fe:a9fe 64:ff9b:1::7f00:1 ::127.0.0.1 ::ffff:0:127.0.0.1"
).split()


def notes(folder: Path) -> dict[str, str]:
    """Return the notes in the table of sources for the files of a folder."""
    state = researched("What failed in June?", [folder]).state
    return {Path(entry.name).name: f"{entry.status}: {entry.note}" for entry in state.sources}


def test_every_bad_source_has_a_line_and_the_rest_goes_on(tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("The deploy of June failed at noon.")
    (tmp_path / "binary.bin").write_bytes(b"\0\1\2\3")
    (tmp_path / "empty.txt").touch()
    (tmp_path / "scan.pdf").write_bytes(pdf(""))
    (tmp_path / "broken.docx").write_bytes(b"PK\x03\x04[Content_Types].xml word/ broken")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge.log").open("wb") as file:
        file.truncate(2_000_000_000)
    told = notes(tmp_path)
    assert told["good.md"] == "read: "
    assert "binary" in told["binary.bin"]
    assert "empty" in told["empty.txt"]
    assert "no text: a scan? Run it" in told["scan.pdf"]
    assert "damaged" in told["broken.docx"]
    assert "already" in told["loop"]
    assert "cannot be read" in told["nowhere"]
    assert "no plain file" in told["pipe"]
    assert "2,000,000,000 bytes" in told["huge.log"]
    assert sum(line.startswith("read") for line in told.values()) == 1


def test_links_are_followed_within_the_folder_and_not_out_of_it(tmp_path: Path) -> None:
    folder, outside = tmp_path / "given", tmp_path / "outside"
    (folder / "inner").mkdir(parents=True)
    outside.mkdir()
    (outside / "key.pem").write_text("The key of June failed nobody.")
    (folder / "inner" / "note.md").write_text("The deploy of June failed at noon.")
    (folder / "to_file").symlink_to(outside / "key.pem")
    (folder / "to_folder").symlink_to(outside)
    (folder / "within").symlink_to(folder / "inner" / "note.md")
    told = notes(folder)
    assert "a link out of the folder" in told["to_file"]
    assert "a link out of the folder" in told["to_folder"]
    assert "the same text" in told["within"] or "the same text" in told["note.md"]
    assert "key.pem" not in told
    # a user who names a link wants its target
    assert notes(folder / "to_file") == {"to_file": "read: "}


def test_formats_are_read_with_pages_titles_and_dates(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf("Page one", "The pump failed in June", title="Pumps"))
    (tmp_path / "b.docx").write_bytes(word("The valve failed in June."))
    (tmp_path / "c.epub").write_bytes(epub("<p>The dam failed in June.</p>"))
    (tmp_path / "d.html").write_text("<html><body><p>The gate failed in June.</p></body></html>")
    done = researched("What failed in June?", [tmp_path])
    by_kind = {entry.kind: entry for entry in done.state.sources}
    assert set(by_kind) == {"pdf", "docx", "epub", "html"}
    assert by_kind["pdf"].title == "Pumps"
    assert by_kind["pdf"].published == 1_709_294_400
    [pump] = [finding for finding in done.report.findings if "pump" in finding.claim]
    assert pump.supporting[0].page == 2
    assert {"valve", "dam", "gate"} <= set(" ".join(f.claim for f in done.report.findings).split())


def test_a_folder_is_read_in_one_order_and_up_to_its_limit(tmp_path: Path) -> None:
    for n in range(30):
        (tmp_path / f"{n:02}.txt").write_text(f"text {n}")
    files = list(walk_files(tmp_path, WalkLimits(files=20)))
    assert [file.path.name for file in files[:20]] == [f"{n:02}.txt" for n in range(20)]
    assert "too many" in files[20].skipped
    assert len(files) == 21


def test_equal_texts_are_stored_once_and_counted_once() -> None:
    store = open_memory()
    [text] = texts(1)
    done = researched("How long was it?", [text, SourceText("copy", text.text)], store=store)
    assert [entry.status for entry in done.state.sources] == ["read", "duplicate"]
    assert done.state.sources[1].note == "the same text as S1"
    again = researched("How long was it?", [text], store=store)
    assert again.state.sources[0].ref == done.state.sources[0].ref


def test_a_source_of_nothing_but_a_heading_is_read_and_cited_by_nobody() -> None:
    alone = researched("When did the dam break?", [SourceText("a.md", "# Dams")])
    assert [entry.status for entry in alone.state.sources] == ["read"]
    assert not alone.report.findings
    broke = SourceText("b.md", "The dam of Gent broke in 1911.")
    both = researched("When did the dam break?", [SourceText("a.md", "# Dams"), broke])
    assert [source.id for source in both.report.sources] == ["S2"]


def test_a_mirror_with_few_other_words_is_found_and_confirms_nothing() -> None:
    [text] = texts(1, paragraphs=30)
    mirror = SourceText("mirror", text.text.replace("In part 3 the", "In chapter 3 the"))
    done = researched("How long was the bridge in part 5?", [text, mirror])
    assert done.state.sources[1].voice == "S1"
    assert done.state.sources[1].status == "read"
    assert all(finding.confidence != "confirmed" for finding in done.state.findings)


def test_a_mirror_keeps_the_note_on_its_encoding(tmp_path: Path) -> None:
    [text] = texts(1, paragraphs=30)
    (tmp_path / "a.txt").write_text(text.text)
    mirror = text.text.replace("In part 3 the", "In chapter 3, für the")
    (tmp_path / "b.txt").write_bytes(mirror.encode("latin-1"))
    told = notes(tmp_path)["b.txt"]
    assert "the same words as S1" in told
    assert "read as" in told


def test_a_file_whose_name_reads_like_a_ref_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "ref:log:0123456789abcdef"
    (tmp_path / name).write_text("The deploy of June failed at noon.")
    monkeypatch.chdir(tmp_path)
    [entry] = researched("What failed in June?", [name]).state.sources
    assert (entry.origin, entry.status) == ("file", "read")
    (tmp_path / name).unlink()
    [entry] = researched("What failed in June?", [name]).state.sources
    assert entry.origin == "ref"
    assert "nothing is stored under this ref" in entry.note


def test_near_duplicates_are_told_from_texts_of_the_same_words() -> None:
    chance = random.Random(5)
    words = [f"word{n}" for n in range(400)]
    text = " ".join(chance.choices(words, k=600))
    edited = text.split(" ")
    edited[100] = "other"
    assert similarity(sketch(text), sketch(" ".join(edited))) >= NEARLY
    assert similarity(sketch(text), sketch(" ".join(chance.choices(words, k=600)))) < 0.1
    voices = NearDuplicates()
    assert voices.add("a", sketch(text)) == ("", 0.0)
    assert voices.add("b", sketch(" ".join(edited)))[0] == "a"


def test_a_source_record_has_quality_date_and_provenance(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("# Deploys\n\nThe deploy failed in June.")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    store = open_memory()
    state = researched("What failed?", [path], store=store).state

    async def records() -> list[SourceRecord]:
        contents = ContentStore(store)
        stored = await contents.get_content(state.sources[0].ref)
        assert stored is not None
        return await Payload(contents, stored.agent_run_id).sources()

    [record] = asyncio.run(records())
    assert record.title == "Deploys"
    assert record.quality == "medium"
    assert record.published == 1_700_000_000
    assert "file, text" in record.provenance
    assert "changed 2023-11-14" in record.provenance


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_refused(address: str) -> None:
    with pytest.raises(ResearchError, match="private"):
        check_address(address, FetchLimits())
    host = f"[{address}]" if ":" in address else address
    with pytest.raises(ResearchError, match="private"):
        check_url(f"http://{host}/", FetchLimits())


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700:4700::1111", "64:ff9b::101:101"])
def test_addresses_of_the_web_are_allowed(address: str) -> None:
    refused = []
    try:
        check_address(address, FetchLimits())
    except ResearchError as error:
        refused.append(error.what)
    assert refused == []


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://a/b", "http://", "http://u:p@a.org/", "http://[/", "x"]
)
def test_what_is_no_address_of_the_web_is_refused(url: str) -> None:
    with pytest.raises(ResearchError):
        check_url(url, FetchLimits())


def test_urls_are_off_unless_they_are_allowed() -> None:
    [entry] = researched("What is there?", ["https://example.com/page"]).state.sources
    assert (entry.status, entry.origin) == ("skipped", "url")
    assert "--allow-urls" in entry.note


@given(st.text(alphabet=st.sampled_from("ab. \n\f!?。é#"), max_size=2_000))
def test_passages_hold_all_of_a_text_but_white_space_and_lone_headings(text: str) -> None:
    covered = [False] * len(text)
    for _, start, stop in split_passages(text, 0):
        assert 0 <= start < stop <= len(text)
        covered[start:stop] = [True] * (stop - start)
        assert all(start <= a < b <= stop for a, b in sentences(text, start, stop))
    left = "".join(c if not held else "\n" for c, held in zip(text, covered, strict=True))
    parts = left.replace("\f", "\n").split("\n")
    assert all(not part.strip() or part.strip().startswith("#") for part in parts)


def test_pages_that_a_slow_run_missed_are_read_by_the_next(tmp_path: Path) -> None:
    (tmp_path / "two.pdf").write_bytes(pdf("The deploy of June failed.", "It failed at noon."))

    async def work() -> list[str]:
        store, notes = open_memory(), []
        for question, seconds in (("What failed?", 0.0), ("When did it fail?", 30.0)):
            workers = Workers(WorkLimits(processes=0, seconds=seconds))
            engine = Holdfast(store, workers=workers)
            run = await conduct(question, [tmp_path], engine, Settings(), Options(now=NOW))
            notes += [entry.note for entry in run.state.sources]
        return notes

    assert asyncio.run(work()) == ["1 pages behind the first 1 were not read", ""]
