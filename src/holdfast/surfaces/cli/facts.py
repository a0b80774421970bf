"""facts: the commands that list, search, add and remove facts."""

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
from holdfast.facts import Fact, FactFilter, FactIndexCache, FactKind, Ledger, RankedFact
from holdfast.models.embedding import open_embedder
from holdfast.store import Store

from ._context import OUTPUT, WORKSPACE, CommandContext, YesOption, shared_options
from ._groups import CommandGroup
from ._output import one_line, remark, remark_removal, table
from ._text import age

app = typer.Typer(cls=CommandGroup, no_args_is_help=True, rich_markup_mode=None)

SessionOption = Annotated[str, typer.Option("--session", help="Only facts from this session.")]
KindOption = Annotated[
    FactKind | None, typer.Option("--kind", help="Only facts of this kind.", show_default=False)
]
TagOption = Annotated[str, typer.Option("--tag", help="Only facts with this tag.")]
LimitOption = Annotated[
    int, typer.Option("--limit", "-k", min=1, max=1000, help="Maximum number of facts.")
]

_T = TypeVar("_T")
_SHORT = 12
"""Characters of an id in a table: enough to be unique in practice."""


@app.callback()
def _facts() -> None:
    """List, search, add and remove facts: short statements with their sources.

    \b
    List the latest:   holdfast memory facts list
    Search:            holdfast memory facts search "when is the deadline?"
    Add one:           holdfast memory facts add "The deadline is 1 May 2026" --source meeting-7
    Show its history:  holdfast memory facts history ID
    Remove some:       holdfast memory facts forget --session nightly

    An id may be shortened as long as it names only one fact.
    """


def _with_ledger(context: CommandContext, work: Callable[[Ledger], Awaitable[_T]]) -> _T:
    async def opened(store: Store) -> _T:
        indexes = FactIndexCache(store, open_embedder())
        return await work(
            Ledger(store, context.scope, indexes, privacy=context.settings.privacy_policy)
        )

    return context.run(opened, creates=True)


@app.command(name="list")
@shared_options(*WORKSPACE, *OUTPUT)
def list_facts(
    context: CommandContext,
    session: SessionOption = "",
    kind: KindOption = None,
    tag: TagOption = "",
    limit: LimitOption = 20,
    every: Annotated[bool, typer.Option("--all", help="Include superseded facts.")] = False,
) -> None:
    """List facts, newest first.

    \b
    Examples:
      holdfast memory facts list
      holdfast memory facts list --kind decision --session nightly
      holdfast memory facts list --all --output json | jq -r '.[].text'
    """

    async def work(ledger: Ledger) -> list[Fact]:
        return await ledger.latest(
            session, kind=kind or "", tag=tag, limit=limit, current=not every
        )

    _show(context, _with_ledger(context, work))


@app.command()
@shared_options(*WORKSPACE, *OUTPUT)
def search(
    context: CommandContext,
    query: Annotated[str, typer.Argument(help="A question, in plain words.")],
    session: SessionOption = "",
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="Prefer facts with this tag.")
    ] = None,
    limit: LimitOption = 12,
) -> None:
    """Find the facts that are most relevant to a question.

    They are ranked by similarity, then tags, then recency. Standing instructions and preferences
    (marked *) are always included. Facts that contradict each other are marked !.

    \b
    Examples:
      holdfast memory facts search "where does Ann live?"
      holdfast memory facts search "which tasks are open?" --tag release -k 20
    """

    async def work(ledger: Ledger) -> list[RankedFact]:
        return await ledger.top(query, session, tag or (), limit)

    ranked = _with_ledger(context, work)

    def draw(console: Console) -> None:
        if not ranked:
            remark("No facts are stored yet.")
            return
        rows = [
            [f"{each.score:.3f}", f"{each.similarity:.2f}", _marks(each), *_cells(each.fact)]
            for each in ranked
        ]
        columns = [Column("score", justify="right"), Column("like", justify="right"), Column("")]
        console.print(table(*columns, *_COLUMNS, rows=rows))

    context.emit([_built(each) for each in ranked], draw)


