"""HTML that its content cannot break: text is escaped when it becomes HTML.

Functions create elements; their children are escaped unless they are elements. A text joined to an
element is a plain text again, so that a mistake shows tags on the page, never runs a script.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from html import escape
from typing import Any

_VOID = frozenset({"input", "link", "meta"})
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_UNSEEN = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff{_BIDI}]")


class Html(str):
    """Text that is HTML already; made in this module only."""

    __slots__ = ()


def text(value: object) -> Html:
    """Return a text as HTML; invisible characters and those that change the direction are named."""
    if isinstance(value, Html):
        return value
    return Html(escape(visible(str(value))))


def visible(value: str) -> str:
    """A text in which nothing is unseen: controls and marks of direction show as their number."""
    return _UNSEEN.sub(_named, value)


def _named(sign: re.Match[str]) -> str:
    code = ord(sign[0])
    if code == 0x0D:
        return ""  # a line ends at its line feed
    if code < 0x20:
        return chr(0x2400 + code)  # the pictures of control characters
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else f"⟨U+{code:04X}⟩"


def element(kind: str, /, *children: Any, **attributes: str | int | bool | None) -> Html:
    """An element around texts, numbers, elements, lists of them, and None for nothing.

    `class_` is `class`, `data_label` is `data-label`; False and None are left out. Names are the
    program's own; values and children may be anyone's.
    """
    attributes_text = "".join(
        f" {key.strip('_').replace('_', '-')}" + ("" if value is True else f'="{text(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if kind in _VOID:
        return Html(f"<{kind}{attributes_text}>")
    return Html(f"<{kind}{attributes_text}>{join(children)}</{kind}>")


def join(children: Iterable[Any]) -> Html:
    """Return elements and texts in sequence."""
    return Html("".join(map(_child, children)))


def _child(child: Any) -> str:
    if child is None:
        return ""
    if isinstance(child, (str, int)):
        return text(child)
    return join(child)


def maker(kind: str) -> Callable[..., Html]:
    """A function that makes one kind of element."""

    def make(*children: Any, **attributes: str | int | bool | None) -> Html:
        return element(kind, *children, **attributes)

    return make


a, code, dd, div, dl, dt = map(maker, ("a", "code", "dd", "div", "dl", "dt"))
h1, h2, h3, li, nav, p = map(maker, ("h1", "h2", "h3", "li", "nav", "p"))
pre, section, span, strong, ul = map(maker, ("pre", "section", "span", "strong", "ul"))
td, th, tr = map(maker, ("td", "th", "tr"))


def document(title: str, *body: Any, script: str = "") -> str:
    """Return a complete page; `script` is the address of our script, the only one allowed."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{title} · Holdfast"),
        element("link", rel="icon", href="/static/icon.svg"),
        element("link", rel="stylesheet", href="/static/style.css"),
        element("script", src=script, defer=True) if script else None,
    )
    return "<!doctype html>\n" + element("html", head, element("body", *body), lang="en")
