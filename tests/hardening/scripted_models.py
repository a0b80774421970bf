"""Models that call expand_ref wrongly in every observed way, and a client that talks to them.

A model has a habit, which writes its calls, and an end, when it finally answers. All its text has a
unique number, so that any other text in an answer is not the model's.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Set
from dataclasses import replace
from typing import Any

from tests.fitting.test_citing import chat, log
from tests.hardening.provider import Provider
from tests.provider.request import Got
from tests.surfaces.proxy.gatekeeper import Ledger, refusal
from tests.surfaces.proxy.harness import request_in
from tests.surfaces.proxy.replaying import MODELS
from tests.surfaces.proxy.shifting import answer_messages as said_in
from tests.surfaces.proxy.spoken import REF, says, text, whole
from tests.wire.responses.streams import Part, Script, Seen, understand

OPENER = "expand_ref"
EXAMPLE = re.compile(r'expand_ref\(("[^"]*")(?:, ("(?:[^"\\]|\\.)*"))?\)')
FOREIGN_REFS = ("ref:log:0123456789abcdef", "log:0123456789abcdef", "a.log", "", "ref", "…", "ref:")
SPELLINGS = (
    "Expand_Ref", "expand-ref", "EXPAND_REF", "functions.expand_ref", "default_api:expandRef",
)  # fmt: skip
OPTIONS = (
    "find", "query", "lines", "path", "pattern", "around", "fields", "slice", "offset", "limit",
    "page", "max_tokens", "options", "arguments", "question", "unknown", "", "REF_ID",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 2.5, 10**30, "", "…", "...", "<find>", "lines 1-5", "lines 9000-9001", "3",
    "'lines 2-3'", '"step 0-4"', "```lines 7-9```", "$.a[0]", "$..", "/step 0-[12] /", "/(/",
    "page 2", "page 99", "rows 1-2", "what went wrong?", [], ["lines 1-2", "page 2"], {}, "\0",
    {"find": "lines 3-4"}, {"a": {"b": [1, {"c": None}]}}, [[["x"]]], "\ud83d\ude00", "x" * 100_000,
    "step " * 20_000, "ref:log:0123456789abcdef", 1e308, "lines: 1 to 4", "L4-L9",
)  # fmt: skip
OTHER_ARGUMENTS = ("", "null", "[]", "3", '"lines 1-2"', "{", "}", "not JSON", "[{}]", "{}{}")
"""Arguments that are no object; OpenAI's dialects forward any text that a model writes."""
_TEXT_ARGUMENTS = ("openai-chat", "openai-responses")


def opener_beside(client_names: Set[str]) -> str:
    """Return the name of the proxy's tool in the requests of a client."""
    return OPENER if OPENER not in client_names else f"holdfast_{OPENER}"


class Model:
    """One turn of a scripted model, over as many requests as the proxy sends."""

    def __init__(self, chance: random.Random, number: int, client_names: frozenset[str]) -> None:
        self.habit = chance.choice(list(HABITS))
        self.end = chance.choice(("after some", "withdrawn", "removed", "removed", "never"))
        self.rounds = chance.randrange(1, 5)
        self.chance = chance
        self.number = number
        self.client_names = client_names
        self.opener = opener_beside(client_names)
        self.scripts: list[Script] = []

    def __str__(self) -> str:
        return f"{self.habit}, answers: {self.end} {self.rounds}"

    @property
    def texts(self) -> str:
        return "".join(piece for script in self.scripts for piece in script.texts)

    @property
    def last(self) -> Script:
        return self.scripts[-1]

    def answer(self, got: Got) -> Script:
        """Return the model's response to one request."""
        is_last = self._answers(got)
        parts: list[Part] = []
        if is_last:
            parts = [text(f"answer {self.number} ", "is that all went well.")]
        elif self.habit == "answers empty" and self.scripts:
            parts = [text("")] if self.chance.random() < 0.5 else []
        else:
            if self.chance.random() < 0.1:
                parts = [text(f"look {self.number}.{len(self.scripts)} ")]
            parts += self._calls(got)
        is_cut = self.habit == "truncates the arguments" and self.chance.random() < 0.3
        self.scripts.append(replace(says(*parts), cut=is_cut and not is_last))
        return self.last

    def _answers(self, got: Got) -> bool:
        is_offered = self.opener in got.tools
        match self.end:
            case "never":
                return False
            case "removed":
                return not is_offered
            case "withdrawn":
                return not is_offered or _restricts(got)
        return len(self.scripts) >= self.rounds or not is_offered

    def _calls(self, got: Got) -> Iterator[Part]:
        for n, (name, arguments) in enumerate(HABITS[self.habit](self, got)):
            if name:
                call_id = f"call_{self.number}_{len(self.scripts)}_{n}"
                middle = self.chance.randrange(len(arguments) + 1)
                pieces = tuple(filter(None, (arguments[:middle], arguments[middle:])))
                yield Part("call", pieces, call_id, name)
            else:
                yield text(arguments)


