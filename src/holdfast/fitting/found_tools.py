"""Tools that a model has found, and their loading by the provider.

Search results are text, definition by definition, which serves every model. If the provider hides
the schemas itself, references replace this text, and the provider shows the definitions of the
request. The text is recorded with a turn, so that a session can continue with a model, or at an
address, without references.
"""

from __future__ import annotations

from collections.abc import Collection

from holdfast.expand.tool_search import FINDERS, offered_pair
from holdfast.fitting.draft import Draft, because
from holdfast.fitting.options import FitOptions
from holdfast.fitting.state import FitState
from holdfast.wire import Conversation
from holdfast.wire.deferred_tools import deferred_names, loaded_names, loads_tools, with_references
from holdfast.wire.responses.shared import load
from holdfast.wire.values import take


def holds_back(sent: Conversation) -> bool:
    """Whether the provider was asked to hold schemas back, and by us: a client may do so itself."""
    return bool(deferred_names(sent)) and offered_pair(sent) is not None


def goes_on(state: FitState, asked: Conversation, options: FitOptions, model: str) -> bool:
    """Return whether the last request can be sent again, with regard to its loaded tools.

    Another model or address may not support references; and a reference to a removed tool is
    refused.
    """
    if not holds_back(state.sent):
        return True
    able = options.lazy.native and loads_tools(asked, model)
    return able and loaded_names(state.sent) <= {tool.name for tool in asked.tools}


def load_found(request: Conversation, start: int, names: Collection[str]) -> Conversation:
    """Return the request with references for search results, from a message on."""
    messages = list(request.messages)
    searches: set[str] = set()
    for n, message in enumerate(messages[start:], start):
        searches.update(call.id for call in message.calls if call.name in FINDERS)
        results = (result for result in message.results if result.call_id in searches)
        tools = {result.call_id: _named(result.text, names) for result in results}
        if any(tools.values()):
            messages[n] = with_references(message, tools)
    return request.with_messages(tuple(messages))


def loaded_in(draft: Draft) -> Draft:
    """Return the request in which the provider loads tools that were found since the last one."""
    names = {tool.name for tool in draft.asked.tools}
    explain = because(
        "defer",
        "had the provider load the tools that were found",
        "it has their schemas, and the model calls them by their names",
        lambda _: 0,  # it saves no tokens: the model sees the same definitions
    )
    return draft.changed(load_found(draft.now, draft.known, names), explain)


def _named(told: str, names: Collection[str]) -> list[str]:
    """Return the tools in a search result, each in a line; other text names no tools."""
    told_names = (take(load(line.encode()), "name") for line in told.splitlines())
    return [name for name in dict.fromkeys(told_names) if name in names]
