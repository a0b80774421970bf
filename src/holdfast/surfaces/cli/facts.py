"""facts: what was said, as statements that stand alone: list, find, add, look back, forget."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import msgspec
import typer
from rich.console import Console
from rich.table import Column
from rich.text import Text

from holdfast.errors import HoldfastError
from holdfast.facts import Fact, FactFilter, FactKind, Indexes, Ledger, RankedFact
from holdfast.models.embedding import open_embedder
from holdfast.settings import Settings
from holdfast.store import Scope, Store

from ._output import ColorOption, Output, OutputOption, one_line, remark, table
from ._store import DEFAULT, StoreOption, UserOption, WorkspaceOption, with_store
from ._text import age

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

SessionOption = Annotated[str, typer.Option("--session", help="Only those said in this session.")]
KindOption = Annotated[
    FactKind | None, typer.Option("--kind", help="Only facts of this kind.", show_default=False)
]
TagOption = Annotated[str, typer.Option("--tag", help="Only facts with this tag.")]
LimitOption = Annotated[int, typer.Option("--limit", "-k", min=1, max=1000, help="How many.")]

_T = TypeVar("_T")
_SHORT = 12
"""Characters of an id in a table: enough to tell facts apart, and to copy."""


@app.callback()
def _facts() -> None:
    """Look after facts: what was said, where, and what has taken its place since.

    \b
    What is known?        holdfast facts list
    What of a question?   holdfast facts top "when is the deadline?"
    Note something:       holdfast facts add "The deadline is 1 May 2026" --source meeting-7
    What was it before?   holdfast facts history ID
    Forget it:            holdfast facts forget --session nightly --preview

    Facts of one user and workspace; --user and --workspace name others. An id may be shortened, as
    far as it means but one fact.
    """


def _with_ledger(settings: Settings, scope: Scope, work: Callable[[Ledger], Awaitable[_T]]) -> _T:
    async def opened(store: Store) -> _T:
        indexes = Indexes(store, open_embedder())
        return await work(Ledger(store, scope, indexes, privacy=settings.privacy_policy))

    return with_store(settings, opened, creates=True)


@app.command(name="list")
def list_facts(
    session: SessionOption = "",
    kind: KindOption = None,
    tag: TagOption = "",
    limit: LimitOption = 20,
    every: Annotated[bool, typer.Option("--all", help="Superseded ones too.")] = False,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """List the facts said last.

    \b
    Examples:
      holdfast facts list
      holdfast facts list --kind decision --session nightly
      holdfast facts list --all --output json | jq -r '.[].text'
    """
    settings = Settings.load(output=output, color=color, store_url=store)

    async def work(ledger: Ledger) -> list[Fact]:
        return await ledger.latest(
            session, kind=kind or "", tag=tag, limit=limit, current=not every
        )

    _show(settings, _with_ledger(settings, Scope(user, workspace), work))


@app.command()
def top(
    query: Annotated[str, typer.Argument(help="What is asked.")],
    session: SessionOption = "",
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="Counts for those with it.")
    ] = None,
    limit: LimitOption = 12,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Find the facts that have most to do with a question.

    By similarity, then tags, then recency. Standing instructions and preferences (marked *) come
    whatever is asked. Facts in which others say something else of the same are marked !.

    \b
    Examples:
      holdfast facts top "where does Ann live?"
      holdfast facts top "what is left to do?" --tag release -k 20
    """
    settings = Settings.load(output=output, color=color, store_url=store)

    async def work(ledger: Ledger) -> list[RankedFact]:
        return await ledger.top(query, session, tag or (), limit)

    ranked = _with_ledger(settings, Scope(user, workspace), work)

    def draw(console: Console) -> None:
        if not ranked:
            remark("Nothing is known here yet.")
            return
        rows = [
            [f"{each.score:.3f}", f"{each.similarity:.2f}", _marks(each), *_cells(each.fact)]
            for each in ranked
        ]
        columns = [Column("score", justify="right"), Column("like", justify="right"), Column("")]
        console.print(table(*columns, *_COLUMNS, rows=rows))

    Output(settings).emit([_built(each) for each in ranked], draw)


