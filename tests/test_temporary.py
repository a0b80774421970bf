"""Temporary folders of killed processes are removed at the next start; no others are."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.temporary import _LOCK, remove_stale_folders, temporary_folder

HOLDER = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from holdfast.temporary import temporary_folder
with temporary_folder("test") as folder:
    (folder / "secret.txt").write_text("left behind")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def age(folder: Path) -> None:
    """Make a folder's lock file an hour old."""
    then = (folder / _LOCK).stat().st_mtime - 3_600
    os.utime(folder / _LOCK, (then, then))


def test_the_folder_of_a_killed_process_is_removed_and_that_of_a_running_one_is_not(
    folders: Path,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folders)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        folder = Path(holder.stdout.readline().strip())
        age(folder.parent)
        assert remove_stale_folders() == 0
        assert (folder / "secret.txt").exists()
        holder.kill()
    assert folder.exists()
    assert remove_stale_folders() == 1
    assert not folder.parent.exists()


def test_a_folder_is_removed_at_its_end() -> None:
    with temporary_folder() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert list(folder.iterdir()) == []
        age(folder.parent)
        assert remove_stale_folders() == 0
    assert not folder.parent.exists()


@pytest.mark.parametrize("fails", [False, True])
def test_no_descriptor_stays_open_and_no_folder_stays_behind(folders: Path, fails: bool) -> None:
    descriptors = Path("/proc/self/fd")
    if not descriptors.exists():
        pytest.skip("this system does not list open descriptors")
    before = sorted(descriptors.iterdir())
    with suppress(ZeroDivisionError), temporary_folder("test"):
        if fails:
            raise ZeroDivisionError
    assert sorted(descriptors.iterdir()) == before
    assert list(folders.iterdir()) == []


def test_folders_that_are_not_ours_stay(folders: Path) -> None:
    without_lock = folders / "holdfast-notes"
    without_lock.mkdir()
    young = folders / "holdfast-young"
    young.mkdir()
    (young / _LOCK).touch()
    target = folders / "elsewhere"
    target.mkdir()
    (target / _LOCK).touch()
    age(target)
    (folders / "holdfast-link").symlink_to(target)
    linked_lock = folders / "holdfast-linked-lock"
    linked_lock.mkdir()
    (linked_lock / _LOCK).symlink_to(target / _LOCK)
    (folders / "holdfast-file").touch()
    assert remove_stale_folders() == 0
    assert {path.name for path in folders.iterdir()} == {
        "holdfast-notes", "holdfast-young", "elsewhere", "holdfast-link",
        "holdfast-linked-lock", "holdfast-file",
    }  # fmt: skip


def test_a_folder_of_another_user_stays(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = folders / "holdfast-other"
    other.mkdir()
    (other / _LOCK).touch()
    age(other)
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    assert remove_stale_folders() == 0
    assert other.exists()
