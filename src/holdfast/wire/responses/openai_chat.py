"""Read, filter and join OpenAI's chat responses.

With several choices only the first can be continued, and hidden calls are removed from all. Do not
offer internal tools if `n` is more than one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.wire.responses.chat_pieces import GrowingChoice, index_of, name_of
from holdfast.wire.responses.joiner import Joiner, changed_event
from holdfast.wire.responses.shared import (
    PARAGRAPH,
    HandedCalls,
    IsHidden,
    ModelCall,
    dicts,
    handed_calls,
    joined_usage,
    load,
    text,
)
from holdfast.wire.responses.sse import Event, write_event
from holdfast.wire.strict import encode
from holdfast.wire.values import inner, take

_CALLING = ("tool_calls", "function_call")
_DONE = b"[DONE]"
_IDENTITY: tuple[str, ...] = ("id", "created")

# --- complete responses ------------------------------------------------------------------------


def turn_of(body: dict[str, Any]) -> list[Any]:
    """Return the assistant's message of a response."""
    return [_message(inner(_first(body), "message"))]


def stop_of(body: dict[str, Any]) -> str:
    """Return the stop reason."""
    return text(_first(body).get("finish_reason"))


def usage_of(body: dict[str, Any]) -> dict[str, Any]:
    """Return the reported usage."""
    return inner(body, "usage")


def hides(body: dict[str, Any], hidden: IsHidden) -> bool:
    """Return whether a response contains anything that the client must not see."""
    messages = [inner(choice, "message") for choice in dicts(body.get("choices"))]
    return any(
        hidden(name_of(call)) for message in messages for call in dicts(message.get("tool_calls"))
    )


def without(message: Any, hidden: IsHidden) -> Any:
    """Return a message without its hidden calls; None if nothing remains."""
    visible_calls = [call for call in message.get("tool_calls") or () if not hidden(name_of(call))]
    other_fields = {key: value for key, value in message.items() if key != "tool_calls"}
    if visible_calls:
        return {**other_fields, "tool_calls": visible_calls}
    return other_fields if message.get("content") or message.get("refusal") else None


def join_bodies(
    bodies: Sequence[dict[str, Any]], hidden: IsHidden, handed: HandedCalls
) -> dict[str, Any]:
    """Join several responses into one."""
    choices = [
        _shown(choice, hidden, handed if n == 0 else {})
        for n, choice in enumerate(dicts(bodies[-1].get("choices")))
    ]
    earlier = [inner(_first(body), "message") for body in bodies[:-1]]
    for n, choice in enumerate(choices):
        message = inner(choice, "message")
        if n == 0:
            for key in ("content", "reasoning_content", "reasoning"):
                texts = [
                    _words(earlier_message.get(key)) for earlier_message in (*earlier, message)
                ]
                if any(texts[:-1]):
                    message[key] = PARAGRAPH.join(filter(None, texts))
    usage = joined_usage([usage_of(body) for body in bodies])
    first = {key: bodies[0][key] for key in _IDENTITY if key in bodies[0]}
    billed = {"usage": usage} if usage else {}
    return {**bodies[-1], **first, "choices": choices, **billed}


def _shown(choice: dict[str, Any], hidden: IsHidden, handed: HandedCalls) -> dict[str, Any]:
    """Return a choice without its hidden calls and with the handed ones."""
    message = dict(inner(choice, "message"))
    calls = dicts(message.get("tool_calls"))
    visible_calls = [call for call in calls if not hidden(name_of(call))]
    visible_calls += [_as_handed(native, call) for native, call in handed_calls(calls, handed)]
    if visible_calls != calls:
        message.pop("tool_calls")
        message |= {"tool_calls": visible_calls} if visible_calls else {}
    stop = choice.get("finish_reason")
    stop = "stop" if stop == "tool_calls" and not visible_calls else stop
    return {**choice, "message": message, "finish_reason": stop}


def _as_handed(native: dict[str, Any], call: ModelCall) -> dict[str, Any]:
    """Return a call in the form that the client receives."""
    function = {**inner(native, "function"), "name": call.name, "arguments": call.arguments}
    return {**native, "id": call.id, "type": "function", "function": function}


def _words(content: Any) -> str:
    """Return content as text, from text or a list of parts."""
    return text(content) or "".join(text(part.get("text")) for part in dicts(content))


def _says(message: dict[str, Any]) -> bool:
    keys = ("content", "tool_calls", "function_call", "refusal", "audio")
    return any(message.get(key) for key in keys)


def _first(body: dict[str, Any]) -> dict[str, Any]:
    choices = dicts(body.get("choices"))
    return choices[0] if choices else {}


