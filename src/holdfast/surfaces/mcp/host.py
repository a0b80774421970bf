"""The hosts that are served: who asks, what can be asked of them, and whom to tell of changes.

host: before gateway. Hosts of both eras are told when a list changes: those of the newer one over
the stream that they opened for it, older ones over the connection that they hold. A host is kept
only by its session's name, and no longer than it can be reached.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Literal

import mcp_types as types
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from holdfast.errors import HoldfastError

Changed = Literal["tools", "prompts", "resources"]
Context = ServerRequestContext[Any, Any]
_MOST_SESSIONS = 1_000
_SESSION_HEADER = "mcp-session-id"


async def _in_our_words(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Answer a request; an error that nobody wrote for a host is told without its text."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):  # the latter: wrong parameters, which the SDK tells
        raise
    except HoldfastError as error:
        raise MCPError(types.INTERNAL_ERROR, str(error)) from error
    except Exception as error:
        raise MCPError(types.INTERNAL_ERROR, "Holdfast failed here; report it.") from error


class HostServer(Server[Any]):
    """The SDK's server, which says that its lists may change whoever asks, and fails discreetly."""

    def __init__(self, name: str, **handlers: Any) -> None:
        super().__init__(name, **handlers)
        self.middleware.append(_in_our_words)

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """The same as the SDK's, with all lists changing."""
        changing = NotificationOptions(
            prompts_changed=True, resources_changed=True, tools_changed=True
        )
        return super().create_initialization_options(
            notification_options or changing, experimental_capabilities, extensions
        )


class AskingHost:
    """The host of one request."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.identity = identity_of(context)
        self.capabilities = context.session.client_capabilities

    @property
    def is_modern(self) -> bool:
        """Whether it is of the era in which servers ask by their answers."""
        return self._context.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def ask(self, request: types.ServerRequest, result: type[Any]) -> Any:
        """Put a server's question to it."""
        related = ServerMessageMetadata(related_request_id=self._context.request_id)
        try:
            return await self._context.session.send_request(request, result, metadata=related)
        except NoBackChannelError:
            return types.ErrorData(
                code=types.INVALID_REQUEST,
                message="This host is asked by results that require input, and the server cannot.",
            )
        except MCPError as error:
            return error.error

    async def tell(self, notification: types.ServerNotification) -> None:
        """Hand on what a server tells of its request."""
        await self._context.session.send_notification(notification, self._context.request_id)

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Hand on how far a server is; nothing if the host did not ask for that."""
        await self._context.session.report_progress(progress, total, message)


def identity_of(context: Context) -> str:
    """What tells hosts apart: the name of their session; over a pipe there is but one."""
    headers = getattr(context.request, "headers", None)
    if headers is None:
        return "pipe"
    return str(headers.get(_SESSION_HEADER) or f"request {id(context.request)}")


def no_resource(uri: str) -> MCPError:
    """The protocol's error for a resource that is not there."""
    return MCPError(-32002, "There is no such resource.", {"uri": uri[:2_000]})


class Audience:
    """All hosts that are connected, to be told of changes."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        """Of hosts of the newer era."""
        self._sessions: OrderedDict[str, Any] = OrderedDict()

    def note(self, context: Context) -> None:
        """Remember a host of the older era, which is told without having asked."""
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        name = identity_of(context)
        self._sessions[name] = context.session
        self._sessions.move_to_end(name)
        while len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)

    async def changed(self, what: Changed) -> None:
        """Tell everyone that a list is another now."""
        events: dict[Changed, tuple[ServerEvent, types.ServerNotification]] = {
            "tools": (ToolsListChanged(), types.ToolListChangedNotification()),
            "prompts": (PromptsListChanged(), types.PromptListChangedNotification()),
            "resources": (ResourcesListChanged(), types.ResourceListChangedNotification()),
        }
        event, notification = events[what]
        await self.bus.publish(event)
        await self.tell(notification)

    async def updated(self, notification: types.ResourceUpdatedNotification) -> None:
        """Tell everyone that a resource is another now."""
        await self.bus.publish(ResourceUpdated(uri=notification.params.uri))
        await self.tell(notification)

    async def tell(self, notification: types.ServerNotification) -> None:
        """Tell the hosts of the older era; who cannot be reached is forgotten."""
        for name, session in list(self._sessions.items()):
            try:
                await session.send_notification(notification)
            except Exception:  # noqa: BLE001 - whatever ended one connection is not another's
                self._sessions.pop(name, None)
