"""context: the options that many commands share, declared once.

`shared_options` adds them to a command. The command receives them as a `CommandContext`, which
loads the settings, opens the store and prints the result.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from copy import copy
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar

import typer

from holdfast.settings import Settings
from holdfast.store import Scope, Store, open_store

from ._output import Output

if TYPE_CHECKING:
    from rich.console import Console

    from holdfast.engine import Holdfast

_T = TypeVar("_T")
_DEFAULT = Scope()

STORE = ("store_url",)
WORKSPACE = ("store_url", "user", "workspace")
"""For commands that work in one workspace."""
TENANT = ("store_url", "user", "tenant")
"""For commands that read all tenants unless one is named."""
OUTPUT = ("output", "color")
COLOR = ("color",)


YesOption = Annotated[
    bool, typer.Option("--yes", help="Remove them; without this option they are only listed.")
]


class _SharedOption(NamedTuple):
    """How an option is declared, and its default."""

    annotation: Any
    default: str | None


_OPTIONS = {
    "store_url": _SharedOption(
        Annotated[
            str | None,
            typer.Option(
                "--store",
                metavar="URL",
                help="memory:, sqlite:///path or postgresql://…; the default is the setting "
                "store_url.",
            ),
        ],
        None,
    ),
    "user": _SharedOption(
        Annotated[str, typer.Option("--user", help="Use this user's records.")], _DEFAULT.user
    ),
    "workspace": _SharedOption(
        Annotated[
            str,
            typer.Option(
                "--workspace",
                "--tenant",
                help="Use this workspace; each tenant of the proxy has one.",
            ),
        ],
        _DEFAULT.workspace,
    ),
    "tenant": _SharedOption(
        Annotated[
            str,
            typer.Option(
                "--tenant",
                "--workspace",
                help="Only this tenant of the proxy; the default is all of them.",
                show_default=False,
            ),
        ],
        "",
    ),
    "output": _SharedOption(
        Annotated[
            Literal["auto", "table", "json"] | None,
            typer.Option(
                "--output",
                help="Print a table or JSON; auto prints a table in a terminal, JSON in a pipe.",
            ),
        ],
        None,
    ),
    "color": _SharedOption(
        Annotated[
            Literal["auto", "always", "never"] | None,
            typer.Option("--color", help="Use colour; auto uses it only in a terminal."),
        ],
        None,
    ),
}


class CommandContext:
    """The shared options of one call, with functions that use them."""

    def __init__(
        self,
        *,
        user: str = _DEFAULT.user,
        workspace: str = _DEFAULT.workspace,
        tenant: str = "",
        **settings: Any,
    ) -> None:
        self.scope = Scope(user, workspace)
        self.tenant = tenant
        self.values = settings
        """Settings as the options give them; None where an option is left out."""

    @cached_property
    def settings(self) -> Settings:
        """The settings, with the options of this call above them."""
        return Settings.load(**self.values)

    def override(self, **settings: Any) -> CommandContext:
        """Return a context with these settings above the others; None sets nothing."""
        context = copy(self)
        context.__dict__.pop("settings", None)
        context.values = self.values | settings
        return context

    async def scopes(self, store: Store, tenant: str = "") -> list[Scope]:
        """Return the named tenant, or all of the user's, most recently used first."""
        user, tenant = self.scope.user, tenant or self.tenant
        if tenant:
            return [Scope(user, tenant)]
        return [scope for scope in await store.scopes() if scope.user == user] or [Scope(user)]

    def run(self, work: Callable[[Store], Awaitable[_T]], *, creates: bool = False) -> _T:
        """Open the store, await `work` on it, and close it.

        Only commands that store something set `creates`; the others fail if there is no store.
        """
        return with_store(self.settings, work, creates=creates)

    def run_engine(self, work: Callable[[Holdfast], Awaitable[_T]]) -> _T:
        """Open an engine that leaves the jobs of the queue alone, await `work`, and close it."""
        from holdfast.engine import Holdfast  # noqa: PLC0415 - many commands do without it

        async def main() -> _T:
            settings = self.override(background_jobs=False).settings
            async with Holdfast.open(scope=self.scope, settings=settings) as engine:
                return await work(engine)

        return asyncio.run(main())

    def emit(self, data: object, draw: Callable[[Console], None]) -> None:
        """Print the data as JSON, or call `draw` to print it as a table."""
        Output(self.settings).emit(data, draw)


def with_store(
    settings: Settings, work: Callable[[Store], Awaitable[_T]], *, creates: bool = False
) -> _T:
    """Open the store that the settings name, await `work` on it, and close it."""

    async def main() -> _T:
        store = await open_store(settings.store_url, folder=settings.data_folder, creates=creates)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(main())


def shared_options(
    *names: str,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that passes these options to a command as its first argument."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def call(**values: Any) -> None:
            context = CommandContext(**{name: values.pop(name) for name in names})
            command(context, **values)

        _, *own = inspect.signature(command, eval_str=True).parameters.values()
        shared = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=_OPTIONS[name].default,
                annotation=_OPTIONS[name].annotation,
            )
            for name in names
        ]
        # Typer reads both to build the command's options.
        call.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
        call.__annotations__ = {each.name: each.annotation for each in (*own, *shared)}
        return call

    return decorate
