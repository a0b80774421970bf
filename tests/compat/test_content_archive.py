"""ContentArchive: originals on the disk by their hash, off until it is switched on."""

from __future__ import annotations

import asyncio
import logging
import stat
import threading
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from holdfast import Settings
from holdfast.compat import ContentArchive
from holdfast.errors import PrivacyError, StoreError
from holdfast.store import Scope
from holdfast.store.refs import digest
from tests.store.harness import Clock

HOUR = 3600.0


def settings(**changed: Any) -> Settings:
    return Settings(content_archive_enabled=True, **changed)


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def test_what_was_archived_is_retrieved_by_its_hash_and_survives_closing(tmp_path: Path) -> None:
    with ContentArchive(settings(), tmp_path / "a") as archive:
        name = archive.archive("The original.", {"source": "src-1", "phase": 2})
        assert name == digest(b"The original.")
        assert archive.retrieve(name) == "The original."
        assert archive.retrieve(digest(b"another")) is None
        assert archive.retrieve("no hash") is None
    with ContentArchive(settings(), tmp_path / "a") as archive:
        assert archive.retrieve(name) == "The original."


def test_what_a_content_holds_is_noted_with_it(tmp_path: Path) -> None:
    with ContentArchive(settings(), tmp_path / "a") as archive:
        archive.archive("Write to ann.lee@corp.com.")
        archive.archive("Nothing to hide.")
        infos = archive._with_store(lambda store: store.refs(Scope()))
    assert {info.size: info.flags for info in infos} == {26: ("email",), 16: ()}


def test_the_archive_is_off_unless_it_is_switched_on(tmp_path: Path) -> None:
    assert Settings().content_archive_enabled is False
    with ContentArchive(Settings(), tmp_path / "a") as archive:
        assert archive.archive("The original.") == ""
        assert archive.retrieve(digest(b"The original.")) is None
        assert archive.cleanup_expired() == 0
    assert not (tmp_path / "a").exists()


def test_what_was_archived_before_it_was_switched_off_can_be_read(tmp_path: Path) -> None:
    with ContentArchive(settings(), tmp_path) as archive:
        name = archive.archive("The original.")
    with ContentArchive(Settings(), tmp_path) as archive:
        assert archive.retrieve(name) == "The original."


def test_the_folder_is_the_given_one_else_the_configured_else_in_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    configured = settings(data_dir=str(tmp_path / "data"), research_archive_dir="~/deep/archive")
    for folder, config, path in (
        (tmp_path / "given", configured, tmp_path / "given"),
        (tmp_path / "deep" / "archive", configured, None),
        (tmp_path / "data" / "archive", settings(data_dir=str(tmp_path / "data")), None),
    ):
        with ContentArchive(config, path) as archive:
            assert archive.storage_path == folder
            archive.archive("x")
        assert "holdfast.db" in names_in(folder)


def test_the_folder_and_its_files_are_private(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir(mode=0o755)
    with ContentArchive(settings(), folder) as archive:
        archive.archive("x")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        for path in folder.iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name


def test_a_folder_that_cannot_be_made_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with ContentArchive(settings(), tmp_path / "file" / "a") as archive:
        with pytest.raises(StoreError) as caught:
            archive.archive("secret text")
        assert caught.value.fix
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("hours", [72, 1])
def test_clean_up_removes_what_is_older_than_the_configured_hours(
    tmp_path: Path, hours: int
) -> None:
    clock = Clock()
    config = settings(content_archive_ttl_hours=hours)
    assert settings().content_archive_ttl_hours == 72
    with ContentArchive(config, tmp_path, clock=clock) as archive:
        old = archive.archive("old")
        clock.advance(hours * HOUR / 2)
        young = archive.archive("young")
        assert archive.cleanup_expired() == 0
        clock.advance(hours * HOUR / 2 + 1)
        assert archive.cleanup_expired() == 1
        assert archive.retrieve(old) is None
        assert archive.retrieve(young) == "young"
        assert archive.archive("old") == old
        assert archive.retrieve(old) == "old"


def test_zero_hours_keep_an_original_for_good(tmp_path: Path) -> None:
    clock = Clock()
    with ContentArchive(settings(content_archive_ttl_hours=0), tmp_path, clock=clock) as archive:
        name = archive.archive("kept")
        clock.advance(10_000 * HOUR)
        assert archive.cleanup_expired() == 0
        assert archive.retrieve(name) == "kept"


def test_archiving_again_makes_it_live_longer(tmp_path: Path) -> None:
    clock = Clock()
    with ContentArchive(settings(), tmp_path, clock=clock) as archive:
        name = archive.archive("kept")
        clock.advance(71 * HOUR)
        assert archive.archive("kept") == name
        clock.advance(71 * HOUR)
        assert archive.cleanup_expired() == 0
        assert archive.retrieve(name) == "kept"


def test_a_damaged_record_is_skipped_with_a_warning_and_the_rest_works(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    with ContentArchive(settings(), tmp_path, clock=clock) as archive:
        bad, good = archive.archive("private words"), archive.archive("good")
    database = apsw.Connection(str(tmp_path / "holdfast.db"))
    database.execute("UPDATE contents SET data = x'00' WHERE sha256 = ?", (bad,))
    database.close()
    with ContentArchive(settings(), tmp_path, clock=clock) as archive:
        with caplog.at_level(logging.WARNING, "holdfast.archive"):
            assert archive.retrieve(bad) is None
        assert bad in caplog.text
        assert "private words" not in caplog.text
        assert archive.retrieve(good) == "good"
        clock.advance(73 * HOUR)
        assert archive.cleanup_expired() == 2


def test_a_file_that_is_no_archive_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "holdfast.db").write_text("{ not a database " * 500)
    with ContentArchive(settings(), tmp_path) as archive, pytest.raises(StoreError):
        archive.retrieve("0" * 64)


def test_it_can_be_called_where_a_loop_runs_and_from_threads(tmp_path: Path) -> None:
    async def inside() -> str | None:
        with ContentArchive(settings(), tmp_path) as archive:
            return archive.retrieve(archive.archive("from a coroutine"))

    assert asyncio.run(inside()) == "from a coroutine"
    with ContentArchive(settings(), tmp_path) as archive:
        texts = [f"text {n}" for n in range(8)]
        threads = [threading.Thread(target=archive.archive, args=(text,)) for text in texts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [archive.retrieve(digest(text.encode())) for text in texts] == texts


def test_closing_twice_is_once_and_leaves_no_thread(tmp_path: Path) -> None:
    before = threading.active_count()
    archive = ContentArchive(settings(), tmp_path)
    name = archive.archive("x")
    archive.close()
    archive.close()
    assert threading.active_count() == before
    with pytest.raises(StoreError, match="closed"):
        archive.retrieve(name)
    with pytest.raises(StoreError, match="closed"):
        archive.archive("y")


def test_the_privacy_policy_holds(tmp_path: Path) -> None:
    with ContentArchive(settings(privacy_policy="refuse"), tmp_path) as archive:
        with pytest.raises(PrivacyError):
            archive.archive("Write to ann.miller@corp.com.")
        assert archive.archive("Write to nobody.")


@examples(max_examples=30)
@given(st.lists(st.text(st.characters(), max_size=200), max_size=4))
def test_any_text_comes_back_exact(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    with ContentArchive(settings(), tmp_path_factory.getbasetemp() / "any") as archive:
        names = [archive.archive(text) for text in texts]
        assert [archive.retrieve(name) for name in names] == texts
