"""Which calls of an answer are for tools that we put into the request.

own_tools: beneath expansions; the proxy and the client ask it. Models write a tool's name in other
ways than it was offered: `Expand_Ref`, `functions.expand_ref`, `default_api:expand_ref`. A client
that gets such a call knows no such tool, and the turn fails. So they count as ours, unless the
client offers a tool of a similar name itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from holdfast.wire import Conversation
from holdfast.wire.tools import offered_tools

_PREFIX = re.compile(r"[.:/]")
"""What parts a name from the group that a model puts it into."""
_LONGEST_NAME = 200


class OwnTools:
    """The tools that were sent with a request and are not the client's own."""

    def __init__(self, names: Collection[str] = (), client_names: Iterable[str] = ()) -> None:
        self.names = frozenset(names)
        self._client_names = frozenset(client_names) if self.names else frozenset()
        taken = set(map(_folded, self._client_names))
        self._by_folded = {_folded(name): name for name in self.names if _folded(name) not in taken}

    def name_of(self, called: str) -> str:
        """Return the name of our tool that a call means; empty if it means none."""
        if called in self.names:
            return called
        if not self.names or called in self._client_names or len(called) > _LONGEST_NAME:
            return ""
        return self._by_folded.get(_folded(called), "")

    def __contains__(self, called: str) -> bool:
        return bool(self.name_of(called))


def added_tools(asked: Conversation, sent: Conversation, known: Collection[str] = ()) -> OwnTools:
    """Return the tools of a request that are not the client's; of `known` names, if any are given.

    A client may have 10,000 tools: call this off the event loop.
    """
    theirs = {tool.name for tool in offered_tools(asked)}
    ours = {tool.name for tool in offered_tools(sent)} - theirs
    return OwnTools(ours & set(known) if known else ours, theirs)


def _folded(name: str) -> str:
    """Return a name without its group, case and separators."""
    return _PREFIX.split(name[:_LONGEST_NAME])[-1].replace("_", "").replace("-", "").lower()
