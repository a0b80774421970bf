"""Assemble a turn: intent, pack, header, working set, count; the last word of assemble.

assembler: after composing and shelves. No model is asked and nothing waits for one: what is known
of a session when its user speaks is what the turn is made of.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from holdfast.assemble.composing import Frame, compose, minimal
from holdfast.assemble.context import PLAIN, AssembleContextInput, AssembledContext
from holdfast.assemble.gathering import gather
from holdfast.assemble.header import HeaderParts, ToolIntent, header_of
from holdfast.assemble.intents import PACKS, TOKEN_BUDGET, detect_intent
from holdfast.assemble.shelves import SessionShelves
from holdfast.cite import CitingRules, count
from holdfast.errors import SettingsError
from holdfast.expand import recalling, tool
from holdfast.facts import Ledger
from holdfast.fitting.originals import Originals
from holdfast.store import Scope, Store
from holdfast.store.records import Edit

if TYPE_CHECKING:
    from holdfast.memory.memory import Memory

_MOST_HEADERS = 1_000
_CUT = Edit(
    action="shorten",
    what="cut the middle of the user's turn",
    why="it alone is more than the budget",
    where="user_turn",
)


class AssembleOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How turns are assembled; each field has the default that most want."""

    header: HeaderParts = HeaderParts()
    lists_tools: bool = True
    """Whether the header holds a directory of tools."""
    shows_facts: bool = True
    shows_refs: bool = True
    """Whether stored results are named by their refs, and the tool that opens them is offered."""
    tokens: int = TOKEN_BUDGET["total"]
    """Most input tokens of a turn, unless a call says otherwise."""
    rules: CitingRules = CitingRules()
    """What may be stored, and for how long, if the user's own turn must be cut."""


class Assembler:
    """Assembles the turns of one user in a workspace."""

    def __init__(
        self,
        memory: Memory,
        facts: Ledger,
        store: Store,
        scope: Scope,
        options: AssembleOptions | None = None,
        tools: Callable[[], Awaitable[tuple[ToolIntent, ...]]] | None = None,
    ) -> None:
        self.options = options or AssembleOptions()
        self._memory = memory
        self._facts = facts
        self._store = store
        self._scope = scope
        self._tools = tools
        """Who knows the tools of the directory, where the options name none."""
        self._headers: OrderedDict[str, HeaderParts] = OrderedDict()
        """What each session's header was made of when it began: tools that come and go must not
        change a prefix that the vendor has cached."""

    def shelves(self, session: str, opener: str) -> SessionShelves:
        """What is known of a session, as pieces of a turn."""
        options = self.options
        return SessionShelves(
            self._memory,
            self._facts if options.shows_facts else None,
            self._store if options.shows_refs and opener else None,
            self._scope.of(session),
            opener=opener,
            privacy=options.rules.privacy,
        )

    async def assemble(
        self, wanted: AssembleContextInput, *, model: str = "", dialect: str = PLAIN
    ) -> AssembledContext:
        """The turn that answers the user, within its budget as it is serialized.

        Raises:
            BudgetExceededError: not even the two ends of the user's turn fit.
        """
        if not wanted.session_id or not wanted.user_turn.strip():
            raise SettingsError(
                "a turn needs a session and something that the user says",
                where="session_id" if not wanted.session_id else "user_turn",
                fix="Name the session, and give the user's words.",
            )
        intent = wanted.intent or detect_intent(wanted.user_turn)
        pack = PACKS[intent]
        opener = tool.NAME if self.options.shows_refs else ""
        parts = await self._parts(wanted.session_id, refresh=wanted.force_refresh)
        header = header_of(
            parts,
            most=pack.header * wanted.token_budget // TOKEN_BUDGET["total"],
            recall=recalling.NAME,
            opener=opener,
            lists_tools=self.options.lists_tools,
        )
        frame = Frame(
            user_turn=wanted.user_turn,
            intent=intent,
            header=header,
            limit=wanted.token_budget,
            model=model,
            dialect=dialect,
            opener=opener,
            recall=recalling.NAME,
            tools=tuple(each.name for each in parts.tools) if header.directory else (),
        )
        shelves = self.shelves(wanted.session_id, opener)
        room = frame.limit - frame.around
        working = await gather(shelves, wanted.user_turn, wanted.topic_tags, pack, room)
        context = compose(frame, working)
        if context is None:
            context = minimal(frame, working, await self._kept(frame, wanted.session_id))
        return context

    async def _parts(self, session: str, *, refresh: bool) -> HeaderParts:
        if refresh or session not in self._headers:
            parts = self.options.header
            if self._tools is not None and self.options.lists_tools and not parts.tools:
                parts = msgspec.structs.replace(parts, tools=await self._tools())
            self._headers[session] = parts
            while len(self._headers) > _MOST_HEADERS:
                self._headers.popitem(last=False)
        self._headers.move_to_end(session)
        return self._headers[session]

    async def _kept(self, frame: Frame, session: str) -> str:
        """Where the user's turn is kept if it must be cut; empty if it need not, or may not be."""
        if not frame.opener or frame.least <= frame.limit:
            return ""
        originals = Originals(self.options.rules)
        data = frame.user_turn.encode("utf-8", "surrogatepass")
        ref = originals.keep("text", data, count(frame.user_turn))
        edit = msgspec.structs.replace(_CUT, ref_id=ref)
        if contents := originals.contents((), (edit,)):
            await self._store.put(self._scope.of(session), contents)
        return ref
