"""answers: answers from memory: list them, weigh a question against them, forget, import."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Column

from holdfast.answers import AnswerFilter
from holdfast.answers.cache import NO_EMBEDDER
from holdfast.answers.importing import CachedRow, rows_of
from holdfast.answers.records import unpacked
from holdfast.engine import Holdfast
from holdfast.errors import HoldfastError, PrivacyError, StoreError
from holdfast.extras import how_to_install
from holdfast.store import Scope
from holdfast.store.answer_shelf import StoredAnswer

from ._engine import looking, with_engine
from ._output import ColorOption, Output, OutputOption, one_line, remark, table
from ._store import DEFAULT, StoreOption, UserOption, WorkspaceOption
from ._text import age

app = typer.Typer(
    help="List answers from memory, weigh a question against them, forget them, import a cache.",
    no_args_is_help=True,
)
_DIGITS = 16


@app.command("list")
def list_(
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many.")] = 20,
    session: Annotated[str, typer.Option("--session", help="Only those given in it.")] = "",
    ref: Annotated[str, typer.Option("--ref", help="Only those made from this content.")] = "",
    contains: Annotated[
        str, typer.Option("--contains", help="Only those with these words in question or answer.")
    ] = "",
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """List answers that may be given again, those kept last first.

    \b
    Examples:
      holdfast answers list
      holdfast answers list --contains refund --output json
    """
    settings = looking(output, color, store)
    which = AnswerFilter(session=session, ref=ref, contains=contains)

    async def work(engine: Holdfast) -> tuple[list[StoredAnswer], str]:
        reason = engine.answers.unlike_because
        if reason == NO_EMBEDDER:
            reason = f"{reason}. {how_to_install('embeddings').rstrip('.')}"
        return await engine.answers.latest(limit, which), reason

    kept, unlike = with_engine(settings, Scope(user, workspace), work)

    def draw(console: Console) -> None:
        if not kept:
            remark("There are no such answers.")
        else:
            console.print(_drawn(kept))
        if unlike:
            remark(f"Only equal requests are answered: {unlike}.")

    Output(settings).emit({"answers": [_built(each) for each in kept], "unlike": unlike}, draw)


@app.command()
def match(
    question: Annotated[str, typer.Argument(help="The question to weigh.")],
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many.")] = 10,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Show which kept answers a question is like, how much, and what keeps each from being given.

    Contexts are not compared here: an answer is only ever given in the context it was made in.

    \b
    Examples:
      holdfast answers match "How can I reset a password?"
    """
    settings = looking(output, color, store)
    matches = with_engine(
        settings, Scope(user, workspace), lambda engine: engine.answers.matches(question, limit)
    )

    def draw(console: Console) -> None:
        if not matches:
            remark("There are no answers to weigh it against.")
            return
        rows = [
            (
                *(each.kept.id[:_DIGITS], f"{each.similarity:.4f}"),
                "yes" if each.serves else "no",
                each.differs_in or ("" if each.serves else "similarity"),
                one_line(each.kept.prompt),
            )
            for each in matches
        ]
        columns = ("answer", "similarity", "serves", "differs in", Column("question", ratio=1))
        console.print(table(*columns, rows=rows))

    told = [
        {
            **_built(each.kept),
            "similarity": each.similarity,
            "serves": each.serves,
            "differs_in": each.differs_in,
        }
        for each in matches
    ]
    Output(settings).emit(told, draw)


