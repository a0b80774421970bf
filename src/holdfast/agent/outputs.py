"""Tool outputs outside of the conversation: stored, with a citation in their place (C43).

outputs: beside tools; what the guard keeps outputs with. A citation is short, quotes what matters
and says how to open the rest; the original is durable before it is shown.
"""

from __future__ import annotations

from collections.abc import Awaitable

from holdfast.cite import Citation, cite
from holdfast.engine import Holdfast

_LARGE = 16_000
"""Characters from which on a content is cited off the event loop, before the guard looks at it."""


class CitedOutputs:
    """Keeps outputs in the engine's store."""

    def __init__(self, engine: Holdfast, session: str) -> None:
        self._engine = engine
        self._session = session
        self._citations: dict[str, Citation] = {}

    async def prepare(self, output: str, tool: str) -> None:
        """Cite a large output now, where that holds nobody up."""
        if len(output) >= _LARGE:
            citation = await self._engine.cite(output, tool=tool, session=self._session)
            self._citations[output] = citation

    def handle(self, output: str) -> str:
        """The citation of an output."""
        if output not in self._citations:
            self._citations[output] = cite(output, rules=self._engine.options.rules)
        return self._citations[output].text

    def keep(self, output: str) -> Awaitable[None] | None:
        """Store the original behind its citation."""
        return self._keep(output)

    async def _keep(self, output: str) -> None:
        self.handle(output)
        content = self._citations[output].content
        if content is not None:
            scope = self._engine.scope.of(self._session)
            await self._engine.store.put(scope, [content])

    def forget(self, output: str) -> None:
        """Let go of what was only needed for a moment."""
        self._citations.pop(output, None)
