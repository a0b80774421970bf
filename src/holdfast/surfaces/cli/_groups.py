"""groups: the table of top-level commands, and groups that suggest the right name.

A command's module is imported only when the command is called: all together take a second.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer._click.exceptions import NoSuchOption
from typer._click.shell_completion import CompletionItem
from typer.core import TyperGroup

import holdfast
from holdfast.errors import HoldfastError


class TopLevel(NamedTuple):
    """A top-level command: its section of the help, and one sentence about it."""

    section: str
    about: str


_START = "Start here"
_REQUEST = "Look at a request"
_CONTENT = "Content"
_MEMORY = "Memory"
_RUN = "Run"
_MAINTAIN = "Maintain"

COMMANDS = {
    "tour": TopLevel(_START, "See Holdfast work on a sample conversation."),
    "wrap": TopLevel(_START, "Run an agent through Holdfast, then print what it saved."),
    "stats": TopLevel(_START, "Show what requests cost and what Holdfast saved."),
    "count": TopLevel(_REQUEST, "Count the input tokens of a request, text or folder."),
    "fit": TopLevel(_REQUEST, "Shorten a request until it fits a token limit."),
    "request": TopLevel(_REQUEST, "Show, validate, repair and convert a request."),
    "rebuild": TopLevel(_REQUEST, "Write a past request as the client sent it."),
    "cite": TopLevel(_CONTENT, "Store a text and print a short citation of it."),
    "expand": TopLevel(_CONTENT, "Print part of a stored content."),
    "research": TopLevel(_CONTENT, "Answer a question from sources; summarise or pack them."),
    "memory": TopLevel(_MEMORY, "Recall turns; manage facts and cached answers."),
    "tools": TopLevel(_MEMORY, "Search and manage tool definitions."),
    "serve": TopLevel(_RUN, "Run the proxy for OpenAI, Anthropic and Gemini clients."),
    "mcp": TopLevel(_RUN, "Run the MCP server, or a gateway to other MCP servers."),
    "jobs": TopLevel(_RUN, "List background jobs, or run a worker."),
    "store": TopLevel(_MAINTAIN, "List, check, clean, erase and copy stored data."),
    "config": TopLevel(_MAINTAIN, "Show settings, models and shell completion."),
    "doctor": TopLevel(_MAINTAIN, "Check the installation and say what to fix."),
}
"""A module each, in the order of the help; it has an `app`, or a function of its name."""

MOVED = {
    "answers": "memory answers",
    "assemble": "memory assemble",
    "backup": "store backup",
    "compare": "memory compare",
    "completion": "config completion",
    "convert": "request convert",
    "erase": "store erase",
    "export": "store export",
    "facts": "memory facts",
    "forget": "memory forget",
    "gc": "store gc",
    "import": "store import",
    "models": "config models",
    "pack": "research pack",
    "recall": "memory recall",
    "refs": "store refs",
    "repair": "request validate --repair",
    "show": "request show",
    "summarise": "research summarise",
    "summarize": "research summarise",
    "top": "stats --watch",
    "validate": "request validate",
    "verify": "store verify",
    "worker": "jobs worker",
    "mcp accept": "tools accept --server",
    "memory facts top": "memory facts search",
}
"""Names that people may try, and the command that does it."""


OPTIONS = {"holdfast stats --live": "--watch"}
"""What to use in the place of options that people expect."""
_LONGEST_SENTENCE = 300


class CommandGroup(TyperGroup):
    """A group that answers a wrong name with the right one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name, or raise an error that suggests one."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            raise self._unknown(ctx, name)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; suggest what replaces an option that it does not have."""
        try:
            return super().invoke(ctx)
        except NoSuchOption as error:
            if error.ctx is not None and error.ctx.parent is ctx:
                self._suggest(ctx, error.ctx.command_path, error)
            raise

    def _suggest(self, ctx: Any, path: str, error: NoSuchOption) -> None:
        """Name the right option, or the command of the option's name, in an error."""
        name = error.option_name.lstrip("-")
        if option := OPTIONS.get(f"{path} --{name}"):
            better = f"{path} {option}"
        elif name in self.list_commands(ctx):
            better = f"{ctx.command_path} {name}"
        else:
            return
        error.message, error.possibilities = f"{error.message}. Use `{better}`.", None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each command with its first sentence, however long that is."""
        rows = [
            (name, command.get_short_help_str(_LONGEST_SENTENCE))
            for name in self.list_commands(ctx)
            if (command := self.get_command(ctx, name))
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _unknown(self, ctx: Any, name: str) -> HoldfastError:
        names = {each: f"{ctx.command_path} {each}" for each in self.list_commands(ctx)}
        for words, command in MOVED.items():
            *group, moved = words.split()
            if ctx.command_path.split()[1:] == group:
                names[moved] = f"holdfast {command}"
        fix = f"`{ctx.command_path} --help` lists the commands."
        if close := get_close_matches(name.lower(), names, n=1):
            fix = f"Use `{names[close[0]]}`. {fix}"
        return HoldfastError(
            "there is no such command", where=f"{ctx.command_path} {name}"[:100], fix=fix
        )


class RootGroup(CommandGroup):
    """The `holdfast` command. It imports a command's module when the command is looked up."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, in the order of the help."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or None if there is none of this name."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        if cmd_name not in self.commands:
            self.commands[cmd_name] = _load(cmd_name)
        return self.commands[cmd_name]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands in sections, without importing them."""
        del ctx
        widest = max(map(len, COMMANDS))
        for section in dict.fromkeys(command.section for command in COMMANDS.values()):
            rows = [
                (name.ljust(widest), command.about)
                for name, command in COMMANDS.items()
                if command.section == section
            ]
            with formatter.section(section):
                formatter.write_dl(rows)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[CompletionItem]:
        """Return the commands that begin like this, without importing them."""
        items = [
            CompletionItem(name, help=command.about)
            for name, command in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return items or super().shell_complete(ctx, incomplete)


def _load(name: str) -> Any:
    module = import_module(f".{name}", __package__)
    parent = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
    )
    parent.callback()(_holdfast)  # a group, so that its command keeps its name
    if hasattr(module, "app"):
        parent.add_typer(module.app, name=name)
    else:
        parent.command(name)(getattr(module, name))
    return typer.main.get_group(parent).commands[name]


def application() -> typer.Typer:
    """Return the command line."""
    app = typer.Typer(
        name="holdfast",
        cls=RootGroup,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_holdfast)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"holdfast {holdfast.__version__}")
        raise typer.Exit


def _holdfast(
    version: Annotated[  # the callback acts on it
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Keep the requests of LLM agents within their token limit, and lose nothing.

    Long contents are stored and replaced by short citations; the model opens the part it needs.

    \b
    New here?  holdfast tour
    Then:      holdfast wrap claude

    FILE can be - for standard input. Results are tables in a terminal and JSON in a pipe.
    `holdfast COMMAND --help` shows the options of a command, with examples.
    """