@app.command()
def forget(
    which: Annotated[str, typer.Argument(help="An answer's id, or the ref it was made from.")] = "",
    session: Annotated[str, typer.Option("--session", help="Those given in it.")] = "",
    contains: Annotated[
        str, typer.Option("--contains", help="Those with these words in question or answer.")
    ] = "",
    older_than: Annotated[
        float, typer.Option("--older-than", min=0, help="Those older than so many hours.")
    ] = 0.0,
    yes: Annotated[bool, typer.Option("--yes", help="Remove them; else they are shown.")] = False,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Remove answers: one by its id, those made from a ref, or those that fit all the options.

    Without --yes it only shows which would go.

    \b
    Examples:
      holdfast answers forget ans_3f1c09a4b7d2
      holdfast answers forget ref:log:0123456789abcdef --yes
      holdfast answers forget --contains refund --older-than 1 --yes
    """
    options = AnswerFilter(
        session=session, contains=contains, older_than_seconds=older_than * 3_600
    )
    if bool(which) == (options != AnswerFilter()):
        raise HoldfastError(
            "it is not said which answers are meant",
            where="WHICH",
            fix="Give an id or a ref, or options such as --contains; not both.",
        )
    settings = looking(output, color, store)
    meant = with_engine(
        settings,
        Scope(user, workspace),
        lambda engine: engine.answers.forget(which or options, preview=not yes),
    )

    def draw(console: Console) -> None:
        if not meant:
            remark("There are no such answers.")
            return
        console.print(_drawn(meant))
        remark(f"{len(meant):,} removed." if yes else f"{len(meant):,} would go: add --yes.")

    Output(settings).emit({"removed": yes, "answers": [_built(each) for each in meant]}, draw)


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="A SQLite file, .jsonl, or CSV with a header.")],
    table_name: Annotated[str, typer.Option("--table", help="Which table of a SQLite file.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be imported.")
    ] = False,
    store: StoreOption = None,
    user: UserOption = DEFAULT.user,
    workspace: WorkspaceOption = DEFAULT.workspace,
    output: OutputOption = None,
    color: ColorOption = None,
) -> None:
    """Import the cache of another system.

    Rows with a question and an answer become answers, under the context_signature that they have,
    until they expire. Rows with a key and a value are stored behind refs, each content once, with
    its hash, its citation and what it is in a line. Importing twice is once.

    \b
    Examples:
      psql -c "\\copy cache_entries TO 'cache.csv' CSV HEADER"
      holdfast answers import cache.csv --dry-run
      holdfast answers import old.db --table semantic_cache
    """
    settings = looking(output, color, store)

    async def work(engine: Holdfast) -> dict[str, Any]:
        counts: Counter[str] = Counter()
        skipped: list[dict[str, object]] = []
        for row in rows_of(file, table_name):
            fault = row.fault or await _imported(engine, row, counts, dry_run=dry_run)
            if fault:
                skipped.append({"row": row.number, "why": fault})
        return {"answers": counts["answers"], "contents": counts["contents"], "skipped": skipped}

    told = with_engine(settings, Scope(user, workspace), work)

    def draw(console: Console) -> None:
        console.print(f"{told['answers']:,} answers and {told['contents']:,} contents"
                      f"{' would be imported' if dry_run else ' imported'}.")  # fmt: skip
        if told["skipped"]:
            rows = [(str(each["row"]), str(each["why"])) for each in told["skipped"]]
            console.print(table("row", "left out because", rows=rows))

    Output(settings).emit(told, draw)


async def _imported(
    engine: Holdfast, row: CachedRow, counts: Counter[str], *, dry_run: bool
) -> str:
    """Store a row; why not, if it is left out."""
    left = None if row.expires_at is None else row.expires_at - time.time()
    if left is not None and left <= 0:
        return "its time is over"
    try:
        if row.is_answer:
            if not dry_run:
                await engine.answers.put(
                    row.question, row.signature or _IMPORTED, row.answer, ttl=left
                )
            counts["answers"] += 1
        else:
            if len(row.value) <= engine.options.rules.threshold:
                return "it is short: what is under cite_threshold stays whole where it is used"
            if not dry_run:
                await engine.cite(row.value, tool=row.key)
            counts["contents"] += 1
    except (PrivacyError, StoreError) as error:
        return error.what
    return ""


_IMPORTED = "imported"
"""The context of imported answers that have none of their own."""


def _built(stored: StoredAnswer) -> dict[str, object]:
    return {
        "id": stored.id,
        "question": stored.prompt,
        "answer": unpacked(stored.answer).text,
        "signature": stored.signature,
        "refs": list(stored.refs),
        "session": stored.session,
        "created_at": stored.created_at,
        "expires_at": stored.expires_at,
        "hits": stored.hits,
        "last_hit_at": stored.last_hit_at,
        "shared": bool(stored.vector),
    }


def _drawn(kept: list[StoredAnswer]) -> Any:
    now = time.time()
    rows = [
        (
            *(each.id[:_DIGITS], age(now - each.created_at), _left(each, now), f"{each.hits:,}"),
            "yes" if each.vector else "no",
            one_line(each.prompt),
            one_line(unpacked(each.answer).text),
        )
        for each in kept
    ]
    numbers = [Column(name, justify="right") for name in ("age", "left", "hits")]
    shown = (Column("question", ratio=1), Column("answer", ratio=1))
    return table("id", *numbers, "shared", *shown, rows=rows)


def _left(stored: StoredAnswer, now: float) -> str:
    if stored.expires_at is None:
        return "ever"
    return age(stored.expires_at - now) if stored.expires_at > now else "over"
