from __future__ import annotations

import os
import re
import string
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from holdfast import _toml
from holdfast.errors import SettingsError
from holdfast.settings import (
    MAX_FILE_BYTES,
    Definitions,
    Secret,
    Settings,
    UpstreamEntry,
    WebSearch,
)
from holdfast.settings.removed import REMOVED


class Toy(Definitions, frozen=True, kw_only=True):
    """A table with the kinds of settings that later capabilities bring."""

    api_key: Annotated[Secret[str], Meta(description="A key.")] = ""
    ratio: Annotated[float, Meta(ge=0, description="A ratio.")] = 0.1
    strict: Annotated[bool, Meta(description="A switch.")] = False
    windows: Annotated[dict[str, int], Meta(description="A table.")] = msgspec.field(
        default_factory=dict
    )
    names: Annotated[tuple[str, ...], Meta(description="A list.")] = ()


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "holdfast.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def problems(folder: Path, **environ: str) -> list[tuple[str, str, str]]:
    return [(p.what, p.where, p.fix) for p in Settings.check(cwd=folder, environ=environ)]


def origins(folder: Path, environ: dict[str, str], **arguments: object) -> dict[str, str]:
    traced = Settings.trace(cwd=folder, environ=environ, **arguments)
    return {key.name: origin for key, _, origin in traced}


# Precedence


def test_defaults_hold_when_nothing_is_given(tmp_path: Path) -> None:
    assert Settings.load(cwd=tmp_path, environ={}) == Settings()
    assert set(origins(tmp_path, {}).values()) == {"default"}


def test_file_beats_default_and_names_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, '# mine\n\ncolor = "never"\n')
    assert Settings.load(cwd=tmp_path, environ={}).color == "never"
    assert origins(tmp_path, {})["color"] == f"file {path}:3"


def test_environment_beats_file(tmp_path: Path) -> None:
    write(tmp_path, "max_body_bytes = 1")
    environ = {"HOLDFAST_MAX_BODY_BYTES": "2"}
    assert Settings.load(cwd=tmp_path, environ=environ).max_body_bytes == 2
    assert origins(tmp_path, environ)["max_body_bytes"] == "environment HOLDFAST_MAX_BODY_BYTES"


def test_argument_beats_environment(tmp_path: Path) -> None:
    environ = {"HOLDFAST_OUTPUT": "table"}
    assert Settings.load(cwd=tmp_path, environ=environ, output="json").output == "json"
    assert origins(tmp_path, environ, output="json")["output"] == "argument"


def test_argument_of_none_and_empty_variable_count_as_not_given(tmp_path: Path) -> None:
    settings = Settings.load(cwd=tmp_path, environ={"HOLDFAST_COLOR": ""}, output=None)
    assert settings == Settings()


# Finding the file


def test_file_is_found_in_a_parent_folder(tmp_path: Path) -> None:
    write(tmp_path, 'color = "never"')
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert Settings.load(cwd=deep, environ={}).color == "never"


def test_nearest_file_wins_over_parent_and_user_folder(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "config" / "holdfast").mkdir(parents=True)
    write(tmp_path, 'color = "never"')
    write(tmp_path / "config" / "holdfast", 'color = "never"')
    write(tmp_path / "work", 'color = "always"')
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    assert Settings.load(cwd=tmp_path / "work", environ=environ).color == "always"


@pytest.mark.parametrize(
    ("variable", "folder"),
    [
        ("XDG_CONFIG_HOME", "holdfast"),
        ("APPDATA", "holdfast"),
        ("HOME", ".config/holdfast"),
    ],
)
def test_file_in_the_users_folder_is_used_when_no_other_is_found(
    tmp_path: Path, variable: str, folder: str
) -> None:
    (tmp_path / "user" / folder).mkdir(parents=True)
    (tmp_path / "work").mkdir()
    write(tmp_path / "user" / folder, 'color = "never"')
    environ = {variable: str(tmp_path / "user")}
    assert Settings.load(cwd=tmp_path / "work", environ=environ).color == "never"


