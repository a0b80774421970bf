"""OpenAI Agents SDK: a durable session, a filter that makes every call fit, and a tool wrapper.

`RunConfig(call_model_input_filter=holdfast)` sees each call, and `holdfast.tool` among the agent's
tools lets the model open citations. Without that tool nothing is cited.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from holdfast.extras import missing_extra

try:
    from agents import FunctionTool, TResponseInputItem
    from agents.memory.session import SessionABC
    from agents.memory.session_settings import (
        SessionSettings,
        coerce_session_settings,
        resolve_session_limit,
    )
    from agents.run_config import CallModelData, ModelInputData
except ImportError as error:
    raise missing_extra("openai-agents", error) from error

from holdfast.engine import Holdfast
from holdfast.errors import StoreConflictError
from holdfast.expand.tool import DESCRIPTION, NAME, PARAMETERS
from holdfast.fitting import FitOptions
from holdfast.integrations._agents_items import Items, declare_handoff, declare_tool, model_of
from holdfast.integrations._host import Host
from holdfast.integrations._session import Threads
from holdfast.settings import Settings
from holdfast.store import Scope
from holdfast.store.journal import JournalEntry

_POP = b"null"
"""A journal entry that removes the last item; items are objects."""


class HoldfastSession(SessionABC):
    """The items of a conversation in a journal of the store, which outlive the process."""

    def __init__(
        self,
        session_id: str,
        store: Host | Holdfast | str | None = None,
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        settings: Settings | None = None,
        scope: Scope | None = None,
    ) -> None:
        """Keep a conversation under its id in the store at a URL."""
        self.session_id = session_id
        self.session_settings = coerce_session_settings(session_settings or SessionSettings())
        self.host = (
            store if isinstance(store, Host) else Host(store, settings=settings, scope=scope)
        )
        self._journal = f"openai-agents:{session_id}"

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return all items in order, or the last ones."""
        most = resolve_session_limit(limit, self.session_settings)
        items, _ = _items(await self.host.wait(self._entries))
        return items if most is None or most < 0 else items[len(items) - min(most, len(items)) :]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items, all or none."""
        entries = [json.dumps(item).encode() for item in items]
        if entries:
            await self.host.wait(
                lambda engine: engine.store.journal.append(engine.scope, self._journal, entries)
            )

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the last item."""
        return await self.host.wait(self._pop)

    async def clear_session(self) -> None:
        """Delete all items."""
        await self.host.wait(
            lambda engine: engine.store.journal.forget(engine.scope, self._journal)
        )

    async def _entries(self, engine: Holdfast) -> list[JournalEntry]:
        return await engine.store.journal.read(engine.scope, self._journal)

    async def _pop(self, engine: Holdfast) -> TResponseInputItem | None:
        while True:
            items, following = _items(await self._entries(engine))
            if not items:
                return None
            journals, name = engine.store.journal, self._journal
            try:  # if two tasks pop at once, one retries with the item before
                await journals.append(engine.scope, name, [_POP], expect=following)
            except StoreConflictError:
                continue
            return items[-1]


def _items(entries: Sequence[JournalEntry]) -> tuple[list[TResponseInputItem], int]:
    """Return the remaining items of a journal and the sequence number of the next entry."""
    items: list[TResponseInputItem] = []
    for entry in entries:
        if entry.data == _POP:
            del items[-1:]
        else:
            items.append(json.loads(entry.data))
    return items, entries[-1].sequence + 1 if entries else 1


class HoldfastFilter:
    """Makes every call of a run fit: `RunConfig(call_model_input_filter=…)`."""

    def __init__(
        self,
        store: Host | Holdfast | str | None = None,
        *,
        limit: int | None = None,
        model: str = "",
        options: FitOptions | None = None,
        settings: Settings | None = None,
        scope: Scope | None = None,
    ) -> None:
        """Keep calls within `limit` input tokens; by default, the model's limit."""
        self.host = (
            store if isinstance(store, Host) else Host(store, settings=settings, scope=scope)
        )
        self._threads = Threads(self.host, Items(), limit=limit, options=options)
        self._model = model
        self.tool = FunctionTool(
            name=NAME,
            description=DESCRIPTION,
            params_json_schema=PARAMETERS,
            on_invoke_tool=lambda _, arguments: self._threads.aexpand(arguments),
            strict_json_schema=False,
        )
        """Opens citations and folds: add it to the agent's tools."""

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """Return a model input that fits."""
        agent, model_input = data.agent, data.model_data
        tools = [*map(declare_tool, agent.tools), *map(declare_handoff, agent.handoffs)]
        around: dict[str, Any] = {"model": self._model or model_of(agent), "tools": tools}
        if model_input.instructions:
            around["instructions"] = model_input.instructions
        opens = any(tool.name == NAME for tool in agent.tools)
        fit = await self._threads.afit(model_input.input, around, opens=opens)
        self._threads.observe(fit)
        return ModelInputData(input=fit.messages, instructions=model_input.instructions)

    def cites(self, tool: FunctionTool) -> FunctionTool:
        """Return a tool whose long results are cited before the run stores them.

        It keeps the stored history small; the filter does not need it.
        """

        async def invoke(context: Any, arguments: str) -> Any:
            result = await tool.on_invoke_tool(context, arguments)
            if not isinstance(result, str):
                return result
            return await self._threads.acite(result, tool.name)

        return dataclasses.replace(tool, on_invoke_tool=invoke)
