"""Requests derived from valid ones: seeds in every dialect, and random changes of them.

Values are changed as values (a type swapped, a member removed, a list reversed) and as bytes (a
piece cut, repeated or inserted); text that JSON's own writer would never write (a duplicate key, an
endless number, half a character) is inserted as text.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from holdfast.wire import RULES
from tests.fitting.test_citing import chat, in_dialect, log
from tests.provider.request import Got
from tests.surfaces.proxy.gatekeeper import KEY, Ledger, refusal
from tests.surfaces.proxy.harness import DIALECTS, path_of
from tests.wire.test_fuzz import mutate
from tests.wire.test_rules import EXAMPLES

_LARGEST_SEED = 20_000
"""Bytes of a seed: small bodies are quick, and have all the shapes that large ones have."""

_SMALL = 3_000
"""Bytes of a seed that is drawn more often: most faults are faults of form."""

ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 2**63, -(2**70), 10**300, "", " ", "x", "user", "assistant", "tool",
    "\x00", "\ud800", "\udfff\ud800", "\u202e\u0000", "é" * 300, "a" * 5000, [], {}, [[]], [{}],
    ["x"], {"type": []}, {"text": None}, {"": ""}, "ref:log:" + "0" * 16, "[ref:log:1 …]",
    "[Read more: expand_ref(", "expand_ref", "gpt-4o", "data:image/png;base64,AAAA", "1e5",
    "https://user:secret@example.org/a", "2026-11-16", "</result>", "%s%n", "../../etc/passwd",
)  # fmt: skip
"""Values to put in the place of others; the last texts are what looks like ours or like secrets."""

RAW: tuple[bytes, ...] = (
    b"1e999", b"-1e999", b"-0", b"0.1e-400", b"9" * 400, b"NaN", b"Infinity", b'"\\ud800"',
    b'"\\ud83d"', b'"\xff"', b'"\xed\xa0\x80"', b"01", b"1.", b"+1", b"0x10", b"'x'", b'"\n"',
    b'{"a":1,"a":2}', b'{"type":"text","type":"image"}', b"[" * 300 + b"]" * 300,
    b'{"a":' * 200 + b"1" + b"}" * 200, b"/**/null", b"tru", b'"\\x41"', b'"\\u00"', b"",
    b'{"role":"user","role":"tool","content":"x"}',
)  # fmt: skip
"""What no writer of JSON writes."""

_PLACE = "\x01raw\x01"
_WRITTEN_PLACE = json.dumps(_PLACE).encode()


class Seed(NamedTuple):
    """A body, and where it is sent."""

    dialect: str
    model: str
    body: dict[str, Any]

    @property
    def written(self) -> bytes:
        """The body as it is sent."""
        return json.dumps(self.body).encode()


@cache
def seeds() -> tuple[Seed, ...]:
    """Bodies that their provider takes, small and each of another shape."""
    taken = [seed for seed in _candidates() if _is_taken(seed)]
    small = [seed for seed in taken if len(repr(seed.body)) < _SMALL]
    return (*taken, *small, *small, *small)


def _candidates() -> Iterator[Seed]:
    talks = (chat("short"), chat(), chat(log(60)), chat(log(200), log(90, 1), question="And?"))
    for talk in talks:
        for dialect in DIALECTS:
            body = json.loads(in_dialect(talk, dialect))
            if dialect == "anthropic":
                body.setdefault("max_tokens", 1000)
            yield Seed(dialect, "gemini-2.5-flash", body)
            if dialect != "gemini":
                yield Seed(dialect, "", {**body, "stream": True})
    for example in EXAMPLES:
        dialect = example.dialect or RULES[example.rule].dialect
        if dialect in DIALECTS and len(repr(example.good)) < _LARGEST_SEED:
            yield Seed(dialect, example.model or "gemini-2.5-flash", example.good)


def _is_taken(seed: Seed) -> bool:
    return refused(seed.dialect, path_of(seed.dialect, model=seed.model), seed.written) == ""


KEYS = {"authorization": f"Bearer {KEY}", "x-goog-api-key": KEY, "anthropic-version": "2023-06-01"}


def refused(dialect: str, path: str, body: bytes) -> str:
    """Why a provider would not answer a body; empty if it would.

    The rules are written for requests of some order: where one stumbles, so would a provider.
    """
    address = path.partition("?")[0]
    request = Got("POST", address, {}, KEYS, body)
    try:
        why = refusal(request, 200_000, Ledger())
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        return f"{dialect}: no request ({type(error).__name__})"
    if why is not None:
        return why[1]
    return next(_untyped(request.value), "")


_NAMED = ("id", "name", "call_id", "tool_call_id", "tool_use_id", "type", "text", "model", "role")
_CALL_OF_A_USER = "Please ensure that function call turn comes immediately after a user turn."
_CALLS = ("functionCall", "functionResponse", "function_call", "function_response")


def _untyped(value: Any) -> Iterator[str]:
    """What every provider's schema refuses, and the rules of tests/provider take for granted."""
    if isinstance(value, list):
        for inner in value:
            yield from _untyped(inner)
    if not isinstance(value, dict):
        return
    if value.get("role") != "model" and any(
        call in str(value.get("parts")) for call in _CALLS[::2]
    ):
        yield _CALL_OF_A_USER
    if value.get("type") == "thinking" and "thinking" in value and not value.get("signature"):
        yield "messages.content.thinking.signature: Field required"
    parts = value.get("parts")
    if isinstance(parts, list) and not all(isinstance(part, dict) for part in parts):
        yield "Invalid value at 'contents.parts' (type.googleapis.com/…Part)"
    for name, inner in value.items():
        if name in _NAMED and not (isinstance(inner, str) and inner):
            yield f"{name}: Input should be a valid string"
        if name in _CALLS and not (isinstance(inner, dict) and inner.get("name")):
            yield f"{name}.name: Name cannot be empty."
        if name not in ("args", "input", "response", "parameters", "input_schema"):
            yield from _untyped(inner)


