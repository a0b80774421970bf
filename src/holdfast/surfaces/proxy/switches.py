"""Request headers that switch features, and response headers that report them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

import msgspec

from holdfast.cite import CitePolicy, CitingRules, ToolRule
from holdfast.errors import ShapeError
from holdfast.fitting.options import LazyMode, LazyRules, OfferExpand

PREFIX = "x-holdfast-"
_ON = frozenset({"1", "true", "yes", "on"})
_OFF = frozenset({"0", "false", "no", "off", ""})
_LONGEST_SESSION = 200
_TOKENS = re.compile(r"0*[1-9][0-9]{0,8}")
_SHARE = re.compile(r"0?\.[0-9]{1,6}|1(?:\.0{1,6})?")
_LONGEST_PATTERN = 200
_POLICIES: tuple[CitePolicy, ...] = get_args(CitePolicy)
AnswerSwitch = Literal["off", "exact", "semantic", "refresh"]
"""Never; for an equal request; also for a similar one; not now, but store the answer."""
_ANSWERS: dict[str, AnswerSwitch | None] = {
    **{each: each for each in get_args(AnswerSwitch)},
    **dict.fromkeys(("1", "true", "yes", "on"), "semantic"),
    **dict.fromkeys(("0", "false", "no"), "off"),
    "": None,
}
LazySwitch = LazyMode | int
"""The setting, never, or the tokens of tools from which schemas are hidden."""
Mode = Literal["fit", "assemble"]
"""How a request is made that holds a whole history."""


class Switches(NamedTuple):
    """How one request is to be treated."""

    bypass: bool = False
    """Pass everything through, byte for byte."""
    read_only: bool = False
    """Count and report the edits, but send the request unchanged."""
    cite: bool = True
    """Put citations in the place of long tool results."""
    offer_expand: OfferExpand | None = None
    """When `expand_ref` is offered; None for the setting."""
    limit: int | None = None
    """Maximum input tokens; None for the setting, else the model's own limit."""
    session: str = ""
    """Which conversation it is; empty: known by its beginning."""
    answers: AnswerSwitch | None = None
    """Use of the answer cache; None for the setting."""
    mode: Mode | None = None
    """The mode of the request; None for the setting."""
    lazy_tools: LazySwitch | None = None
    """When tool schemas are hidden: never, or above a number of tokens; None for the setting."""
    cite_policy: CitePolicy | None = None
    cite_tokens: int | None = None
    cite_share: float | None = None
    cite_repeats: bool | None = None
    cite_tools: tuple[tuple[str, ToolRule], ...] = ()
    """When results are cited, if different from the settings."""

    def citing(self, rules: CitingRules) -> CitingRules:
        """The rules of the settings, with what this request wants otherwise."""
        if self[-5:] == (None, None, None, None, ()):
            return rules
        return msgspec.structs.replace(
            rules,
            policy=self.cite_policy or rules.policy,
            tokens=self.cite_tokens or rules.tokens,
            share=self.cite_share or rules.share,
            repeats=rules.repeats if self.cite_repeats is None else self.cite_repeats,
            tools=self.cite_tools + rules.tools,
        )

    def deferring(self, rules: LazyRules) -> LazyRules:
        """The rules of the settings, with what this request wants otherwise."""
        if isinstance(self.lazy_tools, int):
            return msgspec.structs.replace(rules, mode="auto", tokens=self.lazy_tools)
        return msgspec.structs.replace(rules, mode=self.lazy_tools) if self.lazy_tools else rules


def read_switches(headers: Mapping[str, str]) -> Switches:
    """The switches of a request, or ShapeError that names the header which is wrong."""
    session = headers.get(f"{PREFIX}session", "")
    if len(session) > _LONGEST_SESSION or not session.isprintable():
        raise _bad("session", f"at most {_LONGEST_SESSION} printable characters")
    return Switches(
        bypass=_is_on(headers, "bypass"),
        read_only=_is_on(headers, "read-only"),
        cite=not _is_on(headers, "no-cite"),
        offer_expand=_offer_expand(headers),
        limit=_tokens(headers, "budget"),
        session=session,
        answers=_answers(headers),
        mode=_mode(headers),
        lazy_tools=_lazy(headers),
        cite_policy=_policy(headers),
        cite_tokens=_tokens(headers, "cite-tokens"),
        cite_share=_share(headers),
        cite_repeats=_repeats(headers),
        cite_tools=_tools(headers),
    )


