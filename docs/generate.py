"""Write the files in docs that are made from the code, or check that they are current.

python docs/generate.py            write them (`make docs`)
python docs/generate.py --check    exit code 1 if one of them is stale (`make check`)
python docs/generate.py --show tree        print every file of the package with its purpose
python docs/generate.py --show patterns    print every regular expression, and why it is linear
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner

from holdfast import _toml, errors
from holdfast.settings import Key, Settings
from holdfast.surfaces.cli._groups import application
from holdfast.surfaces.cli.tour import bundled_body
from holdfast.wire import DIALECTS, RULES

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))  # as a script, this file sees only its own folder

from benchmarks import figures  # noqa: E402
from benchmarks import page as benchmarks_page  # noqa: E402
from tools.patterns import inventory, proof  # noqa: E402

NOTE = "<!-- Made by docs/generate.py; change the code, then run `make docs`. -->\n"
HELP_WIDTH = "88"
_COLUMN = 34
_FIRST_SENTENCE = re.compile(r".*?(?:\.(?= |$)|$)")


def _default(key: Key) -> object:
    """Return a default as people write it."""
    default = msgspec.to_builtins(key.default)
    return _toml.literal(default) if isinstance(default, dict) else default


def settings_page() -> str:
    """Every setting in a table."""
    rows = (
        f"| `{key.name}` | `{_default(key)}` | {key.help} {_sentence(key.expects)} "
        f"| `{key.variable}` |\n"
        for key in Settings.defined()
    )
    return (
        f"{NOTE}# Settings\n\n"
        "A value is taken from the first of: argument or option, environment, file, default.\n"
        "[How to configure](../how-to/configure.md) explains the file; "
        "[holdfast.sample.toml](holdfast.sample.toml) is a sample of it.\n\n"
        "A table's entries can be set one by one: `HOLDFAST_UPSTREAMS__OPENAI__KEY`.\n\n"
        "| key | default | meaning | environment |\n|---|---|---|---|\n" + "".join(rows)
    )


def cli_page() -> str:
    """The help of every command, as the command prints it."""
    page = f"{NOTE}# Command line\n"
    for command in ("", *_commands(typer.main.get_command(application()))):
        call = f"holdfast {command}".strip()
        page += f"\n## {call}\n\n```\n{_help(command)}```\n"
    return page


def _commands(group: object, before: str = "") -> Iterator[str]:
    """Every command in the order of the help, those of a group behind it."""
    if isinstance(group, TyperGroup):
        context = typer.Context(group)
        for name in group.list_commands(context):
            yield before + name
            yield from _commands(group.get_command(context, name), f"{before}{name} ")


def rules_page() -> str:
    """Every rule with its source."""
    rows = (
        f"| {rule.id} | {rule.dialect or 'all'} | {_cell(rule.text)} | {_cell(rule.source)} |\n"
        for rule in RULES.values()
    )
    unruled = sorted(set(DIALECTS) - {rule.dialect for rule in RULES.values()})
    return (
        f"{NOTE}# Rules\n\n"
        f"What `validate` checks: {len(RULES)} rules, each with where we learned it. No rules of\n"
        f"their own so far: {', '.join(unruled) or 'none'}.\n"
        "[Rules as data](../discussions/rules.md) says why they look like this.\n\n"
        "| rule | dialect | what must hold | source |\n|---|---|---|---|\n" + "".join(rows)
    )


def errors_page() -> str:
    """The tree of errors, as its module draws it."""
    tree = inspect.getdoc(errors) or ""
    _, _, rest = tree.partition("\n\n")
    drawing, _, remarks = rest.partition("\n\n")
    return f"{NOTE}# Errors\n\n```\n{inspect.cleandoc(drawing)}\n```\n\n{remarks}\n"


def patterns_page() -> str:
    """Return every regular expression of the package in a table."""
    uses = inventory()
    engines = Counter(use.engine for use in uses)
    rows = (f"| `{use.place}` | {proof(use)} | {_code(use.pattern)} |\n" for use in uses)
    return (
        "# Patterns\n\n"
        f"Every regular expression of the package: {engines['re2']} in RE2, {engines['re']} in\n"
        "`re`. Contents are hostile, so each must take time in proportion to the text. RE2 does\n"
        "by its nature; of the others `tools/linear.py` proves it (*proven*), at the price of a\n"
        "factor where repeats have bounds (*bounded*), or a reason stands here (*argued*). Beside\n"
        "that `tests/hardening/test_patterns.py` attacks all of them with texts that are made\n"
        "from the pattern, and fails where time grows faster.\n\n"
        "| place | linear | pattern |\n|---|---|---|\n" + "".join(rows)
    )


def _code(pattern: str | bytes | None) -> str:
    """A pattern as it may stand in a cell: no bar, no line end, nothing that cannot be seen."""
    if pattern is None:
        return "made at run time"
    text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
    shown = "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in text)
    fence = "``" if "`" in shown else "`"
    edge = " " if fence == "``" else ""
    return f"{fence}{edge}{_cell(shown)}{edge}{fence}"


def tree_page() -> str:
    """Return every file of the package with the first sentence of its docstring."""
    package = DOCS.parent / "src" / "holdfast"
    lines = ["# Every file\n", "```", "src/holdfast/"]
    paths = sorted(package.rglob("*"), key=lambda path: _reading_order(path, package))
    for path in paths:
        if "__pycache__" in path.parts or path.name == "__init__.py":
            continue
        indent = "  " * len(path.relative_to(package).parts)
        name = f"{path.name}/" if path.is_dir() else path.name
        lines.append(f"{indent}{name} ".ljust(_COLUMN) + _purpose(path))
    return "\n".join([*(line.rstrip() for line in lines), "```", ""])


def _reading_order(path: Path, package: Path) -> list[tuple[bool, str]]:
    """Files before folders, by name."""
    parts = path.relative_to(package).parts
    here = package
    order = []
    for part in parts:
        here /= part
        order.append((here.is_dir(), part))
    return order


def _purpose(path: Path) -> str:
    """What a module's docstring begins with; nothing for data."""
    module = path / "__init__.py" if path.is_dir() else path
    if module.suffix != ".py" or not module.exists():
        return ""
    said = (ast.get_docstring(ast.parse(module.read_text("utf-8"))) or "").split("\n\n")[0]
    said = " ".join(said.split())
    said = said.removeprefix(f"{path.stem}: ")
    return _FIRST_SENTENCE.match(said)[0].rstrip(".") if said else ""  # type: ignore[index]