Calls = Iterator[tuple[str, str]]
"""Names and arguments; text has no name."""


def _restricts(got: Got) -> bool:
    """Return whether the request restricts the tools that may be called."""
    return bool(got.value.get("tool_choice") or got.value.get("toolConfig"))


def _ref(model: Model, got: Got) -> str:
    refs = REF.findall(got.texts)
    return model.chance.choice(refs) if refs else FOREIGN_REFS[0]


def _copied(got: Got) -> list[dict[str, str]]:
    """Return the example calls that the model is shown."""
    return [
        {"ref": json.loads(ref), **({"find": json.loads(find)} if find else {})}
        for ref, find in EXAMPLE.findall(got.texts)
    ]


def _copies(model: Model, got: Got) -> Calls:
    examples = _copied(got) or [{"ref": _ref(model, got)}]
    yield model.opener, json.dumps(model.chance.choice(examples))


def _copies_all(model: Model, got: Got) -> Calls:
    footers = [line for line in got.texts.splitlines() if "expand_ref(" in line]
    given: dict[str, Any] = {"ref": _ref(model, got), "find": " | ".join(footers)[:5_000]}
    for example in _copied(got):
        given |= {"query": "…", "path": "$.data", "lines": "40-80", **example}
    yield model.opener, json.dumps(given)


def _loops(model: Model, got: Got) -> Calls:
    ref = (REF.findall(got.texts) or FOREIGN_REFS)[0]
    yield model.opener, json.dumps({"ref": ref, "find": "lines 1-5"})


def _wanders(model: Model, got: Got) -> Calls:
    find = f"{model.chance.choice(('zq', 'lines ', 'page ', '$.'))}{model.chance.randrange(10**6)}"
    yield model.opener, json.dumps({"ref": _ref(model, got), "find": find})


def _fences(model: Model, got: Got) -> Calls:
    written = json.dumps({"name": model.opener, "arguments": {"ref": _ref(model, got)}})
    if got.dialect in _TEXT_ARGUMENTS and model.chance.random() < 0.5:
        yield model.opener, f"```json\n{written}\n```"
    else:
        yield "", f"fence {model.number}\n```json\n{written}\n```"


def _truncates(model: Model, got: Got) -> Calls:
    written = json.dumps({"ref": _ref(model, got), "find": "lines 2-4"})
    cut = written[: model.chance.randrange(len(written))]
    if got.dialect in _TEXT_ARGUMENTS or (got.dialect == "anthropic" and got.streams):
        yield model.opener, cut
    else:  # these give objects only: a value is cut instead
        yield model.opener, json.dumps({"ref": cut[9:], "find": cut[-5:]})


