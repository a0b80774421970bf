"""The facts in a request's body: its model, the maximum answer, the objects it refers to.

The body is read once for both the daily limits and the objects that it names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from holdfast.surfaces.proxy.provider_objects import references
from holdfast.tokens.limits import ModelContextRegistry
from holdfast.upstream.upstreams import Family
from holdfast.wire.strict import parse

_LONGEST = frozenset(
    {"maxtokens", "maxcompletiontokens", "maxoutputtokens", "maxtokenstosample"}
)  # fmt: skip
_ANSWERS = frozenset({"n", "bestof", "candidatecount", "samplecount"})
_CONFIGS = frozenset({"generationconfig", "inferenceconfig", "textgenerationconfig"})
_ADDRESSES = frozenset({"url", "imageurl", "fileurl", "fileuri", "audiourl", "videourl"})
_OWN_TOOLS = frozenset({"function", "custom", "", None})
_BYTES_PER_TOKEN = 3
"""Of a request whose use is never reported; most text has four."""
_NO_ANSWER = re.compile(
    r".*(?:/(?:embeddings|embed|rerank|classify|speech|search)|:(?:embedContent|batchEmbedContents))"
)
_FREE = re.compile(
    r"/(?:v1|openai/v1|api/v1|v1beta|v1alpha|upload/v1|upload/v1beta|v2)/(?:"
    r"(?:files|uploads|conversations|containers|cachedContents)(?:/[\w-][\w.-]*)*"
    r"|vector_stores(?:/[\w-]+(?:/(?:files|file_batches)(?:/[\w-]+)*)?)?"
    r"|responses/[\w-]+/cancel|messages/batches/[\w-]+/cancel"
    r"|moderations|tokenize|detokenize|messages/count_tokens|responses/input_tokens"
    r"|models/[\w.-]+:countTokens)",
    re.ASCII,
)


def is_free(method: str, path: str, *, has_body: bool) -> bool:
    """Return whether no provider bills tokens for a request; `path` has single slashes."""
    if method in ("GET", "HEAD", "OPTIONS", "DELETE") and not has_body:
        return True
    return _FREE.fullmatch(path) is not None


class RequestFacts(NamedTuple):
    """The facts in a body."""

    size: int
    """Bytes."""
    model: str = ""
    output: int | None = None
    """Maximum tokens of all answers together; None if the request sets none."""
    is_held: bool = False
    """Whether the provider adds to the input: files, addresses, a history, its own tools."""
    names: frozenset[str] = frozenset()
    """Objects at the provider."""
    is_background: bool = False
    """Whether the provider continues the answer after its client has left."""


def read_facts(body: bytes, family: Family) -> RequestFacts:
    """Return the facts in a body; WireError if it is not strict JSON."""
    value = parse(body) if body else None
    if not isinstance(value, dict):
        return RequestFacts(len(body), is_held=True)
    names = frozenset(references(value, family))
    model = value.get("model")
    return RequestFacts(
        size=len(body),
        model=model if isinstance(model, str) else "",
        output=_longest_output(value),
        is_held=bool(names) or _is_held(value),
        names=names,
        is_background=bool(value.get("background")),
    )


def _key(name: str) -> str:
    return name.lower().replace("_", "")


def _longest_output(value: dict[str, Any]) -> int | None:
    """Return the sum over all answers; None if it is not set."""
    batch = value.get("requests")
    if isinstance(batch, list):  # Anthropic's batches
        params = [item.get("params") for item in batch if isinstance(item, dict)]
        outputs = [_longest_output(item) for item in params if isinstance(item, dict)]
        set_outputs = [output for output in outputs if output is not None]
        return sum(set_outputs) if set_outputs and len(set_outputs) == len(batch) else None
    fields = list(_fields(value))
    longest = [count for name, count in fields if name in _LONGEST]
    answers = max((count for name, count in fields if name in _ANSWERS), default=1)
    # A background answer reports its use where nobody looks; but its bound is as true.
    return max(longest) * answers if longest else None


def _fields(value: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for name, inside in value.items():
        key = _key(name)
        if key in _CONFIGS and isinstance(inside, dict):
            yield from _fields(inside)
        elif isinstance(inside, int) and not isinstance(inside, bool) and inside > 0:
            yield key, inside


def _is_held(value: dict[str, Any]) -> bool:
    pending: list[Any] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending += item
        elif isinstance(item, dict):
            for name, inside in item.items():
                if _key(name) in _ADDRESSES and _is_address(inside):
                    return True
                if name == "tools" and _has_hosted(inside):
                    return True
                pending.append(inside)
    return False


def _is_address(value: Any) -> bool:
    address = value.get("url") if isinstance(value, dict) else value
    return isinstance(address, str) and not address.startswith("data:")


def _has_hosted(tools: Any) -> bool:
    """Return whether the provider runs one of the tools, and bills what that reads."""
    tool_list = tools if isinstance(tools, list) else []
    return any(
        isinstance(tool, dict)
        and (tool.get("type") not in _OWN_TOOLS or "googleSearch" in tool or "urlContext" in tool)
        for tool in tool_list
    )


class CallEstimate(NamedTuple):
    """Tokens that a call may use."""

    model: str
    input: int
    """At most: no tokenizer makes more tokens than there are bytes."""
    likely_input: int
    output: int
    is_background: bool = False

    @property
    def most(self) -> int:
        """Input and output at most."""
        return self.input + self.output


def estimate_call(
    facts: RequestFacts,
    registry: ModelContextRegistry,
    path: str,
    *,
    model: str = "",
    tokens: int | None = None,
) -> CallEstimate:
    """Return the maximum use of a request; `tokens` is its input if that was counted."""
    name = model or facts.model
    limits = registry.resolve(name) if name else registry.resolve("unknown:unknown")
    output = limits.max_output_tokens if facts.output is None else facts.output
    if _NO_ANSWER.fullmatch(path):
        output = 0
    counted = facts.size if tokens is None else tokens
    most = max(counted, limits.context_window) if facts.is_held else counted
    likely = facts.size // _BYTES_PER_TOKEN if tokens is None else tokens
    return CallEstimate(name, most, likely, output, facts.is_background)