def request_example() -> str:
    """The conversation of the tour."""
    return bundled_body().decode()


def broken_example() -> str:
    """The same, after careless trimming: cut at both ends, a text emptied, a call interrupted."""
    request = json.loads(bundled_body())
    messages = request["messages"][2:-2]
    messages[1]["content"][0]["text"] = ""
    call = {
        "type": "tool_use",
        "id": "toolu_search_2",
        "name": "search",
        "input": {"pattern": "localise\\("},
    }
    messages.append({"role": "assistant", "content": [call]})
    return json.dumps(request | {"messages": messages}, indent=2, ensure_ascii=False) + "\n"


FILES = {
    "examples/broken.json": broken_example,
    "examples/request.json": request_example,
    "reference/cli.md": cli_page,
    "reference/errors.md": errors_page,
    "reference/holdfast.sample.toml": Settings.sample,
    "reference/rules.md": rules_page,
    "reference/settings.md": settings_page,
}
SHOWN = {"patterns": patterns_page, "tree": tree_page}
"""Pages for maintainers, printed instead of committed: they change with nearly every commit."""


def stale_files() -> list[str]:
    """Return the names of the files that are missing or not what the code says now."""
    return [
        name
        for name, make in FILES.items()
        if not (file := DOCS / name).is_file() or file.read_text("utf-8") != make()
    ]


def _help(command: str) -> str:
    arguments = [*command.split(), "--help"]
    result = CliRunner().invoke(
        application(),
        arguments,
        prog_name="holdfast",
        env={"COLUMNS": HELP_WIDTH, "TERMINAL_WIDTH": HELP_WIDTH},
    )
    return "\n".join(line.rstrip() for line in result.output.strip().splitlines()) + "\n"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def main() -> int:
    """Run the script."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--show", choices=sorted(SHOWN))
    options = parser.parse_args()
    if options.show:
        print(SHOWN[options.show](), end="")
        return 0
    stale = stale_files()
    if options.check:
        quoting = (path.relative_to(DOCS.parent).as_posix() for path in figures.stale_pages())
        names = [*(f"docs/{name}" for name in [*stale, *benchmarks_page.stale()]), *quoting]
        for name in names:
            print(f"{name} is stale: run `make docs`", file=sys.stderr)
        return 1 if names else 0
    for path in figures.write_pages():
        print(f"wrote {path.relative_to(DOCS.parent)}")
    for name in stale:
        file = DOCS / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(FILES[name](), "utf-8")
        print(f"wrote docs/{name}")
    for name in benchmarks_page.write():
        print(f"wrote docs/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
