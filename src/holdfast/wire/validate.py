"""Validate a body against all rules of its dialect, in one pass.

It is public, and the test upstream uses it to reject requests.
"""

from __future__ import annotations

import re

from holdfast.errors import BadJSONError, ShapeError
from holdfast.wire.conversation import Conversation
from holdfast.wire.detect import guess
from holdfast.wire.frame import take_apart
from holdfast.wire.reader import dialect_named
from holdfast.wire.rules import SHAPE, SURROGATES
from holdfast.wire.rules.rule import CheckedMessage, Context, Violation, check_all
from holdfast.wire.strict import Limits, parse, to_checked_bytes
from holdfast.wire.surrogates import replace_surrogates

_DEFAULT_LIMITS = Limits()
_MOST_MISSHAPEN = 1000


def validate(
    body: object,
    dialect: str | None = None,
    model: str | None = None,
    *,
    limits: Limits = _DEFAULT_LIMITS,
) -> list[Violation]:
    """Return every violation of a body; an empty list means that the provider accepts it.

    The body is bytes, text, a dictionary or a Conversation. Raise `WireError` if it is not JSON.
    Some rules depend on the model, which defaults to the one in the body.
    """
    if isinstance(body, Conversation):
        violations = list(check_all(list(body.seen()), body.context(model)))
        return sorted(violations, key=_position)
    try:
        return sorted(_validate(to_checked_bytes(body, limits), dialect, model), key=_position)
    except BadJSONError:
        # Lone surrogates are invalid JSON and also a rule, so the rest is validated as well.
        body, mended = replace_surrogates(body)
        if not mended:
            raise
    halves = [
        Violation(SURROGATES.id, path, "the string holds a lone surrogate") for path in mended
    ]
    return sorted(halves + _validate(to_checked_bytes(body, limits), dialect, model), key=_position)


def _position(violation: Violation) -> list[str | int]:
    """Return a sort key in the order of the body: `[2]` before `[10]`."""
    parts = re.split(r"(\d+)", violation.path)  # text and number alternate
    return [int(part) if n % 2 else part for n, part in enumerate(parts)]


def _validate(raw: bytes, dialect: str | None, model: str | None) -> list[Violation]:
    spoken = dialect_named(guess(raw) if dialect is None else dialect)
    try:
        frame, spans = take_apart(raw, spoken)
    except ShapeError as error:
        return [Violation(SHAPE.id, error.where, error.what)]
    outer_body = parse(frame.hollow)

    misshapen: list[Violation] = []
    messages: list[CheckedMessage] = []
    for n, span in enumerate(spans):
        place = frame.place if frame.bare else (*frame.place, n)
        value = parse(span, place)
        try:
            role = spoken.check(value, place)
        except ShapeError as error:
            if len(misshapen) == _MOST_MISSHAPEN:
                return misshapen  # the body is something else; a longer list would only cost memory
            is_role = spoken.NAME == "gemini" and error.where.endswith(".role")
            misshapen.append(Violation("G1" if is_role else SHAPE.id, error.where, error.what))
        else:
            messages.append(CheckedMessage(place, role, value, spoken.blocks(value, None)))
    if misshapen and not messages:
        return misshapen  # a missing message is a consequence of these violations
    stated_model = spoken.params(outer_body).get("model")
    model = model or (stated_model if isinstance(stated_model, str) else "")
    context = Context(spoken.NAME, model, outer_body, frame.place, len(raw))
    return misshapen + list(check_all(messages, context))