def _mangled(model: Model, got: Got) -> str:
    chance = model.chance
    if got.dialect in _TEXT_ARGUMENTS and chance.random() < 0.15:
        return chance.choice(OTHER_ARGUMENTS)
    ref = _ref(model, got)
    refs = (ref, ref[4:], ref[:-2], f'"{ref}"', f"[{ref}]", f"{ref} …", [ref], {"ref": ref}, 7)
    given = {name: chance.choice(VALUES) for name in chance.sample(OPTIONS, chance.randrange(5))}
    draw = chance.random()
    if draw < 0.85:
        key = chance.choice(("ref", "ref", "ref_id", "id", "citation", "Ref"))
        given[key] = chance.choice((*refs, *FOREIGN_REFS, None) if draw < 0.6 else (ref,))
    return json.dumps(given)


def _mangles(model: Model, got: Got) -> Calls:
    yield model.opener, _mangled(model, got)


def _calls_in_parallel(model: Model, got: Got) -> Calls:
    for _ in range(model.chance.choice((2, 3, 5, 30))):
        yield model.opener, _mangled(model, got)


def _calls_far_too_often(model: Model, got: Got) -> Calls:
    for n in range(model.chance.choice((257, 300)) if model.chance.random() < 0.1 else 26):
        yield model.opener, json.dumps({"ref": _ref(model, got), "find": f"lines {n + 1}"})


def _mixes(model: Model, got: Got) -> Calls:
    calls = [(model.opener, _mangled(model, got)), ("read_log", '{"path": "b.log"}')]
    if model.chance.random() < 0.3:
        calls.append((model.opener, _mangled(model, got)))
    model.chance.shuffle(calls)
    yield from calls


def _misspells(model: Model, got: Got) -> Calls:
    # A client that offers such a name gets the call, and must be able to send it back.
    spellings = SPELLINGS if model.client_names == {"read_log"} else SPELLINGS[:3]
    arguments = {"ref": _ref(model, got), "find": "lines 1-3"}
    yield model.chance.choice(spellings), json.dumps(arguments)


def _calls_the_client(model: Model, got: Got) -> Calls:
    called = model.chance.choice(sorted(model.client_names))
    yield called, json.dumps({"ref": _ref(model, got), "path": "a"})


HABITS: dict[str, Callable[[Model, Got], Calls]] = {
    "copies the example": _copies,
    "copies every line of the footer": _copies_all,
    "repeats one call": _loops,
    "calls other nonsense each time": _wanders,
    "fences the call": _fences,
    "truncates the arguments": _truncates,
    "mangles the arguments": _mangles,
    "calls in parallel": _calls_in_parallel,
    "calls far too often": _calls_far_too_often,
    "mixes calls": _mixes,
    "answers empty": _loops,
    "misspells the tool": _misspells,
    "calls the client's tool": _calls_the_client,
}


class ScriptedProvider(Provider):
    """The provider's network with a scripted model and its window."""

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window
        self.model: Model | None = None

    def _refused(self, request: Got) -> str:
        why = refusal(request, self.window, Ledger())
        return why[1] if why is not None else ""

    def _script(self, request: Got) -> Script:
        assert self.model is not None
        return self.model.answer(request)


