"""Rules of Bedrock's Converse API, from its error texts in public issues."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from holdfast.wire.blocks import ToolResult
from holdfast.wire.converse import NAME as CONVERSE
from holdfast.wire.converse import request
from holdfast.wire.rules.common import at, blank, has_content
from holdfast.wire.rules.rule import CheckedMessage, Context, Finding, rule

B1 = rule(
    "B1",
    CONVERSE,
    "Every toolUse is answered by a toolResult in the next message.",
    source="agno#6698, 'Expected toolResult blocks at messages.2.content'",
)


@B1.seam
def every_call_is_answered_next(
    before: CheckedMessage | None, after: CheckedMessage | None, context: Context
) -> Iterator[Finding]:
    if before is None or not before.calls:
        return
    answered = {result.call_id for result in after.results} if after else set()
    for call in before.calls:
        if call.id not in answered:
            yield at(before, call), "the call has no toolResult in the next message"


B2 = rule(
    "B2",
    CONVERSE,
    "Every toolResult has its toolUse in the message before.",
    source="pydantic-ai#2327, 'number of toolResult blocks exceeds the number of toolUse blocks'",
)


@B2.seam
def every_result_follows_its_call(
    before: CheckedMessage | None, after: CheckedMessage | None, context: Context
) -> Iterator[Finding]:
    if after is None or not after.results:
        return
    call_ids = {call.id for call in before.calls} if before else set()
    for result in after.results:
        if result.call_id not in call_ids:
            yield at(after, result), "the message before has no toolUse with this id"


B3 = rule(
    "B3",
    CONVERSE,
    "The user begins. That speakers must alternate (langchain-aws#130) is no longer so: recorded "
    "requests with two user messages in a row were answered.",
    source="dify#12340, 'A conversation must start with a user message'",
)


@B3.ends
def the_user_begins(messages: Sequence[CheckedMessage], context: Context) -> Iterator[Finding]:
    if messages and messages[0].role != "user":
        yield messages[0].place, "the conversation does not start with the user"


B4 = rule(
    "B4",
    CONVERSE,
    "There is a message, none is empty, and no text is blank.",
    source="OpenHands#5339, 'The text field in the ContentBlock object is blank'; archestra#4220",
)


@B4.message
def text_is_not_blank(message: CheckedMessage, context: Context) -> Iterator[Finding]:
    if not message.blocks:
        yield (*message.place, "content"), "the message is empty"
    for block in message.blocks:
        for part in block.parts if isinstance(block, ToolResult) else (block,):
            if blank(part):
                yield at(message, part), "the text is empty or only white space"


@B4.body
def messages_are_not_empty(
    messages: Sequence[CheckedMessage], context: Context
) -> Iterator[Finding]:
    if not messages:
        yield context.list_place, "there is no message"


B5 = rule(
    "B5",
    CONVERSE,
    "A toolResult with status error says what went wrong.",
    source="sample-multi-agent-orchestration-chat-on-agentcore#15, 'cannot be empty when status'",
)


@B5.message
def errors_have_text(message: CheckedMessage, context: Context) -> Iterator[Finding]:
    for result in message.results:
        if result.is_error and not has_content(result):
            yield at(message, result), "the status is error, but the content is empty"


_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")

B6 = rule(
    "B6",
    CONVERSE,
    "A toolUseId is 1 to 64 letters, digits, _, ., : and -.",
    source="llama_index PR #22775; docs.aws.amazon.com, ToolUseBlock",
)


@B6.message
def ids_are_plain(message: CheckedMessage, context: Context) -> Iterator[Finding]:
    for call in message.calls:
        if not _ID.fullmatch(call.id):
            yield at(message, call), "the toolUseId must be 1 to 64 letters, digits, _, ., : and -"


B7 = rule(
    "B7",
    CONVERSE,
    "Calls and results among the messages need a toolConfig beside them.",
    source="dify#17545, 'toolConfig field must be defined when using toolUse and toolResult'",
)


@B7.message
def tools_are_configured(message: CheckedMessage, context: Context) -> Iterator[Finding]:
    if (message.calls or message.results) and not request(context.body)[0].get("toolConfig"):
        yield message.place, "tools are used, but there is no toolConfig"
