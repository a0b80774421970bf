"""Token counts of a request as providers render it for their models.

Each module implements one rendering, and a model's family selects it. A renderer has two functions,
`envelope` for everything except the messages and `message` for one message; both are sums over
blocks, so that partial counts can be cached.
"""

from __future__ import annotations

from typing import Protocol

from holdfast.tokens.families import Constants
from holdfast.tokens.render import claude, gemini, openai, template
from holdfast.tokens.render.parts import Envelope
from holdfast.tokens.render.request import MessageView, NeighbourFacts, RequestFrame
from holdfast.tokens.vocabulary import CountText


class Renderer(Protocol):
    """A rendering of requests; each implementation is a module with these functions."""

    def envelope(self, request: RequestFrame, k: Constants, count: CountText) -> Envelope:
        """Return the tokens of everything except the messages."""

    def message(
        self, view: MessageView, context: NeighbourFacts, k: Constants, count: CountText
    ) -> float:
        """Return the tokens of one message."""


_RENDERERS: dict[str, Renderer] = {"openai": openai, "claude": claude, "gemini": gemini}


def renderer(numbers: Constants) -> Renderer:
    """Return the renderer of a family."""
    return _RENDERERS.get(numbers.root, template)