def test_named_file_is_used_instead_of_a_found_one(tmp_path: Path) -> None:
    write(tmp_path, 'color = "never"')
    (tmp_path / "other.toml").write_text('color = "always"')
    assert Settings.load(cwd=tmp_path, environ={"HOLDFAST_CONFIG": "other.toml"}).color == "always"


def test_the_null_device_turns_the_file_off(tmp_path: Path) -> None:
    write(tmp_path, 'color = "never"')
    assert Settings.load(cwd=tmp_path, environ={"HOLDFAST_CONFIG": os.devnull}) == Settings()


def test_deleted_working_directory_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert Settings.load(environ={}) == Settings()


# Problems


def test_unknown_key_is_refused_with_line_and_a_guess(tmp_path: Path) -> None:
    path = write(tmp_path, "\nmax_body_byte = 5\n")
    assert problems(tmp_path) == [
        ("unknown setting 'max_body_byte'", f"{path}:2", "Did you mean 'max_body_bytes'?")
    ]


def test_unknown_key_far_from_any_other_gets_a_pointer_instead_of_a_guess(tmp_path: Path) -> None:
    path = write(tmp_path, "zzz = 1\n[qqq]\nx = 1")
    advice = "`holdfast config --sample` prints a file with every setting."
    assert problems(tmp_path) == [
        ("unknown setting 'zzz'", f"{path}:1", advice),
        ("unknown table [qqq]", f"{path}:2", advice),
    ]


@pytest.mark.parametrize(
    "value", ['"5"', "0", "-1", "true", "1.5", "[1]", "{a = 1}", "1979-05-27", "inf"]
)
def test_ill_typed_number_is_refused(tmp_path: Path, value: str) -> None:
    path = write(tmp_path, f"max_body_bytes = {value}")
    assert problems(tmp_path) == [
        (
            "max_body_bytes must be a whole number, at least 1",
            f"{path}:1",
            "Compare with `holdfast config --sample`.",
        )
    ]


def test_a_port_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    assert problems(tmp_path, HOLDFAST_SERVE_PORT="65536") == [
        (
            "serve_port must be a whole number, from 0 to 65535",
            "environment HOLDFAST_SERVE_PORT",
            "Compare with `holdfast config --sample`.",
        )
    ]
    assert problems(tmp_path, HOLDFAST_SERVE_PORT="65535") == []


def test_wrong_choice_lists_the_choices_and_guesses(tmp_path: Path) -> None:
    assert problems(tmp_path, HOLDFAST_COLOR="nevr") == [
        (
            "color must be one of always, auto, never",
            "environment HOLDFAST_COLOR",
            "Did you mean 'never'?",
        )
    ]


def test_unknown_argument_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"unknown setting 'colour'.*Did you mean 'color'"):
        Settings.load(cwd=tmp_path, environ={}, colour="never")


def test_all_problems_are_named_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, 'colr = "never"\nmax_body_bytes = "many"\n')
    with pytest.raises(SettingsError) as caught:
        Settings.load(cwd=tmp_path, environ={"HOLDFAST_OUTPUT": "xml"})
    for part in (f"{path}:1", f"{path}:2", "environment HOLDFAST_OUTPUT", "3 problems"):
        assert part in str(caught.value)


def test_thousands_of_problems_give_a_short_error(tmp_path: Path) -> None:
    write(tmp_path, "".join(f"{'k' * 500}{n} = 1\n" for n in range(400)))
    with pytest.raises(SettingsError, match="400 problems") as caught:
        Settings.load(cwd=tmp_path, environ={})
    assert len(str(caught.value)) < 5000


def test_unknown_variable_is_a_problem_for_check_alone(tmp_path: Path) -> None:
    environ = {"HOLDFAST_COLOUR": "never", "HOLDFAST_DATA": "x"}
    assert Settings.load(cwd=tmp_path, environ=environ) == Settings()
    assert problems(tmp_path, **environ) == [
        ("unknown setting 'HOLDFAST_COLOUR'", "environment", "Did you mean 'HOLDFAST_COLOR'?")
    ]


# Files that cannot be read


