"""Read, filter and join Gemini's responses.

Every chunk reports the usage so far, so the last one counts. Only the first candidate can be
continued.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import is_
from typing import Any

from holdfast.wire.gemini import NAME, SIGNATURES
from holdfast.wire.responses.joiner import Joiner, changed_event
from holdfast.wire.responses.shared import (
    PARAGRAPH,
    HandedCalls,
    IsHidden,
    ModelCall,
    calls_in,
    dicts,
    handed_calls,
    joined_usage,
    load,
    text,
)
from holdfast.wire.responses.sse import Event, EventParser, write_event
from holdfast.wire.strict import encode
from holdfast.wire.values import inner, take

# --- complete responses ------------------------------------------------------------------------


def turn_of(body: dict[str, Any]) -> list[Any]:
    """Return the model's content of a response."""
    return _contents(_parts(_first(body)))


def stop_of(body: dict[str, Any]) -> str:
    """Return why the model stopped, or why the prompt was refused."""
    return text(_first(body).get("finishReason")) or take(body, "promptFeedback", "blockReason")


def usage_of(body: dict[str, Any]) -> dict[str, Any]:
    """Return the reported usage."""
    return inner(body, "usageMetadata")


def hides(body: dict[str, Any], hidden: IsHidden) -> bool:
    """Return whether a response contains anything that the client must not see."""
    candidates = dicts(body.get("candidates"))
    return any(_is_hidden(part, hidden) for candidate in candidates for part in _parts(candidate))


def without(message: Any, hidden: IsHidden) -> Any:
    """Return a content without its hidden calls; None if nothing remains."""
    visible_parts = [part for part in message["parts"] if not _is_hidden(part, hidden)]
    return {**message, "parts": visible_parts} if visible_parts else None


def join_bodies(
    bodies: Sequence[dict[str, Any]], hidden: IsHidden, handed: HandedCalls
) -> dict[str, Any]:
    """Join several responses into one."""
    candidates = [
        _with_parts(candidate, [part for part in _parts(candidate) if not _is_hidden(part, hidden)])
        for candidate in dicts(bodies[-1].get("candidates"))
    ]
    if not candidates and len(bodies) > 1:  # refused, after earlier calls had been answered
        candidates = [{"content": {}, "finishReason": "OTHER", "index": 0}]
    if candidates:
        visible_parts = [
            [part for part in _parts(_first(body)) if not _is_hidden(part, hidden)]
            for body in bodies[:-1]
        ]
        parts = reduce(_join_parts, [*visible_parts, _parts(candidates[0])])
        parts += _as_handed(_parts(_first(bodies[-1])), handed)
        candidates[0] = _with_parts(candidates[0], parts)
    usage = joined_usage([usage_of(body) for body in bodies])
    first = {key: bodies[0][key] for key in ("responseId",) if key in bodies[0]}
    return {**bodies[-1], **first, "candidates": candidates, "usageMetadata": usage}


def _join_parts(before: list[Any], after: list[Any]) -> list[Any]:
    """Join the parts of two responses with a paragraph break: clients add no space."""
    if not any(_is_text(part) for part in before):
        return [*before, *after]
    for n, part in enumerate(after):
        if _is_text(part):
            return [
                *before,
                *after[:n],
                {**part, "text": PARAGRAPH + part["text"]},
                *after[n + 1 :],
            ]
    return [*before, *after]


def _first(body: dict[str, Any]) -> dict[str, Any]:
    candidates = dicts(body.get("candidates"))
    return candidates[0] if candidates else {}


def _parts(candidate: dict[str, Any]) -> list[dict[str, Any]]:
    return dicts(inner(candidate, "content").get("parts"))


def _with_parts(candidate: dict[str, Any], parts: list[Any]) -> dict[str, Any]:
    return {
        **candidate,
        "content": {"role": "model", **inner(candidate, "content"), "parts": parts},
    }


def _is_hidden(part: dict[str, Any], hidden: IsHidden) -> bool:
    return "functionCall" in part and hidden(take(part, "functionCall", "name"))


def _as_handed(parts: Sequence[dict[str, Any]], handed: HandedCalls) -> list[dict[str, Any]]:
    """Return calls in the form that the client receives, with their signatures."""
    natives = [part for part in parts if "functionCall" in part]
    handed_parts = []
    for part, call in handed_calls(natives, handed):
        args = load(call.arguments.encode())
        call_value = {**part["functionCall"], "name": call.name, "args": args}
        call_value |= {"id": call.id} if call.id else {}
        handed_parts.append({**part, "functionCall": call_value})
    return handed_parts