class Client:
    """A client of one conversation, which keeps its responses as agents do."""

    def __init__(self, chance: random.Random, dialect: str, number: int, *, stream: bool) -> None:
        self.dialect, self.stream = dialect, stream
        self.names = {"read_log"}
        body = chat(_result(chance), question=f"What went wrong in step 0-7, {number}?")
        if chance.random() < 0.2:  # a tool whose name is like ours
            name = chance.choice(("expand_ref", "ExpandRef", "holdfast_expand_ref"))
            self.names.add(name)
            tool = {"name": name, "parameters": {"type": "object"}}
            body["tools"].append({"type": "function", "function": tool})
        self._value = json.loads(request_in(dialect, body, stream=stream))
        if dialect != "gemini":  # which has it in its path
            self._value["model"] = MODELS[dialect]
        self._list = {"openai-responses": "input", "gemini": "contents"}.get(dialect, "messages")

    def is_own(self, name: str) -> bool:
        """Return whether a call is for one of the client's tools, in any spelling."""
        return name != opener_beside(self.names) and _folded(name) in set(map(_folded, self.names))

    @property
    def body(self) -> bytes:
        return json.dumps(self._value).encode()

    def read(self, body: bytes) -> Seen:
        """Return an answer as the client understands it; AssertionError if it breaks the form."""
        if self.stream:
            return understand(body, self.dialect)
        value = json.loads(body)
        seen = Seen()
        for part in _parts(value, self.dialect):
            if isinstance(part, str):
                seen.texts.append(part)
            else:
                seen.calls.append(part)
        return seen

    def go_on(self, seen: Seen, body: bytes, number: int) -> None:
        """Add an answer to the history, and the results of its calls or a new question."""
        history = self._value[self._list]
        if "".join(seen.texts).strip() or seen.calls:
            history += self._answer(seen, body)
        history += self._results(seen)
        if not seen.calls:
            history += self._composed([{"role": "user", "content": f"And now, {number}?"}])

    def _answer(self, seen: Seen, body: bytes) -> list[Any]:
        if not self.stream:
            return said_in(json.loads(body), self.dialect)
        texts = [text(each) for each in seen.texts if each]
        calls = [Part("call", (given,), call_id, name) for call_id, name, given in seen.calls]
        return said_in(whole(says(*texts, *calls), self.dialect), self.dialect)

    def _results(self, seen: Seen) -> list[Any]:
        results = [(i, name, log(60 + n)) for n, (i, name, _) in enumerate(seen.calls)]
        if not results:
            return []
        match self.dialect:
            case "openai-chat":
                return [
                    {"role": "tool", "tool_call_id": i, "content": given} for i, _, given in results
                ]
            case "openai-responses":
                return [
                    {"type": "function_call_output", "call_id": i, "output": given}
                    for i, _, given in results
                ]
            case "anthropic":
                blocks = [
                    {"type": "tool_result", "tool_use_id": i, "content": given}
                    for i, _, given in results
                ]
                return [{"role": "user", "content": blocks}]
        parts = [
            {"functionResponse": {"id": i, "name": name, "response": {"output": given}}}
            for i, name, given in results
        ]
        return [{"role": "user", "parts": parts}]

    def _composed(self, messages: list[dict[str, Any]]) -> list[Any]:
        value = json.loads(request_in(self.dialect, {**chat(), "messages": messages}))
        composed: list[Any] = value[self._list]
        return composed


def _folded(name: str) -> str:
    return re.split("[.:/]", name)[-1].replace("_", "").replace("-", "").lower()


def _result(chance: random.Random) -> str:
    if chance.random() < 0.5:
        return log(120, seed=0)
    rows = [{"id": n, "step": f"step 0-{n}", "state": "well"} for n in range(90)]
    return json.dumps({"data": rows, "next": None})


def _parts(value: Any, dialect: str) -> Iterator[str | tuple[str, str, str]]:
    """Yield the texts and calls of an answer in one piece."""
    match dialect:
        case "openai-chat":
            message = value["choices"][0]["message"]
            yield message.get("content") or ""
            for call in message.get("tool_calls") or ():
                yield call["id"], call["function"]["name"], call["function"]["arguments"]
        case "openai-responses":
            for item in value["output"]:
                is_call = item["type"] == "function_call"
                yield _call(item, "call_id") if is_call else item["content"][0]["text"]
        case "anthropic":
            for block in value["content"]:
                yield _call(block, "id") if block["type"] == "tool_use" else block["text"]
        case _:
            for part in value["candidates"][0]["content"]["parts"]:
                given = part.get("functionCall")
                yield _call(given, "id") if given else part["text"]


def _call(call: dict[str, Any], id_key: str) -> tuple[str, str, str]:
    given = next(call[key] for key in ("arguments", "input", "args") if key in call)
    return call[id_key], call["name"], given if isinstance(given, str) else json.dumps(given)
