"""Google ADK: a plugin that makes the requests of all agents of an app fit.

ADK builds each request from its session's events, so that editing a request changes nothing in ADK.
Contents are Gemini's for any model. Each user of an app has a separate scope.

    app = App(name="logs", root_agent=agent, plugins=[HoldfastPlugin("sqlite:///work.db")])
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from holdfast.extras import missing_extra

try:
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.base_tool import BaseTool
    from google.genai import types
except ImportError as error:
    raise missing_extra("google-adk", error) from error

from holdfast.engine import Holdfast
from holdfast.errors import HoldfastError
from holdfast.expand.tool import DESCRIPTION, NAME, PARAMETERS
from holdfast.fitting import FitOptions
from holdfast.integrations._adk_request import (
    BY_PARTS,
    ContentForm,
    around_of,
    usage_of,
    withhold,
)
from holdfast.integrations._host import Host, log
from holdfast.integrations._session import Fit, Threads
from holdfast.store import Scope

if TYPE_CHECKING:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.tools.tool_context import ToolContext

_MOST_USERS = 1_000
_MOST_CHARACTERS = 200
"""Maximum length of a name in a scope."""


class HoldfastPlugin(BasePlugin):
    """Fits each request of an app's agents and answers calls that open citations."""

    def __init__(
        self,
        store: Holdfast | str | None = None,
        *,
        limit: int | None = None,
        options: FitOptions | None = None,
        name: str = "holdfast",
    ) -> None:
        """Fit requests to `limit` input tokens; by default, to the model's limit."""
        super().__init__(name)
        self.host = Host(store)
        self._limit, self._options = limit, options
        self._users: OrderedDict[Scope, Threads[types.Content]] = OrderedDict()
        self._sent: dict[str, tuple[Threads[types.Content], Fit[types.Content]]] = {}
        """Requests without an answer yet, by session and agent."""

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Make the request fit; contents that cannot be stored stay in it."""
        try:
            threads = await self._user_threads(callback_context)
        except HoldfastError as error:
            log.warning("a call goes out as it is: %s", error)
            return None
        name = _session_name(callback_context)
        if NAME not in llm_request.tools_dict:
            llm_request.append_tools([_ExpandRef(threads)])
        fit = await threads.afit(llm_request.contents, around_of(llm_request), name)
        llm_request.contents = fit.messages
        if fit.tools is not None:
            withhold(llm_request, fit.tools)
        self._sent[name] = threads, fit
        return None

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Record the request; a stream reports its usage with its last part."""
        if not llm_response.partial:
            threads, fit = self._sent.pop(_session_name(callback_context), (None, None))
            if threads is not None and fit is not None:
                threads.observe(fit, usage_of(llm_response))
        return None

    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> LlmResponse | None:
        """Drop a failed request without recording it."""
        self._sent.pop(_session_name(callback_context), None)
        return None

    async def close(self) -> None:
        """Finish recording and close the store; the runner calls this at its end."""
        await self.host.await_background()
        self.host.close()

    async def _user_threads(self, context: CallbackContext | ToolContext) -> Threads[types.Content]:
        """Return the conversations of a user of an app; other users cannot open their citations."""
        session = context.session
        scope = Scope(session.user_id[:_MOST_CHARACTERS], session.app_name[:_MOST_CHARACTERS])
        if scope not in self._users:

            async def work(engine: Holdfast) -> Threads[types.Content]:
                host = Host(await engine.of(scope))
                return Threads(
                    host, ContentForm(), limit=self._limit, options=self._options, memo=BY_PARTS
                )

            self._users[scope] = await self.host.wait(work)
            if len(self._users) > _MOST_USERS:
                self._users.popitem(last=False)
        return self._users[scope]


class _ExpandRef(BaseTool):
    """The tool that opens refs, as ADK runs it."""

    def __init__(self, threads: Threads[types.Content]) -> None:
        super().__init__(name=NAME, description=DESCRIPTION)
        self._threads = threads

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=PARAMETERS
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> str:
        """Open the requested part."""
        return await self._threads.aexpand(args)


def _session_name(context: CallbackContext) -> str:
    """Return a name per agent: each agent of an app sees the session's events differently."""
    names = (context.session.id, context.agent_name, context.branch or "")
    return "/".join(filter(None, names))[-_MOST_CHARACTERS:]