@app.command()
@shared_options(*WORKSPACE, *OUTPUT)
def add(
    context: CommandContext,
    text: Annotated[str, typer.Argument(help="The fact, in at most 500 characters.")],
    source: Annotated[
        str, typer.Option("--source", help="Where it comes from: a ref or the id of a message.")
    ],
    kind: Annotated[FactKind, typer.Option("--kind", help="The kind of fact.")] = "fact",
    session: Annotated[str, typer.Option("--session", help="The session it belongs to.")] = "",
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A tag; may be repeated.")] = None,
    subject: Annotated[
        str,
        typer.Option(
            "--subject",
            help="What it gives the value of; an older fact on the subject is superseded.",
        ),
    ] = "",
    standing: Annotated[
        bool,
        typer.Option(
            "--standing", help="A standing instruction or preference, which is always included."
        ),
    ] = False,
    instead_of: Annotated[
        str, typer.Option("--instead-of", help="The id of the fact that it supersedes.")
    ] = "",
) -> None:
    """Add a fact; a fact that exists gets another source. Secrets are refused.

    \b
    Examples:
      holdfast memory facts add "The deadline is 1 May 2026" --source meeting-7 --subject deadline
      holdfast memory facts add "Answer in German" --source chat-3 --standing
    """

    async def work(ledger: Ledger) -> Fact:
        noted = {"kind": kind, "session": session, "tags": tag or (), "standing": standing}
        if subject:
            noted["subject"] = subject
        if instead_of:
            old = await _fact(ledger, instead_of)
            return await ledger.supersede(old.id, text, source_ref=source, **noted)
        return await ledger.add(text, source_ref=source, **noted)  # type: ignore[arg-type]

    _show(context, [_with_ledger(context, work)])


@app.command()
@shared_options(*WORKSPACE, *OUTPUT)
def history(
    context: CommandContext,
    fact_id: Annotated[str, typer.Argument(metavar="ID", help="The id of a fact.")],
) -> None:
    """Show what a fact superseded and what superseded it, oldest first.

    \b
    Examples:
      holdfast memory facts history 3f2a9c11d0aa
    """

    async def work(ledger: Ledger) -> list[Fact]:
        return await ledger.history((await _fact(ledger, fact_id)).id)

    _show(context, _with_ledger(context, work))


@app.command()
@shared_options(*WORKSPACE, *OUTPUT)
def forget(
    context: CommandContext,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of facts.")
    ] = None,
    session: SessionOption = "",
    ref: Annotated[str, typer.Option("--ref", help="Only facts from this content.")] = "",
    kind: KindOption = None,
    tag: TagOption = "",
    words: Annotated[str, typer.Option("--words", help="Only facts that contain this text.")] = "",
    yes: YesOption = False,
) -> None:
    """Remove facts for good, superseded ones too.

    Without --yes it lists the facts that it would remove.

    \b
    Examples:
      holdfast memory facts forget --words "old address"
      holdfast memory facts forget 3f2a9c11d0aa --yes
    """

    async def work(ledger: Ledger) -> list[Fact]:
        named = [(await _fact(ledger, fact_id)).id for fact_id in ids or ()]
        which = FactFilter(
            ids=tuple(named), session=session, ref=ref, kind=kind or "", tag=tag, words=words
        )
        return await ledger.forget(which, preview=not yes)

    facts = _with_ledger(context, work)
    _show(context, facts)
    remark_removal(len(facts), "fact", is_done=yes)


async def _fact(ledger: Ledger, beginning: str) -> Fact:
    """Return the fact whose id begins like this."""
    facts = await ledger.starting_with(beginning)
    if len(facts) != 1:
        raise HoldfastError(
            "no fact has this id" if not facts else "more than one fact has an id like this",
            where=beginning[:100],
            fix="See `holdfast memory facts list --all`.",
        )
    return facts[0]


def _show(context: CommandContext, facts: list[Fact]) -> None:
    def draw(console: Console) -> None:
        if not facts:
            remark("No facts match.")
            return
        console.print(table(*_COLUMNS, rows=map(_cells, facts)))

    context.emit([msgspec.to_builtins(fact) for fact in facts], draw)


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
