"""Every rule catches a request that its source reports as refused, and passes the mended one."""

from __future__ import annotations

import base64
import struct
from typing import Any, NamedTuple

import pytest

from holdfast import read, validate
from holdfast.wire import DIALECTS, RULES, detect

JSON = dict[str, Any]


class Example(NamedTuple):
    rule: str
    bad: JSON
    path: str
    good: JSON
    model: str | None = None
    dialect: str | None = None


# --- Anthropic ---------------------------------------------------------------------------------

ASK: JSON = {"role": "user", "content": "What is in the folder?"}
EFFORT: JSON = {"role": "system", "content": [], "output_config": {"effort": "low"}}
INSTRUCTED: JSON = {"role": "system", "content": "From now on in French."}


def use(*ids: str, before: list[JSON] | None = None, after: list[JSON] | None = None) -> JSON:
    calls = [{"type": "tool_use", "id": i, "name": "ls", "input": {}} for i in ids]
    return {"role": "assistant", "content": [*(before or []), *calls, *(after or [])]}


def answer(*ids: str, before: list[JSON] | None = None, after: list[JSON] | None = None) -> JSON:
    results = [{"type": "tool_result", "tool_use_id": i, "content": "a.txt"} for i in ids]
    return {"role": "user", "content": [*(before or []), *results, *(after or [])]}


def said(*blocks: JSON) -> JSON:
    return {"role": "assistant", "content": list(blocks)}


def text(words: str, **more: Any) -> JSON:
    return {"type": "text", "text": words, **more}


def claude(*messages: JSON, **more: Any) -> JSON:
    return {"model": "claude-haiku-4-5", "max_tokens": 4096, "messages": list(messages), **more}


def thinking(**more: Any) -> JSON:
    return {"type": "thinking", "thinking": "hm", "signature": "c2ln", **more}


def png(width: int, height: int) -> JSON:
    head = (
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", width, height) + b"\x08\x06" * 9
    )
    data = base64.b64encode(head).decode()
    source = {"type": "base64", "media_type": "image/png", "data": data}
    return {"type": "image", "source": source}


ENABLED = {"type": "enabled", "budget_tokens": 2048}
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
FAILED = {"type": "tool_result", "tool_use_id": "t1", "is_error": True}

