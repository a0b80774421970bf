"""How providers show a request to their models, and what each piece of it costs.

One file for each way of rendering; families choose theirs by name. Every renderer has two
functions: `envelope` for everything but the messages, `message` for one message. Both are sums over
blocks, so that what was counted once need not be counted again.
"""

from __future__ import annotations

from typing import Protocol

from holdfast.tokens.families import Constants
from holdfast.tokens.render import claude, gemini, openai, template
from holdfast.tokens.render.parts import Envelope
from holdfast.tokens.render.request import BareRequest, Surroundings, View
from holdfast.tokens.vocabulary import CountText


class Renderer(Protocol):
    """One way to show a request to a model; each is a module with these names."""

    def envelope(self, made: BareRequest, k: Constants, count: CountText) -> Envelope:
        """Tokens of everything but the messages."""

    def message(self, view: View, context: Surroundings, k: Constants, count: CountText) -> float:
        """Tokens of one message."""


_RENDERERS: dict[str, Renderer] = {"openai": openai, "claude": claude, "gemini": gemini}


def renderer(numbers: Constants) -> Renderer:
    """The renderer of a family."""
    return _RENDERERS.get(numbers.root, template)