@app.command()
def add(
    text: Annotated[str, typer.Argument(help="What is so; at most 500 characters.")],
    source: Annotated[
        str, typer.Option("--source", help="Where it was said: a ref, or the id of a message.")
    ],
    kind: Annotated[FactKind, typer.Option("--kind", help="What kind of fact.")] = "fact",
    session: Annotated[str, typer.Option("--session", help="Where it belongs.")] = "",
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A tag of it.")] = None,
    subject: Annotated[
        str, typer.Option("--subject", help="What it is the one value of: an older value goes.")
    ] = "",
    standing: Annotated[
        bool, typer.Option("--standing", help="An instruction or preference: always counts.")
    ] = False,
    instead_of: Annotated[
        str, typer.Option("--instead-of", help="The id of the fact whose place it takes.")
    ] = "",
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Note a fact; one that says the same gets one more source. Secrets are refused.

    \b
    Examples:
      holdfast facts add "The deadline is 1 May 2026" --source meeting-7 --subject deadline
      holdfast facts add "Answer in German" --source chat-3 --standing
    """
    settings = Settings.load(output=output, color=color, store_url=store)

    async def work(ledger: Ledger) -> Fact:
        noted = {"kind": kind, "session": session, "tags": tag or (), "standing": standing}
        if subject:
            noted["subject"] = subject
        if instead_of:
            old = await _meant(ledger, instead_of)
            return await ledger.supersede(old.id, text, source_ref=source, **noted)
        return await ledger.add(text, source_ref=source, **noted)  # type: ignore[arg-type]

    _show(settings, [_with_ledger(settings, Scope(user, workspace), work)])


@app.command()
def history(
    fact_id: Annotated[str, typer.Argument(metavar="ID", help="The id of a fact.")],
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Show what a fact superseded and what superseded it, the oldest first."""
    settings = Settings.load(output=output, color=color, store_url=store)

    async def work(ledger: Ledger) -> list[Fact]:
        return await ledger.history((await _meant(ledger, fact_id)).id)

    _show(settings, _with_ledger(settings, Scope(user, workspace), work))


@app.command()
def forget(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of facts.")
    ] = None,
    session: SessionOption = "",
    ref: Annotated[str, typer.Option("--ref", help="Only those said in this content.")] = "",
    kind: KindOption = None,
    tag: TagOption = "",
    words: Annotated[str, typer.Option("--words", help="Only those whose text holds this.")] = "",
    preview: Annotated[bool, typer.Option("--preview", help="Only show what would go.")] = False,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Remove facts without a trace, superseded ones too, and show which they were.

    \b
    Examples:
      holdfast facts forget --words "old address" --preview
      holdfast facts forget 3f2a9c11d0aa
    """
    settings = Settings.load(output=output, color=color, store_url=store)

    async def work(ledger: Ledger) -> list[Fact]:
        named = [(await _meant(ledger, fact_id)).id for fact_id in ids or ()]
        which = FactFilter(
            ids=tuple(named), session=session, ref=ref, kind=kind or "", tag=tag, words=words
        )
        return await ledger.forget(which, preview=preview)

    gone = _with_ledger(settings, Scope(user, workspace), work)
    named = "1 fact" if len(gone) == 1 else f"{len(gone):,} facts"
    done = "is forgotten" if len(gone) == 1 else "are forgotten"
    remark(f"{named} {'would go' if preview else done}.")
    _show(settings, gone)


async def _meant(ledger: Ledger, beginning: str) -> Fact:
    """The fact whose id begins like this."""
    facts = await ledger.starting_with(beginning)
    if len(facts) != 1:
        raise HoldfastError(
            "no fact has this id" if not facts else "the id means more than one fact",
            where=beginning[:100],
            fix="See `holdfast facts list --all`.",
        )
    return facts[0]


def _show(settings: Settings, facts: list[Fact]) -> None:
    def draw(console: Console) -> None:
        if not facts:
            remark("There are no such facts.")
            return
        console.print(table(*_COLUMNS, rows=map(_cells, facts)))

    Output(settings).emit([msgspec.to_builtins(fact) for fact in facts], draw)


def _built(ranked: RankedFact) -> dict[str, object]:
    fact: dict[str, object] = msgspec.to_builtins(ranked.fact)
    more = {"score": ranked.score, "similarity": ranked.similarity}
    return {**fact, **more, "contradicts": list(ranked.contradicts)}


def _marks(ranked: RankedFact) -> str:
    return ("*" if ranked.fact.standing else "") + ("!" if ranked.contradicts else "")


def _source(fact: Fact) -> str:
    more = f" +{len(fact.sources) - 1}" if len(fact.sources) > 1 else ""
    return f"{fact.source_ref}{more}"


def _cells(fact: Fact) -> list[str | Text]:
    state = "" if fact.is_current else "superseded: "
    return [
        fact.id[:_SHORT],
        fact.kind,
        age(time.time() - fact.created_at),
        state + fact.text,
        one_line(_source(fact)),
    ]


_COLUMNS = (
    Column("id", no_wrap=True),
    Column("kind", no_wrap=True),
    Column("age", justify="right", no_wrap=True),
    Column("fact", overflow="fold", ratio=3),
    Column("source", ratio=1),
)
