"""The OpenAI Agents SDK's `ToolOutputTrimmer` at its defaults; nothing can be asked back."""

from __future__ import annotations

from agents.extensions import ToolOutputTrimmer
from agents.run_config import CallModelData, ModelInputData

from benchmarks.peers.conversation import RESULT, Shrunk, messages, serve


def shrink(text: str, question: str) -> Shrunk:
    items = messages(text, question)
    call = {"type": "function_call", "call_id": "call_1", "name": "fetch", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": text}
    items[RESULT - 1 : RESULT + 1] = [call, output]
    given = ModelInputData(input=items, instructions=None)
    trimmed = ToolOutputTrimmer()(CallModelData(model_data=given, agent=None, context=None))
    shown = trimmed.input[RESULT]["output"]
    return Shrunk(shown, None, whole=shown == text)


if __name__ == "__main__":
    serve(shrink)