ANTHROPIC = [
    Example(
        "A1",
        claude(ASK, use("t1")),
        "$.messages[1].content[0]",
        claude(ASK, use("t1"), answer("t1")),
    ),
    Example(
        "A1",
        claude(ASK, use("t1", "t2"), answer("t1")),
        "$.messages[1].content[1]",
        claude(ASK, use("t1", "t2"), answer("t1"), answer("t2")),  # the API joins the two
    ),
    Example(
        "A2", claude(answer("t1")), "$.messages[0].content[0]", claude(ASK, use("t1"), answer("t1"))
    ),
    Example(
        "A3",
        claude(ASK, use("t1"), answer("t1", before=[text("Here:")])),
        "$.messages[2].content[1]",
        claude(ASK, use("t1"), answer("t1", after=[text("Here it was.")])),
    ),
    Example(
        "A4",
        claude(ASK, use("t1", after=[text("Looking.")]), answer("t1")),
        "$.messages[1].content[1]",
        claude(ASK, use("t1", before=[text("Looking.")]), answer("t1")),
    ),
    Example(
        "A5",
        claude(ASK, use("t1"), answer("t1"), use("t1"), answer("t1")),
        "$.messages[3].content[0]",
        claude(ASK, use("t1"), answer("t1"), use("t2"), answer("t2")),
    ),
    Example(
        "A5",
        claude(ASK, use("t1"), answer("t1", "t1")),
        "$.messages[2].content[1]",
        claude(ASK, use("t1"), answer("t1")),
    ),
    Example(
        "A6",
        claude(ASK, use("functions.ls:0"), answer("functions.ls:0")),
        "$.messages[1].content[0].id",
        claude(ASK, use("functions_ls_0"), answer("functions_ls_0")),
    ),
    Example(
        "A6",
        claude(ASK, tools=[{"name": "list files", "input_schema": {}}]),
        "$.tools[0].name",
        claude(ASK, tools=[{"name": "list_files", "input_schema": {}}]),
    ),
    Example(
        "A7",
        claude({"role": "user", "content": [text("hi"), text("")]}),
        "$.messages[0].content[1]",
        claude({"role": "user", "content": [text("hi")]}),
    ),
    Example(
        "A7",
        claude({"role": "user", "content": " \n"}),
        "$.messages[0].content",
        # A lone space before a call is what Claude itself wrote (recorded, accepted).
        claude(ASK, use("t1", before=[text(" ")]), answer("t1")),
    ),
    Example(
        "A7",
        claude({"role": "user", "content": []}),
        "$.messages[0].content",
        claude(ASK, {"role": "assistant", "content": []}),
    ),
    Example(
        "A7",
        claude(ASK, {"role": "assistant", "content": []}, ASK),
        "$.messages[1].content",
        claude(ASK, {"role": "assistant", "content": ""}),
    ),
    Example(
        "A8",
        claude(ASK, use("t1"), {"role": "user", "content": [{**FAILED, "content": ""}]}),
        "$.messages[2].content[0]",
        claude(
            ASK, use("t1"), {"role": "user", "content": [{**FAILED, "content": "no such file"}]}
        ),
    ),
    Example(
        "A9",
        claude(),
        "$.messages",
        # Recorded: requests that begin with the assistant were answered.
        claude({"role": "assistant", "content": "I can help."}, ASK, ASK),
    ),
    Example(
        "A10",
        claude(ASK, {"role": "assistant", "content": "The"}, model="claude-sonnet-4-6"),
        "$.messages[1]",
        claude(ASK, {"role": "assistant", "content": "The"}, model="claude-sonnet-4-5-20250929"),
    ),
    Example(
        "A10",
        claude(ASK, {"role": "assistant", "content": "The answer is "}),
        "$.messages[1].content",
        claude(ASK, {"role": "assistant", "content": "The answer is"}),
    ),
    Example(
        "A11",
        claude(ASK, use("t1"), answer("t1"), thinking=ENABLED),
        "$.messages[1]",
        claude(ASK, use("t1", before=[thinking()]), answer("t1"), thinking=ENABLED),
    ),
    Example(
        "A12",
        claude(ASK, use("t1", before=[thinking(signature="")]), answer("t1")),
        "$.messages[1].content[0]",
        claude(ASK, use("t1", before=[{"type": "redacted_thinking", "data": "x"}]), answer("t1")),
    ),
    Example(
        "A13",
        claude(
            ASK,
            {
                "role": "assistant",
                "content": [{"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}],
            },
            ASK,
        ),
        "$.messages[1].content[0]",
        claude(
            ASK,
            {
                "role": "assistant",
                "content": [
                    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
                    {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
                ],
            },
            ASK,
        ),
    ),
    Example(
        "A14",
        claude({"role": "user", "content": [text(str(n), cache_control=MARK) for n in range(5)]}),
        "$.messages[0].content[4]",
        claude({"role": "user", "content": [text(str(n), cache_control=MARK) for n in range(4)]}),
    ),
    Example(
        "A14",
        claude(
            {"role": "user", "content": [text("q", cache_control=HOUR)]},
            system=[text("s", cache_control=MARK)],
        ),
        "$.messages[0].content[0]",
        claude(
            {"role": "user", "content": [text("q", cache_control=MARK)]},
            system=[text("s", cache_control=HOUR)],
        ),
    ),
    Example(
        "A14",
        claude(ASK, use("t1", before=[thinking(cache_control=MARK)]), answer("t1")),
        "$.messages[1].content[0]",
        claude(ASK, use("t1", before=[thinking()]), answer("t1")),
    ),
    Example(
        "A15",
        claude(ASK, thinking={"type": "enabled", "budget_tokens": 1000}),
        "$.thinking.budget_tokens",
        claude(ASK, thinking={"type": "enabled", "budget_tokens": 1024}),
    ),
    Example(
        "A15",
        claude(ASK, thinking={"type": "enabled", "budget_tokens": 4096}),
        "$.thinking.budget_tokens",
        claude(
            ASK,
            thinking={"type": "enabled", "budget_tokens": 4096},
            tools=[{"name": "ls", "input_schema": {}}],  # may be interleaved
        ),
    ),
    Example(
        "A15",
        claude(ASK, thinking=ENABLED, tool_choice={"type": "any"}),
        "$.tool_choice",
        claude(ASK, thinking=ENABLED, tool_choice={"type": "auto"}),
    ),
    Example(
        "A16",
        claude({"role": "user", "content": [png(8001, 10)]}),
        "$.messages[0].content[0]",
        claude({"role": "user", "content": [png(8000, 8000)]}),
    ),
    Example(
        "A16",
        claude({"role": "user", "content": [png(1, 1)] * 101}),
        "$.messages[0].content[100]",
        claude({"role": "user", "content": [png(1, 1)] * 100}),
    ),
    Example(
        "A16",
        claude(*[ASK] * 100_001),
        "$.messages[100000]",
        claude(*[ASK] * 100_000),
    ),
    Example(
        "A17",
        claude(
            *(ASK, said(thinking(), text("a")), ASK, said(text("b")), ASK),
            *(said(thinking(), text("c")), ASK),
            model="claude-opus-5-5",
            thinking=ENABLED,
        ),
        "$.messages[3]",
        claude(
            *(ASK, said(text("a")), ASK, said(text("b")), ASK),  # the front may go
            *(use("t1", before=[thinking()]), answer("t1"), said(text("c")), ASK),
            *(said(thinking(), text("d")), ASK),
            model="claude-opus-5-5",
            thinking=ENABLED,
        ),
    ),
    Example(
        "A18",
        claude(ASK, said(text("a")), INSTRUCTED, said(text("b")), ASK),
        "$.messages[2]",
        claude(ASK, INSTRUCTED, INSTRUCTED, said(text("b")), EFFORT, ASK),
    ),
    Example(
        "A18",
        claude(ASK, INSTRUCTED, ASK),
        "$.messages[1]",
        claude(ASK, use("t1"), answer("t1"), INSTRUCTED),
    ),
]

# --- OpenAI Chat -------------------------------------------------------------------------------


def call(*ids: str, arguments: str = "{}", **more: Any) -> JSON:
    function = {"name": "ls", "arguments": arguments}
    calls = [{"id": i, "type": "function", "function": function} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def result(call_id: str, content: Any = "a.txt") -> JSON:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def gpt(*messages: JSON, **more: Any) -> JSON:
    return {"model": "gpt-4o", "messages": list(messages), **more}


def function(name: str) -> JSON:
    return {"type": "function", "function": {"name": name}}


LONG = 10_485_760

CHAT = [
    Example(
        "C1", gpt(ASK, call("a")), "$.messages[1].tool_calls[0]", gpt(ASK, call("a"), result("a"))
    ),
    Example(
        "C1",
        gpt(ASK, call("a", "b"), result("b"), ASK, result("a")),
        "$.messages[1].tool_calls[0]",
        gpt(ASK, call("a", "b"), result("b"), result("a"), ASK),
    ),
    Example("C2", gpt(ASK, result("a")), "$.messages[1]", gpt(ASK, call("a"), result("a"))),
    Example(
        "C2",
        gpt(ASK, call("a"), result("a"), ASK, call("b"), result("b"), result("a")),
        "$.messages[6]",
        gpt(ASK, call("a"), result("a"), ASK, call("b"), result("b")),
    ),
    Example(
        "C2",
        gpt(ASK, {"role": "tool", "content": "{}"}),
        "$.messages[1]",
        # Recorded: Ollama takes a result without an id.
        gpt(ASK, {"role": "tool", "content": "{}"}, model="llama3.2"),
    ),
    Example(
        "C1",
        gpt(ASK, call("a"), ASK),
        "$.messages[1].tool_calls[0]",
        # The rule is about tool_calls; the older function_call was never held to it.
        gpt(
            ASK,
            {"role": "assistant", "content": None, "function_call": {"name": "f"}},
            {"role": "function", "name": "g", "content": "{}"},
        ),
    ),
    Example(
        "C3",
        gpt({"role": "user", "content": None}),
        "$.messages[0].content",
        gpt(ASK, call("a"), result("a", ""), {"role": "assistant", "content": ""}, ASK),
    ),
    Example("C4", gpt(), "$.messages", gpt(ASK)),
    Example(
        "C4",
        gpt(ASK, {"role": "assistant", "content": "x", "tool_calls": []}),
        "$.messages[1].tool_calls",
        gpt(ASK, {"role": "assistant", "content": "x"}),
    ),
    Example(
        "C4",
        gpt(ASK, tools=[function("a b")]),
        "$.tools[0].function.name",
        gpt(ASK, tools=[function("a_b")]),
    ),
    Example(
        "C5",
        gpt(ASK, call("x" * 41), result("x" * 41)),
        "$.messages[1].tool_calls[0].id",
        gpt(ASK, call("x" * 40), result("x" * 40)),
    ),
    Example(
        "C5",
        gpt(ASK, tools=[function(f"f{n}") for n in range(129)]),
        "$.tools[128]",
        gpt(ASK, tools=[function(f"f{n}") for n in range(128)]),
    ),
    Example(
        "C5",
        gpt(ASK, call(*map(str, range(129))), *(result(str(n)) for n in range(129))),
        "$.messages[1].tool_calls",
        gpt(ASK, call(*map(str, range(128))), *(result(str(n)) for n in range(128))),
    ),
    Example(
        "C6",
        gpt({"role": "user", "content": "x" * (LONG + 1)}),
        "$.messages[0].content",
        gpt({"role": "user", "content": "x" * LONG}),
    ),
    Example(
        "C6",
        gpt(ASK, call("a", arguments="x" * (LONG + 1)), result("a")),
        "$.messages[1].tool_calls[0]",
        # The limit is one string's, not their sum's.
        gpt(ASK, call("a"), {**result("a"), "content": [text("x" * (LONG // 2 + 1))] * 2}),
    ),
    Example(
        "C6",
        gpt({"role": "user", "content": "x" * 1_048_577}, model="gpt-4"),
        "$.messages[0].content",
        gpt({"role": "user", "content": "x" * 1_048_576}, model="gpt-4"),
    ),
    Example(
        "C7",
        gpt(ASK, call("a"), result("a", [text("x")]), model="deepseek-chat"),
        "$.messages[2].content",
        gpt(ASK, call("a"), result("a", [text("x")]), model="mistral-small-latest"),
    ),
]

# --- OpenAI Responses --------------------------------------------------------------------------


def gpt5(*items: JSON, **more: Any) -> JSON:
    return {"model": "gpt-5", "input": list(items), **more}


def fcall(call_id: str, **more: Any) -> JSON:
    return {"type": "function_call", "call_id": call_id, "name": "ls", "arguments": "{}", **more}


def output(call_id: str) -> JSON:
    return {"type": "function_call_output", "call_id": call_id, "output": "a.txt"}


REASONING: JSON = {"type": "reasoning", "id": "rs_1", "summary": []}
SAID: JSON = {"type": "message", "role": "assistant", "content": "hello"}

RESPONSES = [
    Example("R1", gpt5(ASK, fcall("a")), "$.input[1]", gpt5(ASK, fcall("a"), output("a"))),
    Example(
        "R1", gpt5(ASK, output("a")), "$.input[1]", gpt5(output("a"), previous_response_id="resp_1")
    ),
    Example("R2", gpt5(ASK, REASONING, ASK), "$.input[1]", gpt5(ASK, REASONING, SAID, ASK)),
    Example(
        "R2", gpt5(ASK, REASONING), "$.input[1]", gpt5(ASK, REASONING, fcall("a"), output("a"))
    ),
    Example(
        "R3",
        gpt5(ASK, REASONING, SAID, store=False),
        "$.input[1]",
        gpt5(ASK, {**REASONING, "encrypted_content": "x"}, SAID, store=False),
    ),
    Example(
        "R3",
        gpt5({"type": "item_reference", "id": "msg_1"}, ASK, store=False),
        "$.input[0]",
        gpt5({"type": "item_reference", "id": "msg_1"}, ASK, store=True),
    ),
    Example(
        "R4",
        gpt5(ASK, fcall("a", id="call_1"), output("a")),
        "$.input[1].id",
        gpt5(ASK, fcall("a", id="fc_1"), output("a")),
    ),
    Example(
        "R4",
        gpt5(ASK, fcall("x" * 65), output("x" * 65)),
        "$.input[1].call_id",
        gpt5(ASK, fcall("x" * 64), output("x" * 64)),
    ),
    Example("R5", gpt5(), "$.input", gpt5(previous_response_id="resp_1")),
    Example(
        "R5",
        gpt5({"role": "user", "content": "x" * (LONG + 1)}),
        "$.input[0].content",
        gpt5({"role": "user", "content": "x" * LONG}),
    ),
]

# --- Gemini ------------------------------------------------------------------------------------


def user(*parts: Any) -> JSON:
    return {"role": "user", "parts": list(parts)}


def model(*parts: JSON) -> JSON:
    return {"role": "model", "parts": list(parts)}


def gcall(name: str = "ls", **more: Any) -> JSON:
    return {"functionCall": {"name": name, "args": {}, **more}}


def reply(name: str = "ls", **more: Any) -> JSON:
    return {"functionResponse": {"name": name, "response": {"output": "a.txt"}, **more}}


def gemini(*contents: JSON, **more: Any) -> JSON:
    return {"contents": list(contents), **more}


SAY = {"text": "What is in the folder?"}
SIGNED = {**gcall(), "thoughtSignature": "c2ln"}


def declared(name: str) -> list[JSON]:
    return [{"functionDeclarations": [{"name": name}]}]


GEMINI = [
    Example(
        "G1", gemini({"role": "assistant", "parts": [SAY]}), "$.contents[0].role", gemini(user(SAY))
    ),
    Example(
        "G1",
        gemini(user(SAY), model(gcall(), reply()), user(SAY)),
        "$.contents[1].parts[1]",
        gemini(user(SAY), model(gcall()), {"role": "function", "parts": [reply()]}),
    ),
    Example(
        "G2",
        gemini(model(gcall()), user(reply())),
        "$.contents[0]",
        gemini(user(SAY), model(gcall()), user(reply())),
    ),
    Example(
        "G3",
        gemini(user(SAY), model(gcall(), gcall("cat")), user(reply())),
        "$.contents[2]",
        gemini(user(SAY), model(gcall(), gcall("cat")), user(reply(), reply("cat"))),
    ),
    Example(
        "G3",
        gemini(user(SAY), model(gcall(id="1")), user(reply(id="2"))),
        "$.contents[2]",
        # Recorded: two contents of the model in a row are one turn.
        gemini(
            user(SAY),
            model(gcall(id="1")),
            model(gcall(id="2")),
            user(reply(id="2"), reply(id="1")),
        ),
    ),
    Example("G4", gemini(user()), "$.contents[0].parts", gemini(user(SAY))),
    Example(
        "G4",
        gemini(user(SAY, {})),
        "$.contents[0].parts[1]",
        gemini(user(SAY, {"thoughtSignature": "x"})),
    ),
    Example(
        "G4",
        gemini(user({**SAY, "type": "text"})),
        "$.contents[0].parts[0]",
        gemini(user({**SAY, "thought": False})),
    ),
    Example("G4", gemini(), "$.contents", gemini(user(SAY))),
    Example(
        "G4",
        gemini(user(SAY, {"text": None})),
        "$.contents[0].parts[1]",
        gemini({"role": "user", "parts": SAY}),
    ),
    Example(
        "G4",
        gemini({"role": "user", "parts": {"type": "text"}}, user(SAY)),
        "$.contents[0].parts",
        gemini(user(SAY, [SAY])),  # recorded: a list among the parts is taken
    ),
    Example("G4", gemini(user(SAY, "text")), "$.contents[0].parts[1]", gemini(user(SAY))),
    Example("G4", gemini({**user(SAY), "id": "1"}), "$.contents[0]", gemini(user(SAY))),
    Example(
        "G5",
        gemini(user(SAY), model(gcall()), user(reply())),
        "$.contents[1].parts[0]",
        # Only the first call of a step, and only in the current turn.
        gemini(
            user(SAY),
            model(gcall()),
            user(reply()),
            user(SAY),
            model(SIGNED, gcall()),
            user(reply(), reply()),
        ),
        model="gemini-3-pro-preview",
    ),
    Example(
        "G6",
        gemini(user(SAY), model(SAY)),
        "$.contents[1]",
        gemini(user(SAY), model(SAY), user(SAY)),
        model="gemini-2.5-flash",
    ),
    Example(
        "G6",
        gemini(user(SAY), tools=declared("1st")),
        "$.tools[0].functionDeclarations[0].name",
        gemini(user(SAY), tools=declared("first")),
    ),
    Example(
        "G6",
        gemini(user(SAY), tools=[{"function_declarations": [{"name": "1st"}]}]),
        "$.tools[0].function_declarations[0].name",
        gemini(user(SAY), tools=[{"function_declarations": [{"name": "first"}]}]),
    ),
]

# --- Bedrock Converse --------------------------------------------------------------------------

HELLO: JSON = {"role": "user", "content": [{"text": "What is in the folder?"}]}
OFFERED = {"tools": [{"toolSpec": {"name": "ls", "inputSchema": {"json": {"type": "object"}}}}]}


def bedrock(*messages: JSON, **more: Any) -> JSON:
    return {"messages": list(messages), "toolConfig": OFFERED, **more}


def tool_use(*ids: str) -> JSON:
    calls = [{"toolUse": {"toolUseId": i, "name": "ls", "input": {}}} for i in ids]
    return {"role": "assistant", "content": calls}


def tool_result(*ids: str, **more: Any) -> JSON:
    given = {"content": [{"text": "a.txt"}], **more}
    return {"role": "user", "content": [{"toolResult": {"toolUseId": i, **given}} for i in ids]}


CONVERSE = [
    Example(
        "B1",
        # Results in two messages are refused, as agno#6698 reports.
        bedrock(HELLO, tool_use("a", "b"), tool_result("a"), tool_result("b")),
        "$.messages[1].content[1]",
        bedrock(HELLO, tool_use("a", "b"), tool_result("b", "a")),
    ),
    Example(
        "B1",
        bedrock(HELLO, tool_use("a")),
        "$.messages[1].content[0]",
        bedrock(HELLO, tool_use("a"), tool_result("a")),
    ),
    Example(
        "B2",
        bedrock(HELLO, tool_result("a")),
        "$.messages[1].content[0]",
        # Recorded: two user messages in a row are taken.
        bedrock(HELLO, tool_use("a"), tool_result("a"), HELLO),
    ),
    Example(
        "B3",
        bedrock({"role": "assistant", "content": [{"text": "Hi."}]}, HELLO),
        "$.messages[0]",
        bedrock(HELLO, {"role": "assistant", "content": [{"text": "Hi."}]}, HELLO),
    ),
    Example(
        "B4",
        bedrock({"role": "user", "content": [{"text": "hi"}, {"text": " "}]}),
        "$.messages[0].content[1]",
        bedrock(HELLO),
    ),
    Example(
        "B4",
        bedrock(HELLO, {"role": "assistant", "content": []}, HELLO),
        "$.messages[1].content",
        bedrock(HELLO, HELLO),
    ),
    Example("B4", bedrock(), "$.messages", bedrock(HELLO)),
    Example(
        "B5",
        bedrock(HELLO, tool_use("a"), tool_result("a", content=[], status="error")),
        "$.messages[2].content[0]",
        bedrock(HELLO, tool_use("a"), tool_result("a", content=[], status="success")),
    ),
    Example(
        "B6",
        bedrock(HELLO, tool_use("a" * 65), tool_result("a" * 65)),
        "$.messages[1].content[0]",
        bedrock(HELLO, tool_use("a.b:c-d_" * 8), tool_result("a.b:c-d_" * 8)),
    ),
    Example(
        "B7",
        {"messages": [HELLO, tool_use("a"), tool_result("a")]},
        "$.messages[1]",
        {"messages": [HELLO]},
    ),
]

# --- every dialect -----------------------------------------------------------------------------

SHAPE = [
    Example("S1", gpt({"role": "robot", "content": "x"}), "$.messages[0].role", gpt(ASK)),
    Example("S1", claude({"role": "user", "content": 5}), "$.messages[0].content", claude(ASK)),
    Example("S1", {"messages": "hello"}, "$.messages", gpt(ASK), dialect="openai-chat"),
    Example(
        "S2", gpt({"role": "user", "content": "half \ud83d"}), "$.messages[0].content", gpt(ASK)
    ),
]

EXAMPLES = [*ANTHROPIC, *CONVERSE, *CHAT, *RESPONSES, *GEMINI, *SHAPE]
ids = [f"{example.rule}-{n}" for n, example in enumerate(EXAMPLES)]


@pytest.mark.parametrize("example", EXAMPLES, ids=ids)
def test_the_rule_catches_the_bad_and_passes_the_good(example: Example) -> None:
    dialect = example.dialect or RULES[example.rule].dialect or detect(example.good)
    caught = [v for v in validate(example.bad, dialect, example.model) if v.rule == example.rule]
    assert caught[0].path == example.path
    assert caught[0].message
    assert validate(example.good, dialect, example.model) == []


def test_every_rule_has_an_example_and_a_source() -> None:
    assert {example.rule for example in EXAMPLES} == set(RULES)
    for rule in RULES.values():
        assert rule.source
        assert rule.text.endswith(".")
        assert rule.dialect in (*DIALECTS, "")


def test_a_whole_report_comes_at_once() -> None:
    body = claude({"role": "user", "content": ""}, use("t1"), use("t1"), tools=[{"name": "a b"}])
    assert {v.rule for v in validate(body)} == {"A1", "A5", "A6", "A7"}


def test_misshapen_messages_do_not_hide_the_rest() -> None:
    body = gpt({"role": "robot"}, ASK, result("gone"))
    assert [(v.rule, v.path) for v in validate(body)] == [
        ("S1", "$.messages[0].role"),
        ("C2", "$.messages[2]"),
    ]


def test_only_misshapen_messages_are_not_called_missing_as_well() -> None:
    assert [v.rule for v in validate(gpt({"role": "robot"}))] == ["S1"]


def test_a_conversation_is_validated_as_its_bytes_are() -> None:
    for example in EXAMPLES:
        if example.rule.startswith("S") or example.path == "$.contents[0].role":
            continue
        dialect = RULES[example.rule].dialect
        conversation = read(example.bad, dialect)
        assert validate(conversation, model=example.model) == validate(
            example.bad, dialect, example.model
        )


@pytest.mark.parametrize(
    ("name", "takes_prefill"),
    [
        ("claude-3-opus-20240229", True),
        ("claude-3-5-sonnet-latest", True),
        ("claude-sonnet-4-20250514", True),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", True),
        ("claude-sonnet-4-6", False),
        ("claude-opus-4-8", False),
        ("claude-sonnet-5", False),
        ("claude-opus-4.6", False),
        ("some-other-model", True),
    ],
)
def test_prefill_depends_on_the_version_of_claude(name: str, takes_prefill: bool) -> None:
    body = claude(ASK, {"role": "assistant", "content": "The"}, model=name)
    assert (validate(body, "anthropic") == []) == takes_prefill


def test_a_list_of_strings_is_no_list_of_messages() -> None:
    for dialect, key in (("openai-responses", "input"), ("cohere", "messages")):
        caught = validate({key: ["hello"]}, dialect)
        assert ("S1", f"$.{key}[0]") in [(v.rule, v.path) for v in caught]


def test_ids_of_another_type_are_no_ids() -> None:
    body = claude(ASK, use("t1"), answer("t1"))
    body["messages"][1]["content"][0]["id"] = None
    body["messages"][2]["content"][0]["tool_use_id"] = None
    assert [v.rule for v in validate(body)] == ["A6"]


def test_the_model_may_be_given_beside_the_body() -> None:
    body = {"max_tokens": 1, "messages": [ASK, {"role": "assistant", "content": "The"}]}
    assert validate(body, "anthropic") == []
    assert [v.rule for v in validate(body, "anthropic", "claude-opus-4-8")] == ["A10"]