def _is_text(part: dict[str, Any]) -> bool:
    return bool(text(part.get("text"))) and part.get("thought") is not True


def _says(part: dict[str, Any]) -> bool:
    """Return whether a part is output: anything except thoughts and empty text."""
    return part.get("thought") is not True and any(
        value not in ("", None) for key, value in part.items() if key not in SIGNATURES
    )


def _contents(parts: list[dict[str, Any]]) -> list[Any]:
    """Return the parts of a response as a content of a request.

    Pieces of plain text are merged; signed parts stay unchanged, including an empty text with a
    signature.
    """
    merged: list[dict[str, Any]] = []
    pieces: list[str] = []
    """Pieces of the last part's text while it grows."""
    for part in parts:
        plain = not part.keys() - {"text", "thought"} and isinstance(part.get("text"), str)
        if plain and not part["text"]:
            continue
        if plain and pieces and merged[-1].get("thought") == part.get("thought"):
            pieces.append(part["text"])
            continue
        if pieces:
            merged[-1] = {**merged[-1], "text": "".join(pieces)}
        pieces = [part["text"]] if plain else []
        merged.append(part)
    if pieces:
        merged[-1] = {**merged[-1], "text": "".join(pieces)}
    return [{"role": "model", "parts": merged}] if merged else []


# --- streams -----------------------------------------------------------------------------------


class GeminiJoiner(Joiner):
    """Removes the parts of hidden calls from their chunks; empty chunks are not sent."""

    def __init__(self, hidden: IsHidden, *, hide_usage: bool = False) -> None:
        self._identity: dict[str, Any] = {}
        self._wrote = False
        """Whether the client received text."""
        super().__init__(hidden, hide_usage=hide_usage)

    def _reset(self) -> None:
        super()._reset()
        self._collected: list[dict[str, Any]] = []
        self._unfinished = False
        """Whether a hidden call continues in parts that do not name it."""
        self._parting = self._wrote

    def join(self, value: dict[str, Any], event: Event, out: list[bytes]) -> None:
        """Process an event with a JSON object."""
        self.upstream_id = self.upstream_id or text(value.get("responseId"))
        if not self._identity:
            self._identity = {k: value[k] for k in ("responseId",) if k in value}
        usage = value.get("usageMetadata")
        if isinstance(usage, dict):
            self.usage.update(usage)
        if block := take(value, "promptFeedback", "blockReason"):
            self.stop_reason = block
            self.ended = True
        candidates = dicts(value.get("candidates"))
        rewritten = [self._candidate(candidate) for candidate in candidates]
        is_unchanged = not self.continued and all(map(is_, rewritten, candidates))
        if is_unchanged and not (
            self.holding and any(each.get("finishReason") for each in candidates)
        ):
            out.append(event.raw)
        else:
            self._give(value, rewritten, event, out)

    def _give(
        self, value: dict[str, Any], rewritten: list[dict[str, Any]], event: Event, out: list[bytes]
    ) -> None:
        """Emit a changed chunk."""
        value = {**value, **self._identity}
        if isinstance(value.get("usageMetadata"), dict):
            value["usageMetadata"] = self.reported
        ends = [candidate for candidate in rewritten if candidate.get("finishReason")]
        if ends and self.holding:
            # Other content of the end is emitted immediately.
            self.tail.append((event, {**value, "candidates": [_with_parts(e, []) for e in ends]}))
            rewritten = [
                {k: v for k, v in candidate.items() if k not in _ENDS} for candidate in rewritten
            ]
        if not rewritten and self.ended and self.holding:
            self.tail.append((event, value))  # a refused prompt
            return
        non_empty = [
            candidate
            for candidate in rewritten
            if _parts(candidate) or candidate.get("finishReason")
        ]
        if non_empty or not rewritten:
            out.append(
                changed_event({**value, "candidates": non_empty} if non_empty else value, event)
            )

    def _candidate(self, candidate: dict[str, Any]) -> dict[str, Any]:
        """Return a candidate for the client; the same object if unchanged."""
        parts = _parts(candidate)
        if candidate.get("index", 0) == 0:
            self._collected.extend(parts)
            if stop := text(candidate.get("finishReason")):
                self.stop_reason = stop
                self.ended = True
        visible_parts = [
            visible_part for part in parts if (visible_part := self._shown(part)) is not None
        ]
        if len(visible_parts) == len(parts) and all(map(is_, visible_parts, parts)):
            return candidate
        return _with_parts(candidate, visible_parts)

    def _shown(self, part: dict[str, Any]) -> dict[str, Any] | None:
        """Return a part for the client; None if it is hidden."""
        if "functionCall" in part and self._hides(part):
            return None
        if (self._parting or not self._wrote) and _is_text(part):
            if self._parting:
                part = {**part, "text": PARAGRAPH + part["text"]}
            self._parting, self._wrote = False, True
        self.spoken = self.spoken or _says(part)
        return part

    def _hides(self, part: dict[str, Any]) -> bool:
        call = part.get("functionCall")
        if not isinstance(call, dict):
            return False
        # Arguments may come in several parts, of which only the first has the name.
        hides = self._unfinished if not call.get("name") else self.hidden(take(call, "name"))
        self._unfinished = hides and call.get("willContinue") is True
        self.secretive = self.secretive or hides
        return hides

    def end(self, value: Any, event: Event, out: list[bytes]) -> None:
        """Emit an end that was held back."""
        if "usageMetadata" in value:
            value = {**value, "usageMetadata": self.reported}
        out.append(changed_event(value, event))

    def give_calls(self, handed: HandedCalls, out: list[bytes]) -> None:
        """Emit complete calls in one chunk."""
        self._give_own(_as_handed(whole_calls(self._collected), handed), out)

    def _give_own(self, parts: list[Any], out: list[bytes]) -> None:
        """Emit a chunk that the upstream did not send."""
        content = {"content": {"role": "model", "parts": parts}, "index": 0}
        out.append(write_event(encode({**self._identity, "candidates": [content]})))

    def messages(self) -> list[Any]:
        """Return the model's turn of this upstream stream, as the next request contains it."""
        return _contents(whole_calls(self._collected))

    def calls(self) -> list[ModelCall]:
        """Return the calls of this upstream stream, including hidden ones."""
        return calls_in(self.messages(), NAME)


