"""All condensers, and the choice between them.

kinds: after every condenser. Each is asked how sure it is, and the surest takes the content; among
equals the one named first. Other packages add theirs by an entry point in the group
`holdfast.condensers`; one that fails is passed over, so that it cannot keep a content from being
cited.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import TypeVar

from holdfast.condense import (
    code,
    csv_table,
    diff,
    email_list,
    entity,
    github_search,
    html,
    json_rows,
    json_tree,
    log,
    markdown,
    notion_page,
    sql_dump,
    stack_trace,
    test_output,
    text,
    web_search,
    xml,
)
from holdfast.condense.condenser import Condensed, Condenser, Passage
from holdfast.condense.source import Source

OURS: tuple[Condenser, ...] = (
    *(github_search, notion_page, web_search, email_list),
    *(entity, sql_dump, json_rows, json_tree, csv_table, xml),
    *(html, test_output, diff, stack_trace, markdown, log, code, text),
)
"""The built-in condensers, the most specific first."""

_OF_JSON: tuple[Condenser, ...] = (github_search, notion_page, entity, json_rows, json_tree)
_OF_MARKUP: tuple[Condenser, ...] = (xml, html)
"""Those that know nothing without a document, or without a first sign `<`: most contents are
plain text, and are not held against seven kinds that they cannot be."""
_OF_ALL_VALUES: tuple[Condenser, ...] = (
    github_search,
    notion_page,
    web_search,
    email_list,
    entity,
)
"""Those that look at every value of a document; one of very many is not held whole."""

ENTRY_POINTS = "holdfast.condensers"
"""The group of entry points under which other packages offer condensers; each names an object of
the shape of `Condenser`, a module or an instance."""

_log = logging.getLogger("holdfast.condense")
_T = TypeVar("_T")


class _Guarded:
    """Another package's condenser; where it fails, plain text takes its place."""

    def __init__(self, condenser: Condenser) -> None:
        self.kind = condenser.kind
        self._condenser = condenser

    def sniff(self, source: Source) -> float:
        return self._try(self._condenser.sniff, lambda _: 0.0, source)

    def condense(self, source: Source) -> Condensed:
        return self._try(self._condenser.condense, text.condense, source)

    def passages(self, source: Source) -> Sequence[Passage]:
        return self._try(self._condenser.passages, text.passages, source)

    def _try(
        self, theirs: Callable[[Source], _T], ours: Callable[[Source], _T], source: Source
    ) -> _T:
        try:
            return theirs(source)
        except Exception as error:  # noqa: BLE001 it is not our code: anything may happen
            # Its message might hold content, so only its type is reported.
            _log.warning("condenser %s failed: %s", self.kind, type(error).__name__)
            return ours(source)


@functools.cache
def condensers() -> tuple[Condenser, ...]:
    """Every condenser: other packages' first, for they know something special."""
    return (*_theirs(), *OURS)


def _theirs() -> list[Condenser]:
    plugins: list[Condenser] = []
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        try:
            plugins.append(_Guarded(point.load()))
        except Exception as error:  # noqa: BLE001 it is not our code: anything may happen
            _log.warning("condenser %s cannot be loaded: %s", point.name, type(error).__name__)
    return plugins


def condenser_for(source: Source, kind: str | None = None) -> Condenser:
    """The condenser of this kind if there is one, else the one that is surest of the content."""
    return (named(kind) if kind else None) or _surest(source)


def kind_of(source: Source) -> str:
    """The kind of a content, by its looks."""
    return _surest(source).kind


def named(kind: str) -> Condenser | None:
    """The condenser of a kind, if there is one."""
    return next((condenser for condenser in condensers() if condenser.kind == kind), None)


def _surest(source: Source) -> Condenser:
    document = source.document
    passed_over = _OF_JSON if document is None else () if document.is_whole else _OF_ALL_VALUES
    if not source.data[: html.SNIFFED].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        passed_over += _OF_MARKUP
    *special, best = condensers()  # anything is text, if it is nothing else
    score = 0.0
    for condenser in special:
        sure = 0.0 if condenser in passed_over else condenser.sniff(source)
        if sure > score:
            best, score = condenser, sure
        if score >= 1:
            break
    return best