def _message(response_message: dict[str, Any]) -> dict[str, Any]:
    """Return a message of a response as a message of a request, without empty fields."""
    fields = {
        key: value for key, value in response_message.items() if value not in (None, "", [], {})
    }
    if "audio" in fields:  # the request refers to audio by its id
        fields["audio"] = {"id": take(fields, "audio", "id")}
    content = fields.pop("content", None if fields.keys() & {*_CALLING, "audio", "refusal"} else "")
    return {**fields, "role": "assistant", "content": content}


# --- streams -----------------------------------------------------------------------------------


class ChatJoiner(Joiner):
    """Numbers calls without the hidden ones; all chunks have the first one's id."""

    def __init__(self, hidden: IsHidden, *, hide_usage: bool = False) -> None:
        self._identity: dict[str, Any] = {}
        """Fields that all chunks of the client's stream share."""
        self._model = ""
        super().__init__(hidden, hide_usage=hide_usage)

    def _reset(self) -> None:
        super()._reset()
        self._choices: dict[int, GrowingChoice] = {}
        self._waiting: list[Event] = []
        """Events since the first one of a call whose name is not known yet."""
        self._nameless: set[tuple[int, int]] = set()

    def odd(self, event: Event, out: list[bytes]) -> None:
        """Process an event without a JSON object."""
        if event.data != _DONE:
            out.append(event.raw)
            return
        self.ended = self.over = True
        self.flush(out)
        if self.holding:
            self.tail.append((event, None))
        else:
            out.append(event.raw)

    def join(self, value: dict[str, Any], event: Event, out: list[bytes]) -> None:
        """Process an event with a JSON object."""
        if b'"tool_calls"' in (event.data or b"") and self._learn(value):
            self._nameless.clear()  # it ended without a name
        if not self._waiting and not self._nameless:
            self._chunk(value, event, out)
            return
        self._waiting.append(event)
        if not self._nameless:
            self.flush(out)

    def _learn(self, value: dict[str, Any]) -> bool:
        """Record which calls have a name and which wait for one; return whether a choice ended."""
        ended = False
        for choice in dicts(value.get("choices")):
            growing = self._choice(choice)
            ended = ended or bool(choice.get("finish_reason"))
            for piece in dicts(inner(choice, "delta").get("tool_calls")):
                key = index_of(choice), index_of(piece)
                if growing.learn(piece) or growing.slot(piece):
                    self._nameless.discard(key)
                else:
                    self._nameless.add(key)
        return ended

    def flush(self, out: list[bytes]) -> None:
        """Emit the events that waited for the name of a call."""
        waiting, self._waiting = self._waiting, []
        self._nameless.clear()
        for event in waiting:
            self._chunk(load(event.data or b""), event, out)

    def held(self) -> list[Event]:
        """Return the events that were received but not emitted."""
        return [*self._waiting, *super().held()]

    def _choice(self, choice: dict[str, Any]) -> GrowingChoice:
        index = index_of(choice)
        if index not in self._choices:
            self._choices[index] = GrowingChoice()
        return self._choices[index]

    def _chunk(self, value: dict[str, Any], event: Event, out: list[bytes]) -> None:
        choices = dicts(value.get("choices"))
        self.upstream_id = self.upstream_id or text(value.get("id"))
        if choices and not self._identity:  # Azure starts with a chunk without an id
            self._identity = {key: value[key] for key in _IDENTITY if key in value}
            self._model = text(value.get("model"))
        usage = value.get("usage")
        if isinstance(usage, dict):
            self.usage = usage
        if not choices:
            self._without_choices(value, event, out)
            return
        touched = self.continued
        rewritten_choices = []
        for choice in choices:
            rewritten = self._take_choice(choice)
            touched = touched or rewritten is not choice
            if rewritten is not None:
                rewritten_choices.append(rewritten)
        if not touched:
            out.append(event.raw)
        elif rewritten_choices:
            self._give({**value, "choices": rewritten_choices}, event, out)

    def _without_choices(self, value: dict[str, Any], event: Event, out: list[bytes]) -> None:
        usage = isinstance(value.get("usage"), dict)
        if usage and self.hide_usage:
            return
        if self.holding and usage:
            self.tail.append((event, value))
        elif not self.continued:
            out.append(event.raw)
        elif usage:
            self._give(value, event, out)

    def _give(self, value: dict[str, Any], event: Event, out: list[bytes]) -> None:
        """Emit a changed chunk."""
        if isinstance(value.get("usage"), dict):
            value = {**value, "usage": self.reported}
        choices = dicts(value.get("choices"))
        ends = [{**choice, "delta": {}} for choice in choices if choice.get("finish_reason")]
        if ends and self.holding:
            self.tail.append((event, {**value, "choices": ends}))
            choices = [choice for choice in map(_unended, choices) if choice["delta"]]
            if not choices:
                return
            value = {**value, "choices": choices}
        out.append(changed_event({**value, **self._identity}, event))

    def _take_choice(self, choice: dict[str, Any]) -> dict[str, Any] | None:
        """Return a choice for the client; the same object if unchanged, None if nothing remains."""
        growing = self._choice(choice)
        delta = inner(choice, "delta")
        call_pieces = delta.get("tool_calls")
        visible_delta = delta
        if call_pieces:
            visible_delta = self._take_calls(growing, delta, dicts(call_pieces))
        content = delta.get("content")
        growing.grow(delta)
        if self.continued:
            visible_delta = {key: piece for key, piece in visible_delta.items() if key != "role"}
            if content and growing.first and self.spoken and isinstance(content, str):
                visible_delta = {**visible_delta, "content": PARAGRAPH + content}
        if content:
            growing.first = False
        if not self.spoken and _says(visible_delta):
            self.spoken = True
        stop = choice.get("finish_reason")
        if stop:
            self._stop(choice, text(stop))
            return (
                {**choice, "delta": visible_delta}
                if self.holding
                else _same(choice, delta, visible_delta)
            )
        if visible_delta is not delta and not any(visible_delta.values()):
            return None
        return _same(choice, delta, visible_delta)

    def _stop(self, choice: dict[str, Any], stop: str) -> None:
        if choice.get("index", 0) == 0:
            self.stop_reason = stop
            self.ended = True

    def _take_calls(
        self, growing: GrowingChoice, delta: dict[str, Any], call_pieces: list[dict[str, Any]]
    ) -> dict[str, Any]:
        visible_pieces = []
        for piece in call_pieces:
            slot = growing.slot(piece) or growing.open(piece, self.hidden)
            slot.grow(piece)
            if slot.shown is None:
                self.secretive = True
            elif slot.shown == piece.get("index", slot.shown):
                visible_pieces.append(piece)
            else:
                visible_pieces.append({**piece, "index": slot.shown})
        if len(visible_pieces) == len(call_pieces) and all(
            a is b for a, b in zip(visible_pieces, call_pieces, strict=True)
        ):
            return delta
        other_fields = {key: piece for key, piece in delta.items() if key != "tool_calls"}
        return {**other_fields, "tool_calls": visible_pieces} if visible_pieces else other_fields

    def end(self, value: Any, event: Event, out: list[bytes]) -> None:
        """Emit an end that was held back."""
        if value is None:
            out.append(event.raw)
            return
        choices = [
            {**choice, "finish_reason": "stop"}
            if choice.get("finish_reason") == "tool_calls" and not self._shows_calls(choice)
            else choice
            for choice in dicts(value.get("choices"))
        ]
        if isinstance(value.get("usage"), dict):
            value = {**value, "usage": self.reported}
        out.append(changed_event({**value, **self._identity, "choices": choices}, event))

    def _shows_calls(self, choice: dict[str, Any]) -> bool:
        return any(slot.shown is not None for slot in self._choice(choice).slots)

    def give_calls(self, handed: HandedCalls, out: list[bytes]) -> None:
        """Emit complete calls, numbered after the existing ones."""
        slots = self._choices[0].slots
        for slot, call in handed_calls(slots, handed):
            numbers = [
                visible_slot.shown for visible_slot in slots if visible_slot.shown is not None
            ]
            slot.shown = max(numbers, default=-1) + 1
            piece = {"index": slot.shown, **_as_handed(slot.joined_value(), call)}
            delta = chunk(self._identity, self._model, {"tool_calls": [piece]})
            out.append(write_event(encode(delta)))

    def messages(self) -> list[Any]:
        """Return the assistant's turn of this upstream stream, as the next request contains it."""
        first = self._choices.get(0)
        return [_message(first.message())] if first else []

    def calls(self) -> list[ModelCall]:
        """Return the calls of this upstream stream, including hidden ones."""
        first = self._choices.get(0)
        return [slot.call() for slot in first.slots] if first else []


def _same(choice: dict[str, Any], delta: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any]:
    return choice if shown is delta else {**choice, "delta": shown}


def _unended(choice: dict[str, Any]) -> dict[str, Any]:
    delta = {key: piece for key, piece in inner(choice, "delta").items() if piece}
    return {**choice, "delta": delta, "finish_reason": None}


def chunk(
    identity: dict[str, Any], model: str, delta: dict[str, Any], stop: str | None = None
) -> dict[str, Any]:
    """Return a chunk with one choice."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": stop}
    return {
        **identity,
        "object": "chat.completion.chunk",
        "model": model,
        "choices": [choice],
    }