_ENDS = ("finishReason", "finishMessage")


def whole_calls(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return parts with each call merged into one part; other parts stay unchanged."""
    merged: list[dict[str, Any]] = []
    args: dict[str, Any] | None = None
    """Arguments of an incomplete call."""
    for part in parts:
        call = part.get("functionCall")
        if not isinstance(call, dict):
            merged.append(part)
            continue
        continues = call.get("willContinue") is True
        if args is None or call.get("name"):
            args = {**inner(call, "args")}
            merged.append(part)
            if continues or "partialArgs" in call:
                remaining = {
                    k: v for k, v in call.items() if k not in ("partialArgs", "willContinue")
                }
                merged[-1] = {**part, "functionCall": {**remaining, "args": args}}
        for piece in dicts(call.get("partialArgs")):
            _put(args, piece)
        args = args if continues else None
    return merged


_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


def _put(args: dict[str, Any], piece: dict[str, Any]) -> None:
    """Store a piece of an argument; list arguments never come in pieces."""
    *outer, last = text(piece.get("jsonPath")).removeprefix("$.").split(".")
    for key in outer:
        inside = args.setdefault(key, {})
        args = inside if isinstance(inside, dict) else {}
    kind = next((kind for kind in _VALUES if kind in piece), None)
    if kind == "stringValue" and isinstance(args.get(last), str):
        args[last] += text(piece[kind])
    elif kind:
        args[last] = None if kind == "nullValue" else piece[kind]


# --- JSON array format --------------------------------------------------------------------------


class ArrayWriter:
    """Writes a joined stream as the JSON array that Gemini sends without `alt=sse`.

    The proxy always requests events from the provider and converts them for such a client.
    """

    def __init__(self) -> None:
        self._parser = EventParser()
        self._began = False

    def write(self, events: Iterable[bytes]) -> list[bytes]:
        """Return the events of a relay as elements of the array."""
        return [self._element(e) for raw in events for e in self._parser.feed(raw) if e.data]

    def close(self) -> bytes:
        """Return the end of the array."""
        last_event = self._parser.finish()
        last = self._element(last_event) if last_event and last_event.data else b""
        return last + (b"]" if self._began else b"[]")

    def _element(self, event: Event) -> bytes:
        opening = b",\r\n" if self._began else b"["
        self._began = True
        return opening + (event.data or b"")