def _tokens(headers: Mapping[str, str], name: str) -> int | None:
    tokens = headers.get(PREFIX + name, "")
    if tokens and not _TOKENS.fullmatch(tokens):
        raise _bad(name, "a whole number of tokens")
    return int(tokens) if tokens else None


def _policy(headers: Mapping[str, str]) -> CitePolicy | None:
    name = headers.get(f"{PREFIX}cite-policy", "").strip().lower()
    policy = next((policy for policy in _POLICIES if policy == name), None)
    if name and policy is None:
        raise _bad("cite-policy", "auto, always or never")
    return policy


def _share(headers: Mapping[str, str]) -> float | None:
    share = headers.get(f"{PREFIX}cite-share", "").strip()
    if share and not _SHARE.fullmatch(share):
        raise _bad("cite-share", "a share of the window, such as 0.02")
    return float(share) if share else None


def _repeats(headers: Mapping[str, str]) -> bool | None:
    return _is_on(headers, "cite-repeats") if headers.get(f"{PREFIX}cite-repeats") else None


def _tools(headers: Mapping[str, str]) -> tuple[tuple[str, ToolRule], ...]:
    """Rules as `Read=never, mcp__*=always, web_fetch=2000`."""
    rules = headers.get(f"{PREFIX}cite-tools", "")
    entries = [entry.rpartition("=") for entry in rules.split(",")] if rules.strip() else []
    return tuple((name.strip(), _rule(name.strip(), rule.strip())) for name, _, rule in entries)


def _rule(name: str, rule: str) -> ToolRule:
    if 0 < len(name) <= _LONGEST_PATTERN:
        if _TOKENS.fullmatch(rule):
            return int(rule)
        for policy in _POLICIES:
            if policy == rule.lower():
                return policy
    raise _bad("cite-tools", "rules such as Read=never, mcp__*=always, web_fetch=2000")


def _is_on(headers: Mapping[str, str], name: str) -> bool:
    value = headers.get(PREFIX + name, "").strip().lower()
    if value in _ON:
        return True
    if value not in _OFF:
        raise _bad(name, "on or off")
    return False


def _answers(headers: Mapping[str, str]) -> AnswerSwitch | None:
    value = headers.get(f"{PREFIX}answers", "").strip().lower()
    if value not in _ANSWERS:
        raise _bad("answers", "off, exact, semantic or refresh")
    return _ANSWERS[value]


def _mode(headers: Mapping[str, str]) -> Mode | None:
    value = headers.get(f"{PREFIX}mode", "").strip().lower()
    choices: tuple[Mode, ...] = get_args(Mode)
    choice = next((choice for choice in choices if choice == value), None)
    if value and choice is None:
        raise _bad("mode", "fit or assemble")
    return choice


def _lazy(headers: Mapping[str, str]) -> LazySwitch | None:
    """Such as `never`, or `12000`."""
    value = headers.get(f"{PREFIX}lazy-tools", "").strip().lower()
    if _TOKENS.fullmatch(value):
        return int(value)
    choices: tuple[LazyMode, ...] = get_args(LazyMode)
    choice = next((choice for choice in choices if choice == value), None)
    if value and choice is None:
        raise _bad("lazy-tools", "auto, never, or the tokens of tools from which on")
    return choice


def _offer_expand(headers: Mapping[str, str]) -> OfferExpand | None:
    value = headers.get(f"{PREFIX}offer-expand", "").strip().lower()
    choices: tuple[OfferExpand, ...] = get_args(OfferExpand)
    choice = next((choice for choice in choices if choice == value), None)
    if value and choice is None:
        raise _bad("offer-expand", "auto, always, when_cited or never")
    return choice


def _bad(name: str, wanted: str) -> ShapeError:
    return ShapeError(
        "a header of the request is not what it should be",
        where=PREFIX + name,
        fix=f"Give {wanted}.",
    )