def spoilt(seed: Seed, chance: random.Random) -> bytes:
    """A seed after a few changes; sometimes after none."""
    body = copy.deepcopy(seed.body)
    raw: bytes | None = None
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3, 6))):
        _change(body, chance)
    if chance.random() < 0.25:
        raw = chance.choice(RAW)
        _put(body, chance, _PLACE)
    written = _written(body, chance)
    if raw is not None:
        written = written.replace(_WRITTEN_PLACE, raw)
    return mutate(written, chance) if chance.random() < 0.15 else written


def _written(body: Any, chance: random.Random) -> bytes:
    if chance.random() < 0.7:
        return json.dumps(body).encode()
    indent = chance.choice((None, 0, 2))
    text = json.dumps(body, ensure_ascii=False, indent=indent)
    return text.encode("utf-8", "surrogatepass")


def _change(body: Any, chance: random.Random) -> None:
    """Change a value in one place."""
    holder, last = _somewhere(body, chance)
    if last is None:
        return
    match chance.randrange(6):
        case 0 | 1:
            holder[last] = copy.deepcopy(chance.choice(ODD))
        case 2:
            del holder[last]
        case 3:  # a value from elsewhere
            other, name = _somewhere(body, chance)
            holder[last] = copy.deepcopy(other[name])
        case 4 if isinstance(holder, list):
            chance.shuffle(holder)
        case 5 if isinstance(holder, list):
            holder.append(copy.deepcopy(holder[last]))
        case _:  # under another name
            _, name = _somewhere(body, chance)
            if isinstance(holder, dict) and isinstance(name, str):
                holder[name] = holder.pop(last)


def _put(body: Any, chance: random.Random, value: Any) -> None:
    holder, last = _somewhere(body, chance)
    if last is not None:
        holder[last] = value


def _somewhere(body: Any, chance: random.Random) -> tuple[Any, Any]:
    """A place, as what holds it and its name there; a walk that may end at every step."""
    holder, name = body, None
    value = body
    while isinstance(value, dict | list) and value:
        holder = value
        name = chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
        value = holder[name]
        if chance.random() < 0.2:
            break
    return holder, name
