from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast import count
from tests.surfaces.harness import TOUR, Cli

BODY = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hello world"}]}


def test_a_request_is_counted_with_its_parts_window_and_cost(cli: Cli) -> None:
    data = cli("count", cli.write("request.json", BODY)).json
    assert data["tokens"] == 9
    assert data["accuracy"] == "exact"
    assert data["parts"] == {"system": 0, "tools": 0, "messages": 6, "formatting": 3}
    assert data["per_message"] == [6]
    assert data["window"] == 128_000
    assert data["share_of_window"] == pytest.approx(9 / 128_000, abs=1e-6)
    assert data["input_cost_usd"] == pytest.approx(9 * 2.5e-6)


def test_the_table_names_the_largest_messages(cli: Cli) -> None:
    out = cli("count", str(TOUR), "--output", "table").out
    counted = count(TOUR.read_bytes())
    assert f"{counted.tokens:,}" in out
    assert f"{counted.upper:,}" in out
    assert f"{max(counted.per_message):,}" in out
    assert "of a window of" in out


def test_a_text_is_counted_from_standard_input(cli: Cli) -> None:
    data = cli("count", "-", "--model", "gpt-4o", stdin=b"hello world").json
    assert data["tokens"] == 2
    assert data["dialect"] is None


def test_json_that_is_no_request_is_a_text(cli: Cli) -> None:
    data = cli("count", "-", "--model", "gpt-4o", stdin=b'{"a": [1, 2]}').json
    assert data["dialect"] is None
    assert data["tokens"] > 3


def test_a_folder_is_counted_file_by_file(cli: Cli) -> None:
    (cli.folder / "src").mkdir()
    cli.write("src/a.txt", "hello world")
    cli.write("src/b.bin", b"\x00\x01\x02")
    cli.write("src/.hidden", "not counted")
    data = cli("count", str(cli.folder / "src"), "--model", "gpt-4o").json
    assert data["tokens"] == 2
    assert data["files"] == [{"file": "a.txt", "tokens": 2}]
    assert data["skipped"] == 1
    assert data["skipped_files"] == [{"file": "b.bin", "reason": "not text"}]
    shown = cli("count", str(cli.folder / "src"), "--model", "gpt-4o", "--output", "table")
    assert "1 files, 1 skipped: 2 tokens" in shown.out
    assert shown.err.strip() == "holdfast: skipped b.bin: not text"


def test_what_of_a_folder_could_not_be_read_is_named_with_the_reason(cli: Cli) -> None:
    (cli.folder / "src" / "pictures").mkdir(parents=True)
    cli.write("src/latin.txt", "Grüße".encode("latin-1"))
    cli.write("src/locked.txt", "of another user")
    for n in range(11):
        cli.write(f"src/pictures/{n:02}.png", b"\x89PNG\x00")

    read_bytes = Path.read_bytes

    def refused(path: Path) -> bytes:  # tests may run as root, which may read everything
        if path.name == "locked.txt":
            raise PermissionError(13, "Permission denied")
        return read_bytes(path)

    cli.monkeypatch.setattr(Path, "read_bytes", refused)
    shown = cli("count", str(cli.folder / "src"), "--model", "gpt-4o")
    reasons = {each["file"]: each["reason"] for each in shown.json["skipped_files"]}
    assert reasons["locked.txt"] == "Permission denied"
    assert reasons["latin.txt"] == "not text"
    assert len(reasons) == shown.json["skipped"] == 13
    assert "skipped locked.txt: Permission denied" in shown.err
    assert "skipped 3 more" in shown.err


def test_a_folder_that_cannot_be_read_whole_is_counted_as_far_as_it_can(cli: Cli) -> None:
    folder = cli.folder / "src"
    folder.mkdir()
    (folder / "a.txt").write_text("one two three")
    at = os.open(folder, os.O_RDONLY)
    for _ in range(20):  # deeper than a path may be long
        os.mkdir("d" * 250, dir_fd=at)
        at, up = os.open("d" * 250, os.O_RDONLY, dir_fd=at), at
        os.close(up)
    os.close(at)
    counted = cli("count", str(folder)).json
    assert [each["file"] for each in counted["files"]] == ["a.txt"]
    [deepest] = counted["skipped_files"]
    assert deepest["file"].startswith("ddd")


def test_reported_usage_is_learnt_and_kept(cli: Cli) -> None:
    body = {**BODY, "messages": [{"role": "user", "content": "word " * 100}]}
    path = cli.write("request.json", body)
    plain = cli("count", path).json["tokens"]
    for _ in range(6):
        assert "saved for later counts" in cli("count", path, "--reported", str(plain + 40)).err
    assert cli("count", path).json["tokens"] == plain + 40
    kept = cli.folder / ".local" / "share" / "holdfast" / "calibration.json"
    assert b"word" not in kept.read_bytes()
    assert "ignored" in cli("count", path, "--reported", "1000000").err


def test_a_damaged_calibration_is_reported(cli: Cli) -> None:
    folder = cli.folder / "data"
    folder.mkdir()
    (folder / "calibration.json").write_text("{")
    cli.monkeypatch.setenv("HOLDFAST_DATA_DIR", str(folder))
    result = cli("count", cli.write("request.json", BODY))
    assert result.code == 2
    assert "calibration" in result.err


def test_an_unknown_model_is_remarked_on(cli: Cli) -> None:
    result = cli("count", "-", "--model", "not-a-model-of-anyone", stdin=b"hello")
    assert result.code == 0
    assert result.json["accuracy"] == "heuristic"
    assert "not known" in result.err


@pytest.mark.parametrize(
    ("stdin", "said"),
    [(b'{"messages": [', "not JSON"), (b"\xff\xfe\x00", "neither a request nor text")],
)
def test_what_cannot_be_counted_is_an_error(cli: Cli, stdin: bytes, said: str) -> None:
    result = cli("count", "-", "--model", "gpt-4o", stdin=stdin)
    assert result.code == 2
    assert said in result.err


def test_the_platform_changes_the_count(cli: Cli) -> None:
    path = cli.write("request.json", {**BODY, "model": "gpt-oss-120b"})
    plain = cli("count", path).json["tokens"]
    assert cli("count", path, "--platform", "groq").json["tokens"] == plain + 4
