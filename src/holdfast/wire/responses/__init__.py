"""Read upstream responses, hide calls in them, join them and write them. Bytes in, bytes out."""

from holdfast.wire.responses.compose import OfflineResponse, compose_response, stream_response
from holdfast.wire.responses.failures import (
    OVERFLOW,
    error_body,
    error_event,
    error_kind,
    overflow_message,
)
from holdfast.wire.responses.gemini import ArrayWriter
from holdfast.wire.responses.marks import with_marks
from holdfast.wire.responses.observers import StreamObserver, observe_stream
from holdfast.wire.responses.relay import CONTINUED, Relay, resumed
from holdfast.wire.responses.restored_turns import rejoin
from holdfast.wire.responses.shared import (
    HandedCalls,
    IsHidden,
    ModelCall,
    add_usage,
    context_usage,
    input_tokens,
)
from holdfast.wire.responses.sse import Event, EventParser, write_event
from holdfast.wire.responses.translate import (
    AnswerTranslator,
    TranslatedResponse,
    translate_error,
    translate_response,
)
from holdfast.wire.responses.turns import (
    HiddenTurn,
    Hop,
    continuation,
    is_silent,
    split,
    turn_calls,
    with_own_ids,
)
from holdfast.wire.responses.whole import ParsedResponse, join_responses, read_response

__all__ = [
    "CONTINUED",
    "OVERFLOW",
    "AnswerTranslator",
    "ArrayWriter",
    "Event",
    "EventParser",
    "HandedCalls",
    "HiddenTurn",
    "Hop",
    "IsHidden",
    "ModelCall",
    "OfflineResponse",
    "ParsedResponse",
    "Relay",
    "StreamObserver",
    "TranslatedResponse",
    "add_usage",
    "compose_response",
    "context_usage",
    "continuation",
    "error_body",
    "error_event",
    "error_kind",
    "input_tokens",
    "is_silent",
    "join_responses",
    "observe_stream",
    "overflow_message",
    "read_response",
    "rejoin",
    "resumed",
    "split",
    "stream_response",
    "translate_error",
    "translate_response",
    "turn_calls",
    "with_marks",
    "with_own_ids",
    "write_event",
]