@pytest.mark.parametrize(
    ("content", "what", "line"),
    [
        (b"\n\ncolor = ", "not TOML: Invalid value", ":3"),
        (b"a = 1\nb = = 2", "not TOML: Invalid value", ":2"),
        (b"a = 1\na = 2", "not TOML: Cannot overwrite a value", ":2"),
        (b"\x00", "not TOML", ":1"),
        (b"a = 1\nb = '\xff'", "the settings file is not UTF-8", ":2"),
        (b"a = " + b"[" * 20_000, "not TOML", ""),
        (b"\n" + b"a." * 100_000 + b"a = 1", "not TOML: a key has more than 100 parts", ":2"),
        (b"a = " + b"9" * 20_000, "not TOML: a number is too long", ""),
        (b"#" * (MAX_FILE_BYTES + 1), "the settings file is larger than 262,144 bytes", ""),
    ],
)
def test_broken_file_is_a_typed_error_with_its_line(
    tmp_path: Path, content: bytes, what: str, line: str
) -> None:
    path = write(tmp_path, content)
    with pytest.raises(SettingsError) as caught:
        Settings.load(cwd=tmp_path, environ={})
    assert caught.value.what.startswith(what)
    assert caught.value.where == f"{path}{line}"


def test_folder_named_like_the_file_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "holdfast.toml").mkdir()
    assert problems(tmp_path)[0][0] == "the settings file is not a regular file"


def test_pipe_named_like_the_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "holdfast.toml")
    assert problems(tmp_path)[0][0] == "the settings file is not a regular file"


def test_broken_link_and_missing_named_file_are_typed_errors(tmp_path: Path) -> None:
    missing = "the settings file cannot be read: No such file or directory"
    assert problems(tmp_path, HOLDFAST_CONFIG="none.toml")[0][0] == missing
    (tmp_path / "holdfast.toml").symlink_to("nowhere")
    assert problems(tmp_path)[0][0] == missing


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_unreadable_file_is_a_typed_error(tmp_path: Path) -> None:
    write(tmp_path, "").chmod(0)
    assert "Permission denied" in problems(tmp_path)[0][0]


def test_byte_order_mark_and_windows_line_ends_are_accepted(tmp_path: Path) -> None:
    path = write(tmp_path, b'\xef\xbb\xbf# x\r\ncolor = "never"\r\n')
    assert origins(tmp_path, {})["color"] == f"file {path}:2"


@given(st.binary(max_size=200) | st.text(alphabet="a=[]{}\"'#\n\\1.,", max_size=60))
def test_any_content_is_settings_or_typed_problems_that_say_what_where_and_what_to_do(
    tmp_path_factory: pytest.TempPathFactory, content: bytes | str
) -> None:
    folder = tmp_path_factory.mktemp("any")
    path = write(folder, content)
    for what, where, fix in problems(folder):
        assert what
        assert where.startswith(str(path))
        assert fix


# The line of each key

KEYS = st.text(string.ascii_letters + string.digits + "-_", min_size=1, max_size=8)
VALUES = st.sampled_from(
    [
        "1",
        '"a # = [ text"',
        "'literal \" ]'",
        '"""two\nlines"""',
        '"""ends in a quote """"',
        "'''a\n\n[b]\nc = 1'''",
        "[1,\n  # a = 1\n  2,\n]",
        "{ a = 1, b = [ 2 ] }",
        "1979-05-27T07:32:00Z",
        '"\\" \\\\"',
        '""',
    ]
)
LINES = st.lists(
    st.tuples(KEYS, VALUES, st.sampled_from(["", " # note", "\n", "\n# [x]\n"])),
    unique_by=lambda item: item[0],
)


@given(LINES, LINES)
def test_each_key_is_found_on_the_line_where_it_was_written(
    plain: list[tuple[str, str, str]], tables: list[tuple[str, str, str]]
) -> None:
    text, expected = "", {}
    for name, value, tail in plain:
        expected[name] = text.count("\n") + 1
        text += f"{name} = {value}{tail}\n"
    for name, value, tail in tables:
        if name not in expected:
            expected[name] = text.count("\n") + 1
            text += f"[{name}.'x.y'] # [z]\n inner = {value}{tail}\n"
    assert _toml.key_lines(text) == expected
    assert set(tomllib.loads(text)) == set(expected)


