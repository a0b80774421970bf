"""Check a body against every rule of its dialect, in one pass.

validate: after reader; public, and the gatekeeper of the upstream that tests run against.
"""

from __future__ import annotations

from holdfast.errors import ShapeError
from holdfast.wire.conversation import Conversation
from holdfast.wire.detect import guess
from holdfast.wire.frame import find_list, take_apart
from holdfast.wire.reader import dialect_named
from holdfast.wire.rules import SHAPE, SURROGATES
from holdfast.wire.rules.rule import Context, Seen, Violation, check_all
from holdfast.wire.strict import Limits, parse, to_bytes
from holdfast.wire.surrogates import mend_surrogates

_DEFAULT_LIMITS = Limits()


def validate(
    body: object,
    dialect: str | None = None,
    model: str | None = None,
    *,
    limits: Limits = _DEFAULT_LIMITS,
) -> list[Violation]:
    """List every rule that a body breaks; an empty list means that the provider takes it.

    The body is bytes, text, a dictionary or a Conversation. What is not JSON at all raises
    WireError. Some rules hold for some models: the model is taken from the body if not given.
    """
    if isinstance(body, Conversation):
        messages = list(body.seen())
        return list(check_all(messages, body.context(model)))
    body, mended = mend_surrogates(body)
    found = [Violation(SURROGATES.id, path, "the string holds a lone surrogate") for path in mended]
    raw = to_bytes(body, limits)
    spoken = dialect_named(dialect or guess(raw))
    try:
        frame, spans = take_apart(raw, find_list(raw, spoken))
    except ShapeError as error:
        return [*found, Violation(SHAPE.id, error.where, error.what)]
    hollow = parse(frame.hollow)

    messages = []
    for n, span in enumerate(spans):
        place = frame.place if frame.bare else (*frame.place, n)
        value = parse(span, place)
        try:
            role = spoken.check(value, place)
        except ShapeError as error:
            rule = "G1" if spoken.NAME == "gemini" and error.where.endswith(".role") else SHAPE.id
            found.append(Violation(rule, error.where, error.what))
        else:
            messages.append(Seen(place, role, value, spoken.blocks(value, None)))
    named = spoken.params(hollow).get("model")
    context = Context(
        spoken.NAME,
        model or (named if isinstance(named, str) else ""),
        hollow,
        frame.place,
        len(raw),
    )
    return [*found, *check_all(messages, context)]
