"""Read upstream responses, hide calls in them, join them and write them. Bytes in, bytes out."""

from holdfast.wire.responses.compose import Said, compose_answer, stream_answer
from holdfast.wire.responses.failures import (
    OVERFLOW,
    error_body,
    error_event,
    error_kind,
    overflow_message,
)
from holdfast.wire.responses.gemini import ArrayWriter
from holdfast.wire.responses.marks import with_marks
from holdfast.wire.responses.rejoining import rejoin
from holdfast.wire.responses.relay import CONTINUED, Relay, resumed
from holdfast.wire.responses.shared import (
    Call,
    Handed,
    Hidden,
    add_usage,
    context_usage,
    input_tokens,
)
from holdfast.wire.responses.sse import Event, EventParser, write_event
from holdfast.wire.responses.translate import (
    AnswerTranslator,
    Translated,
    translate_answer,
    translate_error,
)
from holdfast.wire.responses.turns import (
    Hop,
    Kept,
    continuation,
    is_silent,
    split,
    turn_calls,
    with_own_ids,
)
from holdfast.wire.responses.watching import Watch, watch
from holdfast.wire.responses.whole import Answer, join_answers, read_answer

__all__ = [
    "CONTINUED",
    "OVERFLOW",
    "Answer",
    "AnswerTranslator",
    "ArrayWriter",
    "Call",
    "Event",
    "EventParser",
    "Handed",
    "Hidden",
    "Hop",
    "Kept",
    "Relay",
    "Said",
    "Translated",
    "Watch",
    "add_usage",
    "compose_answer",
    "context_usage",
    "continuation",
    "error_body",
    "error_event",
    "error_kind",
    "input_tokens",
    "is_silent",
    "join_answers",
    "overflow_message",
    "read_answer",
    "rejoin",
    "resumed",
    "split",
    "stream_answer",
    "translate_answer",
    "translate_error",
    "turn_calls",
    "watch",
    "with_marks",
    "with_own_ids",
    "write_event",
]