# Other kinds of settings: what later capabilities rely on


def test_every_kind_of_setting_is_read_from_the_environment(tmp_path: Path) -> None:
    environ = {
        "HOLDFAST_RATIO": "0.5",
        "HOLDFAST_STRICT": "true",
        "HOLDFAST_WINDOWS": '{"m": 8}',
        "HOLDFAST_NAMES": '["a", "b"]',
    }
    toy = Toy.load(cwd=tmp_path, environ=environ)
    assert (toy.ratio, toy.strict, toy.windows, toy.names) == (0.5, True, {"m": 8}, ("a", "b"))


@pytest.mark.parametrize(
    ("variable", "text", "expects"),
    [
        ("HOLDFAST_RATIO", "-1", "ratio must be a number, at least 0"),
        ("HOLDFAST_STRICT", "perhaps", "strict must be true or false"),
        ("HOLDFAST_WINDOWS", "{", "windows must be a table"),
        (
            "HOLDFAST_WINDOWS",
            '{"m": "x"}',
            "windows must be a table: Expected `int`, got `str` - at `$[...]`",
        ),
        ("HOLDFAST_NAMES", "a,b", "names must be a list"),
    ],
)
def test_ill_typed_variable_is_refused_in_words(
    tmp_path: Path, variable: str, text: str, expects: str
) -> None:
    found = Toy.check(cwd=tmp_path, environ={variable: text})
    assert [problem.what for problem in found] == [expects]


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of a table, with the kinds of fields that entries have."""

    url: str = ""
    most: int = 0
    names: list[str] = msgspec.field(default_factory=list)
    key: Secret[str] = ""


class Tables(Definitions, frozen=True, kw_only=True):
    """A table of settings that are tables themselves."""

    removed = {"old": "Set plain.", "older": "Set entries."}  # noqa: RUF012 - a ClassVar above

    plain: Annotated[str, Meta(description="No table.")] = ""
    entries: Annotated[dict[str, Entry], Meta(description="A table of tables.")] = msgspec.field(
        default_factory=dict
    )
    one: Annotated[Entry, Meta(description="One entry.")] = msgspec.field(default_factory=Entry)
    rules: Annotated[dict[str, Literal["never"] | int], Meta(description="Rules.")] = msgspec.field(
        default_factory=dict
    )


def test_an_entry_of_a_table_is_set_by_one_variable_and_the_others_stay(tmp_path: Path) -> None:
    path = write(tmp_path, '[entries.Mine-1]\nurl = "http://a"\nmost = 5\n')
    environ = {
        "HOLDFAST_ENTRIES__MINE_1__KEY": "k",
        "HOLDFAST_ENTRIES__MINE_1__NAMES": '["a", "b"]',
        "HOLDFAST_ENTRIES__OTHER__MOST": "7",
        "HOLDFAST_ENTRIES__EMPTY__URL": "",
        "HOLDFAST_ONE__MOST": "3",
        "HOLDFAST_RULES__READ": "never",
        "HOLDFAST_RULES__FETCH": "2000",
    }
    loaded = Tables.load(cwd=tmp_path, environ=environ)
    assert loaded.entries == {
        "Mine-1": Entry("http://a", 5, ["a", "b"], "k"),
        "other": Entry(most=7),
    }
    assert loaded.one == Entry(most=3)
    assert loaded.rules == {"read": "never", "fetch": 2000}
    assert Tables.check(cwd=tmp_path, environ=environ) == []
    traced = {key.name: origin for key, _, origin in Tables.trace(cwd=tmp_path, environ=environ)}
    assert traced["one"] == "environment HOLDFAST_ONE__MOST"
    assert traced["entries"].startswith(
        f"file {path}:1, environment HOLDFAST_ENTRIES__MINE_1__KEY,"
    )


def test_a_variable_of_an_entry_adds_to_the_variable_of_its_table(tmp_path: Path) -> None:
    environ = {"HOLDFAST_ENTRIES": '{"a": {"most": 1}}', "HOLDFAST_ENTRIES__A__URL": "http://a"}
    assert Tables.load(cwd=tmp_path, environ=environ).entries == {"a": Entry("http://a", 1)}
    argued = Tables.load(cwd=tmp_path, environ=environ, entries__a__most=2, entries__b__url=None)
    assert argued.entries == {"a": Entry("http://a", 2)}


@pytest.mark.parametrize(
    ("variable", "text", "what"),
    [
        ("ENTRIES__A__MOST", "many", "entries must be a table: Expected `int`, got `str`"),
        ("ENTRIES__A__SIZE", "1", "entries must be a table: Object contains unknown field `size`"),
        ("ENTRIES__A", "http://a", "entries must be a table"),
        ("ENTRIES__A__URL__X", "1", "entries must be a table"),
        ("ENTRIES__", "1", "entries must be a table"),
        ("ENTRIES__A__NAMES", "a,b", "entries must be a table"),
        ("ONE__X__Y", "1", "one must be a table"),
    ],
)
def test_an_entry_that_cannot_be_is_refused_with_its_variable(
    tmp_path: Path, variable: str, text: str, what: str
) -> None:
    [problem] = Tables.check(cwd=tmp_path, environ={f"HOLDFAST_{variable}": text})
    assert problem.what.startswith(what)
    assert problem.where == f"environment HOLDFAST_{variable}"


def test_a_variable_below_a_plain_setting_is_unknown(tmp_path: Path) -> None:
    [problem] = Tables.check(cwd=tmp_path, environ={"HOLDFAST_PLAIN__X": "1"})
    assert problem.what == "unknown setting 'HOLDFAST_PLAIN__X'"
    with pytest.raises(SettingsError, match="unknown setting 'plain__x'"):
        Tables.load(cwd=tmp_path, environ={}, plain__x="1")


def test_secrets_inside_a_table_are_masked_and_the_rest_is_shown(tmp_path: Path) -> None:
    environ = {"HOLDFAST_ENTRIES__A__KEY": "hunter2", "HOLDFAST_ONE__KEY": "hunter3"}
    loaded = Tables.load(cwd=tmp_path, environ=environ, entries__a__url="http://a")
    assert "hunter" not in repr(loaded)
    shown = {key.name: key.shown(value) for key, value, _ in Tables.trace(
        cwd=tmp_path, environ=environ, entries__a__url="http://a"
    )}  # fmt: skip
    assert shown["entries"] == {"a": {"url": "http://a", "most": 0, "names": [], "key": "********"}}
    assert shown["one"] == {"url": "", "most": 0, "names": [], "key": "********"}
    upstreams = Settings(upstreams={"openai": UpstreamEntry("http://a", key="hunter2")})
    assert "http://a" in repr(upstreams)
    assert "hunter2" not in repr(upstreams) + repr(upstreams.upstreams)
    assert "hunter2" not in repr(Settings(web_search=WebSearch("brave", key="hunter2")).web_search)


# Settings of earlier versions


def test_a_removed_setting_is_refused_with_what_replaces_it(tmp_path: Path) -> None:
    path = write(tmp_path, "old = 1\n[older]\nx = 1\n")
    environ = {"HOLDFAST_OLD": "1", "HOLDFAST_OLDER": ""}
    problems = [(p.what, p.where, p.fix) for p in Tables.check(cwd=tmp_path, environ=environ)]
    assert problems == [
        ("unknown setting 'old'", f"{path}:1", "Set plain."),
        ("unknown setting 'older'", f"{path}:2", "Set entries."),
        ("unknown setting 'old'", "environment HOLDFAST_OLD", "Set plain."),
    ]
    with pytest.raises(SettingsError, match=r"unknown setting 'old'.*Set plain\."):
        Tables.load(environ={"HOLDFAST_CONFIG": os.devnull}, old=1)


@pytest.mark.parametrize("name", REMOVED)
def test_every_removed_setting_is_refused_in_the_file_and_in_the_environment(
    tmp_path: Path, name: str
) -> None:
    variable = f"HOLDFAST_{name.upper()}"
    for environ, text in (({}, f"{name} = 1\n"), ({variable: "1"}, "")):
        write(tmp_path, text)
        with pytest.raises(SettingsError, match=f"unknown setting '{name}'") as caught:
            Settings.load(cwd=tmp_path, environ=environ)
        assert caught.value.fix == REMOVED[name]


def test_the_advice_for_removed_settings_names_only_what_exists() -> None:
    names = {key.name for key in Settings.defined()}
    assert not names & REMOVED.keys()
    for advice in REMOVED.values():
        for variable in re.findall(r"HOLDFAST_[A-Z_]+", advice):
            value = "http://a" if variable.endswith("URL") else "1"
            value = "brave" if variable.endswith("PROVIDER") else value
            assert Settings.check(cwd="/", environ={variable: value}) == [], variable
        plain = re.sub(r"HOLDFAST_[A-Z_]+|find_tools|x-holdfast-[a-z-]+", "", advice)
        assert set(re.findall(r"\b[a-z]+_[a-z_]+\b", plain)) <= names, advice


def test_at_most_75_settings_exist() -> None:
    assert len(Settings.defined()) <= 75


def test_tables_are_read_from_the_file(tmp_path: Path) -> None:
    write(tmp_path, "ratio = 1\n[windows]\nm = 8\n")
    assert Toy.load(cwd=tmp_path, environ={}).windows == {"m": 8}


def test_secret_is_masked_wherever_it_could_be_printed(tmp_path: Path) -> None:
    environ = {"HOLDFAST_API_KEY": "hunter2"}
    toy = Toy.load(cwd=tmp_path, environ=environ)
    assert toy.api_key == "hunter2"
    assert "hunter2" not in f"{toy} {toy!r}"
    (traced,) = (t for t in Toy.trace(cwd=tmp_path, environ=environ) if t.key.secret)
    assert traced.key.shown(traced.value) == "********"
    assert traced.key.shown("") == ""


def test_refused_secret_is_not_quoted(tmp_path: Path) -> None:
    write(tmp_path, 'api_key = ["hunter2"]')
    with pytest.raises(SettingsError) as caught:
        Toy.load(cwd=tmp_path, environ={})
    assert "hunter2" not in str(caught.value)


# The sample file


def uncommented(sample: str) -> str:
    """Remove the # of each setting; prose has a space behind its #."""
    return "\n".join(
        line[1:] if line.startswith("#") and not line.startswith("# ") else line
        for line in sample.splitlines()
    )


