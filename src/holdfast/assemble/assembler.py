"""Assemble a turn: detect the intent, write the header, gather the working set, count.

No model is called and nothing waits for one: a turn uses what is known when its user speaks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from holdfast.assemble.composition import TurnFrame, compose, compose_minimal
from holdfast.assemble.context import PLAIN, AssembleContextInput, AssembledContext
from holdfast.assemble.context_sections import SessionSections
from holdfast.assemble.header import HeaderParts, ToolIntent, build_header
from holdfast.assemble.intents import SECTION_BUDGETS, TOKEN_BUDGET, detect_intent
from holdfast.assemble.working_set_builder import gather
from holdfast.cite import CitingRules, count
from holdfast.errors import SettingsError
from holdfast.expand import tool, turn_recall
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
    """Settings for assembled turns."""

    header: HeaderParts = HeaderParts()
    lists_tools: bool = True
    """Whether the header has a directory of tools."""
    shows_facts: bool = True
    shows_refs: bool = True
    """Whether stored results are listed with their refs and the tool that opens them."""
    tokens: int = TOKEN_BUDGET["total"]
    """Maximum input tokens of a turn, unless a call sets its own budget."""
    rules: CitingRules = CitingRules()
    """What may be stored, and for how long, if the user's own turn must be cut."""


class Assembler:
    """Assembles the turns of one user in one workspace."""

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
        """Returns the tools of the directory if the options name none."""
        self._headers: OrderedDict[str, HeaderParts] = OrderedDict()
        """Each session's header parts from its first turn: a change of the tools must not change a
        prefix that the provider has cached."""

    def sections(self, session: str, opener: str) -> SessionSections:
        """Return the source of a session's context pieces."""
        options = self.options
        return SessionSections(
            self._memory,
            self._facts if options.shows_facts else None,
            self._store if options.shows_refs and opener else None,
            self._scope.of(session),
            opener=opener,
            privacy=options.rules.privacy,
        )

    async def assemble(
        self, request: AssembleContextInput, *, model: str = "", dialect: str = PLAIN
    ) -> AssembledContext:
        """Return the turn that answers the user, within its budget as it is serialized.

        Raises:
            BudgetExceededError: if not even the two ends of the user's turn fit.
        """
        if not request.session_id or not request.user_turn.strip():
            raise SettingsError(
                "a turn needs a session and a user message",
                where="session_id" if not request.session_id else "user_turn",
                fix="Name the session, and give the user's words.",
            )
        intent = request.intent or detect_intent(request.user_turn)
        budgets = SECTION_BUDGETS[intent]
        opener = tool.NAME if self.options.shows_refs else ""
        parts = await self._parts(request.session_id, refresh=request.force_refresh)
        header = build_header(
            parts,
            most=budgets.header * request.token_budget // TOKEN_BUDGET["total"],
            recall=turn_recall.NAME,
            opener=opener,
            lists_tools=self.options.lists_tools,
        )
        frame = TurnFrame(
            user_turn=request.user_turn,
            intent=intent,
            header=header,
            limit=request.token_budget,
            model=model,
            dialect=dialect,
            opener=opener,
            recall=turn_recall.NAME,
            tools=tuple(each.name for each in parts.tools) if header.directory else (),
        )
        sections = self.sections(request.session_id, opener)
        available = frame.limit - frame.around
        working = await gather(sections, request.user_turn, request.topic_tags, budgets, available)
        context = compose(frame, working)
        if context is None:
            context = compose_minimal(
                frame, working, await self._keep_turn(frame, request.session_id)
            )
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

    async def _keep_turn(self, frame: TurnFrame, session: str) -> str:
        """Return the user's turn's ref if it must be cut and may be stored; else an empty text."""
        if not frame.opener or frame.least <= frame.limit:
            return ""
        originals = Originals(self.options.rules)
        data = frame.user_turn.encode("utf-8", "surrogatepass")
        ref = originals.keep("text", data, count(frame.user_turn))
        edit = msgspec.structs.replace(_CUT, ref_id=ref)
        if contents := originals.contents((), (edit,)):
            await self._store.put(self._scope.of(session), contents)
        return ref
