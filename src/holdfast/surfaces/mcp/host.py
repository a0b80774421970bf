"""The hosts: identity, requests to them, and notifications of changes.

Hosts of the newer protocol era get changes over a stream that they open, older ones over their
connection. A host is remembered only by its session id, while it can be reached.
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


async def _with_safe_errors(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Answer a request; unexpected exceptions are reported without their text."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):  # wrong parameters, which the SDK reports
        raise
    except HoldfastError as error:
        raise MCPError(types.INTERNAL_ERROR, str(error)) from error
    except Exception as error:
        raise MCPError(types.INTERNAL_ERROR, "Holdfast failed here; report it.") from error


class HostServer(Server[Any]):
    """The SDK's server with changing lists and errors without foreign text."""

    def __init__(self, name: str, **handlers: Any) -> None:
        super().__init__(name, **handlers)
        self.middleware.append(_with_safe_errors)

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return the SDK's options with all lists marked as changing."""
        changing = NotificationOptions(
            prompts_changed=True, resources_changed=True, tools_changed=True
        )
        return super().create_initialization_options(
            notification_options or changing, experimental_capabilities, extensions
        )


class ConnectedHost:
    """The host of one request."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.identity = identity_of(context)
        self.capabilities = context.session.client_capabilities

    @property
    def is_modern(self) -> bool:
        """Return whether it is of the era in which servers ask by their results."""
        return self._context.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def ask(self, request: types.ServerRequest, result: type[Any]) -> Any:
        """Forward a server's request to the host."""
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
        """Forward a server's notification about a request."""
        await self._context.session.send_notification(notification, self._context.request_id)

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Forward a server's progress; nothing if the host did not ask for progress."""
        await self._context.session.report_progress(progress, total, message)


def identity_of(context: Context) -> str:
    """Return the id of a host's session; over a pipe there is only one."""
    headers = getattr(context.request, "headers", None)
    if headers is None:
        return "pipe"
    return str(headers.get(_SESSION_HEADER) or f"request {id(context.request)}")


def resource_not_found(uri: str) -> MCPError:
    """Return the protocol's error for a missing resource."""
    return MCPError(-32002, "There is no such resource.", {"uri": uri[:2_000]})


class Audience:
    """All connected hosts, which are notified of changes."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        """For hosts of the newer era."""
        self._sessions: OrderedDict[str, Any] = OrderedDict()

    def register(self, context: Context) -> None:
        """Register a host of the older era, which is notified without a subscription."""
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        name = identity_of(context)
        self._sessions[name] = context.session
        self._sessions.move_to_end(name)
        while len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)

    async def changed(self, what: Changed) -> None:
        """Notify all hosts that a list has changed."""
        events: dict[Changed, tuple[ServerEvent, types.ServerNotification]] = {
            "tools": (ToolsListChanged(), types.ToolListChangedNotification()),
            "prompts": (PromptsListChanged(), types.PromptListChangedNotification()),
            "resources": (ResourcesListChanged(), types.ResourceListChangedNotification()),
        }
        event, notification = events[what]
        await self.bus.publish(event)
        await self.tell(notification)

    async def updated(self, notification: types.ResourceUpdatedNotification) -> None:
        """Notify all hosts that a resource has changed."""
        await self.bus.publish(ResourceUpdated(uri=notification.params.uri))
        await self.tell(notification)

    async def tell(self, notification: types.ServerNotification) -> None:
        """Notify the hosts of the older era; unreachable ones are forgotten."""
        for name, session in list(self._sessions.items()):
            try:
                await session.send_notification(notification)
            except Exception:  # noqa: BLE001 - the failure of one connection must not affect others
                self._sessions.pop(name, None)