@pytest.mark.parametrize("table", [Settings, Toy])
def test_sample_names_every_setting_and_uncommented_sets_every_default(
    tmp_path: Path, table: type[Definitions]
) -> None:
    write(tmp_path, uncommented(table.sample()))
    assert table.load(cwd=tmp_path, environ={}) == table()
    traced = table.trace(cwd=tmp_path, environ={})
    assert all(origin.startswith("file ") for _, _, origin in traced)


def test_sample_as_it_is_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, Settings.sample())
    assert set(origins(tmp_path, {}).values()) == {"default"}


# The value


def test_a_tilde_in_data_dir_is_the_users_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Settings(data_dir="~/kept").data_folder == tmp_path / "kept"
    assert Settings(data_dir="kept~").data_folder == Path("kept~")


def test_a_tilde_of_nobody_is_a_typed_error() -> None:
    with pytest.raises(SettingsError, match="data_dir") as caught:
        _ = Settings(data_dir="~nobody-of-that-name/kept").data_folder
    assert caught.value.fix


def test_a_time_to_live_of_zero_is_for_good_in_every_setting_that_has_one() -> None:
    times = [key.name for key in Settings.defined() if key.name.endswith("_ttl_hours")]
    for hours, seconds in ((0.0, None), (0.5, 1800.0), (72.0, 259_200.0)):
        values: dict[str, Any] = dict.fromkeys(times, hours)
        settings = Settings(**values)
        assert settings.content_ttl_seconds == seconds
        assert settings.content_archive_ttl_seconds == seconds
        assert settings.summarization_cache_ttl_seconds == seconds
    for key in Settings.defined():
        assert key.name not in times or "0: it never expires" in key.help


def test_settings_are_frozen() -> None:
    settings: Any = Settings()
    with pytest.raises(AttributeError):
        settings.color = "never"
