"""What a client switches with a request's headers, and what the answer's headers tell it.

switches: after routes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple, get_args

from holdfast.errors import ShapeError
from holdfast.fitting.options import OfferExpand

PREFIX = "x-holdfast-"
_ON = frozenset({"1", "true", "yes", "on"})
_OFF = frozenset({"0", "false", "no", "off", ""})
_LONGEST_SESSION = 200
_BUDGET = re.compile(r"0*[1-9][0-9]{0,8}")


class Switches(NamedTuple):
    """How one request is to be treated."""

    bypass: bool = False
    """Pass everything through, byte for byte."""
    read_only: bool = False
    """Count and say what would be done, but send the request as it is."""
    cite: bool = True
    """Put citations in the place of long tool results."""
    offer_expand: OfferExpand | None = None
    """When the tool that opens refs is offered; None is what the settings say."""
    limit: int | None = None
    """Most input tokens; None is what the settings say, else the model's own limit."""
    session: str = ""
    """Which conversation it is; empty: known by its beginning."""


def read_switches(headers: Mapping[str, str]) -> Switches:
    """The switches of a request, or ShapeError that names the header which is wrong."""
    budget = headers.get(f"{PREFIX}budget", "")
    if budget and not _BUDGET.fullmatch(budget):
        raise _bad("budget", "a whole number of tokens")
    session = headers.get(f"{PREFIX}session", "")
    if len(session) > _LONGEST_SESSION or not session.isprintable():
        raise _bad("session", f"at most {_LONGEST_SESSION} printable characters")
    return Switches(
        bypass=_is_on(headers, "bypass"),
        read_only=_is_on(headers, "read-only"),
        cite=not _is_on(headers, "no-cite"),
        offer_expand=_offer_expand(headers),
        limit=int(budget) if budget else None,
        session=session,
    )


def _is_on(headers: Mapping[str, str], name: str) -> bool:
    value = headers.get(PREFIX + name, "").strip().lower()
    if value in _ON:
        return True
    if value not in _OFF:
        raise _bad(name, "on or off")
    return False


def _offer_expand(headers: Mapping[str, str]) -> OfferExpand | None:
    value = headers.get(f"{PREFIX}offer-expand", "").strip().lower()
    choices: tuple[OfferExpand, ...] = get_args(OfferExpand)
    choice = next((choice for choice in choices if choice == value), None)
    if value and choice is None:
        raise _bad("offer-expand", "always, when_cited or never")
    return choice


def _bad(name: str, wanted: str) -> ShapeError:
    return ShapeError(
        "a header of the request is not what it should be",
        where=PREFIX + name,
        fix=f"Give {wanted}.",
    )
