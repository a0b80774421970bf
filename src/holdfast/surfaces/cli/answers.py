"""answers: the commands that list, match, remove and import cached answers."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Column

from holdfast.answer_cache import AnswerFilter
from holdfast.answer_cache.cache import NO_EMBEDDER
from holdfast.answer_cache.importing import CachedRow, rows_of
from holdfast.answer_cache.records import unpacked
from holdfast.engine import Holdfast
from holdfast.errors import HoldfastError, PrivacyError, StoreError
from holdfast.extras import how_to_install
from holdfast.store.answer_store import StoredAnswer

from ._context import OUTPUT, WORKSPACE, CommandContext, YesOption, shared_options
from ._groups import CommandGroup
from ._output import counted, one_line, remark, remark_removal, table
from ._text import age

app = typer.Typer(cls=CommandGroup, no_args_is_help=True, rich_markup_mode=None)
_DIGITS = 16


@app.callback()
def _answers() -> None:
    """List, match, remove and import cached answers, which are given again for free.

    \b
    List them:        holdfast memory answers list
    Test a question:  holdfast memory answers match "How can I reset a password?"
    Remove some:      holdfast memory answers forget --contains refund
    Import a cache:   holdfast memory answers import cache.csv
    """


@app.command("list")
@shared_options(*WORKSPACE, *OUTPUT)
def list_(
    context: CommandContext,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of answers.")] = 20,
    session: Annotated[
        str, typer.Option("--session", help="Only answers given in this session.")
    ] = "",
    ref: Annotated[str, typer.Option("--ref", help="Only answers made from this content.")] = "",
    contains: Annotated[
        str,
        typer.Option("--contains", help="Only answers with these words in the question or answer."),
    ] = "",
) -> None:
    """List cached answers, newest first.

    \b
    Examples:
      holdfast memory answers list
      holdfast memory answers list --contains refund --output json
    """
    which = AnswerFilter(session=session, ref=ref, contains=contains)

    async def work(engine: Holdfast) -> tuple[list[StoredAnswer], str]:
        reason = engine.answers.unlike_because
        if reason == NO_EMBEDDER:
            reason = f"{reason}. {how_to_install('embeddings').rstrip('.')}"
        return await engine.answers.latest(limit, which), reason

    stored, unlike = context.run_engine(work)

    def draw(console: Console) -> None:
        if not stored:
            remark("No answers match.")
        else:
            console.print(_drawn(stored))
        if unlike:
            remark(f"Only identical requests are answered: {unlike}.")

    context.emit({"answers": [_built(each) for each in stored], "unlike": unlike}, draw)


@app.command()
@shared_options(*WORKSPACE, *OUTPUT)
def match(
    context: CommandContext,
    question: Annotated[str, typer.Argument(help="The question to compare.")],
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of answers.")] = 10,
) -> None:
    """Show the cached answers to similar questions, and why each would be given or not.

    Contexts are not compared here: an answer is given only in the context that it was made in.

    \b
    Examples:
      holdfast memory answers match "How can I reset a password?"
    """
    matches = context.run_engine(lambda engine: engine.answers.matches(question, limit))

    def draw(console: Console) -> None:
        if not matches:
            remark("No answers are stored yet.")
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

    described = [
        {
            **_built(each.kept),
            "similarity": each.similarity,
            "serves": each.serves,
            "differs_in": each.differs_in,
        }
        for each in matches
    ]
    context.emit(described, draw)


@app.command()
@shared_options(*WORKSPACE, *OUTPUT)
def forget(
    context: CommandContext,
    which: Annotated[
        str, typer.Argument(help="The id of an answer, or a ref: all answers made from it.")
    ] = "",
    session: Annotated[str, typer.Option("--session", help="Answers given in this session.")] = "",
    contains: Annotated[
        str, typer.Option("--contains", help="Answers with these words in the question or answer.")
    ] = "",
    older_than: Annotated[
        float, typer.Option("--older-than", min=0, help="Answers older than this many hours.")
    ] = 0.0,
    yes: YesOption = False,
) -> None:
    """Remove cached answers: one by its id, all made from a ref, or all that match the options.

    Without --yes it lists the answers that it would remove.

    \b
    Examples:
      holdfast memory answers forget ans_3f1c09a4b7d2
      holdfast memory answers forget ref:log:0123456789abcdef --yes
      holdfast memory answers forget --contains refund --older-than 1 --yes
    """
    options = AnswerFilter(
        session=session, contains=contains, older_than_seconds=older_than * 3_600
    )
    if bool(which) == (options != AnswerFilter()):
        raise HoldfastError(
            "no answers are named, or in two ways",
            where="holdfast memory answers forget",
            fix="Give an id or a ref, or options such as --contains, but not both.",
        )
    matches = context.run_engine(
        lambda engine: engine.answers.forget(which or options, preview=not yes),
    )

    def draw(console: Console) -> None:
        if not matches:
            remark("No answers match.")
            return
        console.print(_drawn(matches))
        remark_removal(len(matches), "answer", is_done=yes)

    context.emit({"removed": yes, "answers": [_built(each) for each in matches]}, draw)


@app.command("import")
@shared_options(*WORKSPACE, *OUTPUT)
def import_(
    context: CommandContext,
    file: Annotated[Path, typer.Argument(help="A SQLite file, .jsonl, or CSV with a header.")],
    table_name: Annotated[str, typer.Option("--table", help="The table of a SQLite file.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report what would be imported; import nothing.")
    ] = False,
) -> None:
    """Import the cache of another system.

    Rows with a question and an answer become cached answers until they expire, in the context that
    their context_signature names. Rows with a key and a value become stored contents with refs.
    Importing a file twice changes nothing.

    \b
    Examples:
      psql -c "\\copy cache_entries TO 'cache.csv' CSV HEADER"
      holdfast memory answers import cache.csv --dry-run
      holdfast memory answers import old.db --table semantic_cache
    """

    async def work(engine: Holdfast) -> dict[str, Any]:
        counts: Counter[str] = Counter()
        skipped: list[dict[str, object]] = []
        for row in rows_of(file, table_name):
            fault = row.fault or await _imported(engine, row, counts, dry_run=dry_run)
            if fault:
                skipped.append({"row": row.number, "why": fault})
        return {"answers": counts["answers"], "contents": counts["contents"], "skipped": skipped}

    outcome = context.run_engine(work)

    def draw(console: Console) -> None:
        answers = counted(outcome["answers"], "answer")
        contents = counted(outcome["contents"], "content")
        verb = "would be imported" if dry_run else "imported"
        console.print(f"{answers} and {contents} {verb}.")
        if outcome["skipped"]:
            rows = [(str(each["row"]), str(each["why"])) for each in outcome["skipped"]]
            console.print(table("row", "skipped because", rows=rows))

    context.emit(outcome, draw)


async def _imported(
    engine: Holdfast, row: CachedRow, counts: Counter[str], *, dry_run: bool
) -> str:
    """Store a row, or return the reason why it is skipped."""
    ttl = None if row.expires_at is None else row.expires_at - time.time()
    if ttl is not None and ttl <= 0:
        return "it has expired"
    try:
        if row.is_answer:
            if not dry_run:
                await engine.answers.put(
                    row.question, row.signature or _IMPORTED, row.answer, ttl=ttl
                )
            counts["answers"] += 1
        else:
            if len(row.value) <= engine.options.rules.threshold:
                return "it is shorter than cite_threshold"
            if not dry_run:
                await engine.cite(row.value, tool=row.key)
            counts["contents"] += 1
    except (PrivacyError, StoreError) as error:
        return error.what
    return ""


_IMPORTED = "imported"
"""The context of imported answers without a context_signature."""


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


def _drawn(stored: list[StoredAnswer]) -> Any:
    now = time.time()
    rows = [
        (
            *(each.id[:_DIGITS], age(now - each.created_at), _left(each, now), f"{each.hits:,}"),
            "yes" if each.vector else "no",
            one_line(each.prompt),
            one_line(unpacked(each.answer).text),
        )
        for each in stored
    ]
    numbers = [Column(name, justify="right") for name in ("age", "left", "hits")]
    texts = (Column("question", ratio=1), Column("answer", ratio=1))
    return table("id", *numbers, "shared", *texts, rows=rows)


def _left(stored: StoredAnswer, now: float) -> str:
    if stored.expires_at is None:
        return "no limit"
    return age(stored.expires_at - now) if stored.expires_at > now else "expired"
