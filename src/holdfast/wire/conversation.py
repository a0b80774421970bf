"""A request as an immutable view over its raw bytes; each edit returns a new conversation.

A message keeps its original bytes and is parsed on demand. An edit rewrites the smallest JSON value
that changed and shares everything else, so that bytes already sent stay identical and the
provider's prompt cache stays valid.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from holdfast.errors import EditError
from holdfast.wire.blocks import (
    Block,
    Media,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from holdfast.wire.dialect import Dialect, Entry
from holdfast.wire.exchanges import Exchange, group
from holdfast.wire.frame import BodyFrame, take_apart
from holdfast.wire.json_places import Place, dotted
from holdfast.wire.message import CheckedMessages, Message
from holdfast.wire.rules.rule import CheckedMessage, Context, check_all, check_at
from holdfast.wire.strict import Limits, decode, encode, parse, splice, to_bytes

# Block types allowed in an inserted entry, by role.
_SAYS: dict[Role, tuple[type[Block], ...]] = {
    "system": (Text,),
    "user": (Text,),
    "assistant": (Text, ToolCall),
    "tool": (ToolResult,),
}


class Conversation:
    """A request with system text, tools and messages, as a view over its raw bytes."""

    __slots__ = (
        "__weakref__",
        "_body",
        "_dialect",
        "_exchanges",
        "_tools",
        "dialect",
        "even",
        "extends",
        "frame",
        "messages",
        "source",
        "written",
    )

    def __init__(  # noqa: PLR0913 - named arguments
        self,
        dialect: Dialect,
        frame: BodyFrame,
        messages: tuple[Message, ...],
        *,
        source: bytes | None = None,
        body: Any = None,
        tools: tuple[Tool, ...] | None = None,
        exchanges: tuple[Exchange, ...] | None = None,
        extends: tuple[Message, ...] = (),
        even: bool = True,
    ) -> None:
        self.dialect = dialect.NAME
        """Name of the dialect, such as `anthropic`."""
        self.frame = frame
        """Bytes around the messages."""
        self.messages = messages
        """All messages in order, including system messages in the list."""
        self.source = source
        """Bytes from which the request was parsed; None after an edit."""
        self.extends = extends
        """Messages of the previous request if they are a prefix of these; see `begins_with`."""
        self.even = even
        """Whether all gaps between messages are equal."""
        self.written: bytes | None = None
        """Bytes that were sent, if the request was edited; the next request may begin with them."""
        self._dialect = dialect
        self._body = body
        self._tools = tools
        self._exchanges = exchanges

    @property
    def rest(self) -> Any:
        """Return the body as a JSON value, with an empty message list."""
        if self._body is None:
            self._body = parse(self.frame.hollow)
        return self._body

    @property
    def model(self) -> str | None:
        """Return the model named in the body; None if the URL names it."""
        model = self._dialect.params(self.rest).get("model")
        return model if isinstance(model, str) else None

    @property
    def system(self) -> tuple[Block, ...]:
        """Return the system blocks, wherever the dialect puts them."""
        inside = (block for m in self.messages if m.role == "system" for block in m.blocks)
        return (*self._dialect.system(self.rest), *inside)

    @property
    def leading_system(self) -> tuple[Block, ...]:
        """Return the system blocks before the first other message."""
        leading = takewhile(lambda message: message.role == "system", self.messages)
        inside = (block for message in leading for block in message.blocks)
        return (*self._dialect.system(self.rest), *inside)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Return the tools that the request offers."""
        if self._tools is None:  # cached: some clients offer a hundred, and ten steps read them
            self._tools = self._dialect.tools(self.rest)
        return self._tools

    @property
    def tools_if_read(self) -> tuple[Tool, ...] | None:
        """Return the tools if they were parsed already, for a request with the same frame."""
        return self._tools

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Return the messages in groups that must move together."""
        if self._exchanges is None:
            self._exchanges = tuple(group(self.messages))
        return self._exchanges

    def begins_with(self, messages: tuple[Message, ...]) -> bool:
        """Return whether the first messages are these same objects.

        The previous request's messages are recognised by identity, because comparing 100,000
        pointers takes a millisecond.
        """
        return messages is self.extends or self.messages[: len(messages)] == messages

    def path(self, block: Block) -> str:
        """Return the path of a block from the root of the body: `$.messages[3].content[0]`."""
        if block.owner is None:
            return dotted(block.place)
        index = self._index(block.owner)
        return dotted((*self.message_place(index), *block.place))

    def __repr__(self) -> str:
        return f"<Conversation {self.dialect}, {len(self.messages)} messages>"

    # --- edits ---------------------------------------------------------------------------------

    def replace(self, block: Block, text: str) -> Conversation:
        """Replace the content of a text, a tool result, a call's arguments (JSON) or media.

        Thinking and opaque blocks are signed or unknown and cannot be edited.
        """
        return self.replace_all([(block, text)])

    def replace_all(self, changes: Iterable[tuple[Block, str]]) -> Conversation:
        """Replace several blocks, rewriting each message once."""
        changes = list(changes)
        self._refuse_nested([block for block, _ in changes])
        messages = list(self.messages)
        indices = {id(message): n for n, message in enumerate(messages)}
        hollow = self.frame.hollow
        touched: set[int] = set()
        for block, text in changes:
            new = encode(self._new_content(block, text))
            if block.owner is None:
                hollow = splice(hollow, block.slot, new)
            else:
                index = indices.get(id(block.owner))
                if index is None:
                    raise self._not_ours()
                span = splice(messages[index].span, block.slot, new)
                messages[index] = Message(span, block.owner.role, self._dialect)
                touched.add(index)
        frame = self.frame
        if hollow != frame.hollow:
            frame = self._frame_of(hollow)
        seams = {n for index in touched for n in (index, index + 1)}
        return self._edited(frame, tuple(messages), touched=touched, seams=seams)

    def drop(self, *exchanges: Exchange) -> Conversation:
        """Remove complete exchanges."""
        dropped: set[int] = set()
        for exchange in exchanges:
            if self.messages[exchange.start : exchange.stop] != exchange.messages:
                raise EditError(
                    "the exchange is not part of this conversation",
                    where=repr(exchange),
                    fix="Take exchanges from the conversation that you edit.",
                )
            dropped.update(range(exchange.start, exchange.stop))
        remaining = [i for i in range(len(self.messages)) if i not in dropped]
        if not remaining:
            raise EditError(
                "nothing would be left of the conversation",
                where=self._list_path,
                fix="Keep at least the latest user message.",
            )
        seams = {n for n, i in enumerate(remaining) if i > 0 and i - 1 in dropped}
        if len(self.messages) - 1 in dropped:
            seams.add(len(remaining))
        messages = tuple(self.messages[i] for i in remaining)
        return self._edited(self.frame, messages, touched=(), seams=seams)

    def insert(self, index: int, *messages: Entry | Mapping[str, Any]) -> Conversation:
        """Insert messages before the message at `index`, which must start an exchange.

        A message is a JSON value in this dialect, or an `Entry` to be written in it.
        """
        starts = {exchange.start for exchange in self.exchanges} | {len(self.messages)}
        if index not in starts:
            inside = 0 <= index < len(self.messages)
            raise EditError(
                "a message would stand between a call and its result"
                if inside
                else "there is no message at this index",
                where=dotted(self.message_place(index)),
                fix="Insert where an exchange starts: see Conversation.exchanges.",
            )
        new = tuple(
            new_message
            for n, message in enumerate(messages)
            for new_message in self._made(message, n)
        )
        if not all(exchange.complete for exchange in group(new)):
            raise EditError(
                "a call must be inserted together with its result",
                where=dotted(self.message_place(index)),
                fix="Insert whole exchanges.",
            )
        self._refuse_known_ids(new)
        listed_conversation = self._as_list()
        inserted = (
            *listed_conversation.messages[:index],
            *new,
            *listed_conversation.messages[index:],
        )
        touched = range(index, index + len(new))
        seams = range(index, index + len(new) + 1)
        return self._edited(listed_conversation.frame, inserted, touched=touched, seams=seams)

    def with_messages(
        self, messages: tuple[Message, ...], extends: tuple[Message, ...] = ()
    ) -> Conversation:
        """Return this request with other messages, unvalidated, for repair and conversion."""
        return Conversation(
            self._dialect,
            self.frame,
            messages,
            body=self._body,
            tools=self._tools,
            extends=extends,
        )

    def with_frame(self, frame: BodyFrame) -> Conversation:
        """Return these messages in another frame, without validation."""
        return Conversation(
            self._dialect,
            frame,
            self.messages,
            exchanges=self._exchanges,
            extends=self.extends,
        )

    def with_field(self, name: str, value: Any) -> Conversation:
        """Return this request with one field of its body set, without validation."""
        return self.with_body(splice(self.frame.hollow, (name,), encode(value)))

    def with_body(self, hollow: bytes) -> Conversation:
        """Return these messages in another body, given without messages; no validation."""
        return self.with_frame(self._frame_of(hollow))

    # --- helpers for edits ------------------------------------------------------------------------

    def _frame_of(self, hollow: bytes) -> BodyFrame:
        """Return the frame of another body without messages, with this request's gap."""
        frame, _ = take_apart(hollow, self._dialect)
        return msgspec.structs.replace(frame, gap=self.frame.gap)

    def _new_content(self, block: Block, text: str) -> Any:
        slotted = bool(block.slot) or (isinstance(block, Text) and self.frame.bare)
        if not (isinstance(block, (Text, ToolResult, ToolCall, Media)) and slotted):
            raise EditError(
                f"a {type(block).__name__.lower()} block cannot be edited",
                where=self.path(block),
                fix="Drop its exchange instead.",
            )
        try:
            text.encode()
        except UnicodeEncodeError:
            raise EditError(
                "the new text holds a lone surrogate",
                where=self.path(block),
                fix="Cut text between characters.",
            ) from None
        return self._dialect.content(block, text)

    def _refuse_nested(self, blocks: list[Block]) -> None:
        """Raise if a tool result and its part are replaced together: one change would be lost."""
        slots = {(id(block.owner), block.slot) for block in blocks}
        for block in blocks:
            holders = (block.slot[:n] for n in range(1, len(block.slot)))
            if any((id(block.owner), holder) in slots for holder in holders):
                raise EditError(
                    "a block and the block that holds it cannot be replaced at once",
                    where=self.path(block),
                    fix="Replace one of the two.",
                )

    def _made(self, message: Entry | Mapping[str, Any], number: int) -> list[Message]:
        """Return the messages to insert, written in this dialect."""
        where = dotted((number,), root="insert")
        role = message.role if isinstance(message, Entry) else None
        if isinstance(message, Entry):
            if not all(isinstance(block, _SAYS[message.role]) for block in message.blocks):
                raise EditError(
                    f"a block is not what an entry of role {message.role} is made of",
                    where=where,
                    fix="A tool gives results, the assistant text and calls, all others text.",
                )
            values = self._dialect.compose([message])
        else:
            values = [message]
        new_messages = []
        for value in values:
            span = to_bytes(value, Limits())
            new_messages.append(Message(span, self._dialect.check(decode(span), ()), self._dialect))
        if role == "system" and any(new.role != "system" for new in new_messages):
            raise EditError(
                "this dialect has no system messages among the others",
                where=where,
                fix="Replace a block of Conversation.system instead.",
            )
        return new_messages

    def _edited(
        self,
        frame: BodyFrame,
        messages: tuple[Message, ...],
        *,
        touched: Collection[int],
        seams: Collection[int],
    ) -> Conversation:
        """Return the edited conversation; raise if the edit breaks a rule obeyed before."""
        edited = Conversation(self._dialect, frame, messages)
        if frame is self.frame:
            edited._body, edited._tools = self._body, self._tools
        for violation in check_at(edited.seen(), edited.context(), touched=touched, seams=seams):
            if violation.rule not in {old.rule for old in check_all(self.seen(), self.context())}:
                raise EditError(
                    f"the edit would break rule {violation.rule}: {violation.message}",
                    where=violation.path,
                    fix="Choose another edit, or edit more at once.",
                )
        return edited

    def _refuse_known_ids(self, new: tuple[Message, ...]) -> None:
        fresh = {call.id for message in new for call in message.calls} - {""}
        if fresh and any(call.id in fresh for message in self.messages for call in message.calls):
            raise EditError(
                "a call with the same id is in the conversation already",
                where=self._list_path,
                fix="Give inserted calls ids of their own.",
            )

    def _as_list(self) -> Conversation:
        """Return this conversation with a message list, if the body has a single string instead."""
        if not self.frame.bare:
            return self
        entry = Entry("user", self.messages[0].blocks)
        [value] = self._dialect.compose([entry])
        frame = msgspec.structs.replace(
            self.frame,
            head=self.frame.head + b"[",
            tail=b"]" + self.frame.tail,
            bare=False,
        )
        message = Message(encode(value), "user", self._dialect)
        return Conversation(self._dialect, frame, (message,))

    def _index(self, message: Message) -> int:
        try:
            return self.messages.index(message)  # compares by identity
        except ValueError:
            raise self._not_ours() from None

    def _not_ours(self) -> EditError:
        return EditError(
            "the block is not part of this conversation",
            where=self._list_path,
            fix="Take blocks from the conversation that you edit.",
        )

    @property
    def _list_path(self) -> str:
        return dotted(self.frame.place)

    def message_place(self, index: int) -> Place:
        """Return the position of a message in the body."""
        return self.frame.place if self.frame.bare else (*self.frame.place, index)

    # --- input of the rules
    # ------------------------------------------------------------------------

    def context(self, model: str | None = None) -> Context:
        """Return what rules need besides the messages."""
        return Context(
            self.dialect,
            model or self.model or "",
            self.rest,
            self.frame.place,
            len(self.source or b""),
        )

    def seen(self) -> Sequence[CheckedMessage]:
        """Return the messages as rules read them, parsed on demand."""
        return CheckedMessages(self.messages, self.message_place)
