"""Map a model id to its family: the vocabulary and constants that count it, and their accuracy.

constants.toml holds each family's numbers, provenance.toml their source and measured error. Ids are
reduced to the bare model name, because gateways, Bedrock, Ollama and deployments add prefixes and
tags; then the first matching rule wins.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Literal

import msgspec

from holdfast.errors import SettingsError
from holdfast.tokens.provider_ids import MAX_LENGTH, ProviderId

Accuracy = Literal["exact", "calibrated", "heuristic"]
UNKNOWN = "unknown"

_TAG = re.compile(r"(:free|:beta|:thinking|:extended|:online|:nitro|:floor|:latest)$")
_REGION = re.compile(r"^(us|eu|apac|jp|au|ca|global|us-gov)\.")
_VENDOR = re.compile(r"^(anthropic|amazon|meta|openai|google)\.")
_DEPLOYMENT = re.compile(r"^(databricks|azure|snowflake|vertex|bedrock)-")

_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), family)
    for pattern, family in (
        # OpenAI
        (r"gpt-oss", "openai/gpt-oss"),
        (r"gpt-5\.", "openai/gpt-5.x"),
        (r"gpt-5", "openai/gpt-5"),
        (r"^o1", "openai/o1"),
        (r"^o[3-9]", "openai/o-series"),
        (r"gpt-4o|gpt-4\.|gpt-audio|gpt-realtime|chatgpt-4o|codex-mini", "openai"),
        (r"^gpt-4(-0613|-0314|-32k.*)?$", "openai/gpt-4-0613"),
        (r"gpt-4|gpt-3\.5|gpt-35", "openai/cl100k"),
        # Anthropic; older names put the version before the size.
        (r"claude-(sonnet|opus|haiku|fable)-([5-9]|4-[7-9])", "claude/5"),
        (r"claude-(sonnet|opus|haiku)-4-[5-6]", "claude/4-5"),
        (r"claude-(sonnet|opus)-4|claude-4-(sonnet|opus)", "claude/4"),
        (r"claude-(3-7-sonnet|3-5-sonnet|3-5-haiku|3-opus|3-haiku)", r"claude/\1"),
        (r"claude-3-sonnet", "claude/3-sonnet"),
        (r"claude-(2|v2|instant)", "claude/3-haiku"),
        (r"claude|^(sonnet|opus|haiku)\b", "claude/4-5"),
        # Google
        (r"gemini-(1|2-0|2\.0)", "gemini/2.0"),
        (r"gemini-[3-9]|gemini-(flash|pro|flash-lite)-latest", "gemini/3"),
        (r"gemini|^(flash|pro)\b", "gemini"),
        (r"gemma", "gemma"),
        # others
        (r"nova-(2|premier)", "nova/2"),
        (r"nova", "nova"),
        (r"grok-(2|beta|vision)", "grok/2"),
        (r"grok-3", "grok/3"),
        (r"grok-code", "grok/code"),
        (r"grok-4-0709|grok-4$", "grok/4"),
        (r"grok-4[.-][2-9]", "grok/4.3"),
        (r"grok-4[.-]1", "grok/4.1-fast"),
        (r"grok", "grok/4-fast"),
        (r"deepseek-r1-distill-llama", "deepseek/r1"),
        (r"llama-?guard", "llama-guard"),
        (r"llama-?4", "llama/4"),
        (r"llama-?v?3[p.-]?[123]([^0-9]|$)", "llama/3.1"),
        (r"llama|hermes", "llama/3"),
        (r"kimi|moonshot", "kimi"),
        (r"glm-?5[.-][2-9]", "glm/5.2"),
        (r"glm-?(5|4[.-]7)", "glm/5"),
        (r"glm", "glm"),
        (r"qwen3-coder", "qwen/coder"),
        (r"qwen-?2", "qwen/2.5"),
        (r"qwen|qwq|qvq", "qwen"),
        (r"deepseek-(v4|[5-9])", "deepseek/v4"),
        (r"deepseek-v?3[.-]2", "deepseek/v3.2"),
        (r"deepseek[.-](r1|reasoner)", "deepseek/r1"),
        (r"deepseek", "deepseek"),
        (r"ministral-(3b|14b)", "mistral/3b"),
        (r"mistral-small-(2506|3[.-]2)", "mistral/small-2506"),
        (r"mistral|mixtral|ministral|magistral|pixtral|codestral|devstral|voxtral", "mistral"),
        (r"command-a-plus", "cohere/a-plus"),
        (r"command-a", "cohere/a"),
        (r"command-r7b", "cohere/r7b"),
        (r"command|c4ai|aya", "cohere/r"),
        (r"minimax", "minimax"),
        (r"phi-?[34]", "phi"),
    )
)

# Providers whose unrecognised model names are counted like their newest models, as "newer".
_NEWER = {
    "openai": "openai/newer",
    "codex": "openai/newer",
    "anthropic": "claude/newer",
    "claude": "claude/newer",
    "gemini": "gemini/newer",
}

# Platforms that reach Gemini through Vertex, which counts tools as bare strings.
_ON_VERTEX = frozenset({"vertex", "openrouter", "vercel"})


class Constants(msgspec.Struct, frozen=True):
    """The constants of one family; a missing number is 0."""

    family: str
    values: Mapping[str, Any]
    root: str
    """First part of the family's name; selects the renderer."""
    accuracy: Accuracy
    """How reliable counts of this family are."""

    def __getitem__(self, key: str) -> float:
        return float(self.values.get(key, 0))

    def text(self, key: str) -> str:
        """Return a constant that is text, such as a vocabulary or a style."""
        return str(self.values.get(key, ""))


class Description(msgspec.Struct, frozen=True):
    """How a model is counted: family, vocabulary and accuracy."""

    family: str
    vocabulary: str
    accuracy: Accuracy


class Provenance(msgspec.Struct, frozen=True):
    """The recordings from which a family's constants were fitted."""

    records: int
    """Number of recorded requests."""
    repositories: int
    """Number of public repositories with these recordings."""
    median_error_percent: float
    p95_error_percent: float


def describe(model: str) -> Description:
    """Describe how a model is counted, for tables and reports."""
    numbers = constants(family_of(model))
    # Claude's vocabulary is not public; a weighted sum of two public ones estimates it.
    vocabulary = "o200k_base + llama2" if numbers.root == "claude" else numbers.text("vocabulary")
    return Description(numbers.family, vocabulary, numbers.accuracy)


def bare_name(model: str) -> str:
    """Return a model id without gateway path, region, vendor prefix, tag or spelling variants."""
    name = model.strip().lower()
    name = name.rsplit("/", 1)[-1]
    name = _TAG.sub("", name)
    name = _VENDOR.sub("", _REGION.sub("", name))
    name = _DEPLOYMENT.sub("", name)
    if "claude" in name:
        name = name.replace(".", "-").replace("@", "-").replace("_", "-")
    return name


def family_of(model: str) -> str:
    """Return the name of the family that counts a model."""
    return _family_of(model[:MAX_LENGTH])


@lru_cache(maxsize=4096)
def _family_of(model: str) -> str:
    provider, name = _split(model)
    for pattern, family in _RULES:
        match = pattern.search(name)
        if match:
            return match.expand(family)
    return _NEWER.get(provider, UNKNOWN)


@lru_cache(maxsize=4096)
def _split(model: str) -> tuple[str, str]:
    """Return the provider of a model and its bare name."""
    try:
        id_ = ProviderId.parse(model)
    except SettingsError:  # not a valid id, but it may contain a model name
        return "", bare_name(model)
    return id_.provider, bare_name(id_.model)


def family_constants(model: str, dialect: str, platform: str = "") -> Constants:
    """Return the constants for a model in a dialect on a platform.

    `platform` is the request's destination (`vertex`, `openrouter`, `groq`, `ollama`, …); it
    matters where the server decides how tools are rendered. If it is empty, the id's prefix is
    used: `groq:llama-3.3-70b-versatile`, `qwen3:8b`.
    """
    return _resolve_cached(model[:MAX_LENGTH], dialect, platform)


@lru_cache(maxsize=4096)
def _resolve_cached(model: str, dialect: str, platform: str) -> Constants:
    name = _family_of(model)
    platform = platform or _split(model)[0]
    if name.startswith("gemini") and platform in _ON_VERTEX:
        name = "gemini/2.0"
    if dialect == "gemini" and not name.startswith("gemini"):
        name = "gemini"
    wire = "responses" if dialect == "openai-responses" else dialect
    for special in (f"{name}@{platform}:{wire}", f"{name}@{platform}", name):
        if special in _table():
            return constants(special)
    return constants(UNKNOWN)


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    text = (files("holdfast.tokens") / "constants.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["family"]  # type: ignore[no-any-return]


@cache
def provenance(family: str) -> Provenance | None:
    """Return the recordings behind a family's constants; None if it was never recorded."""
    text = (files("holdfast.tokens") / "provenance.toml").read_text(encoding="utf-8")
    recorded = tomllib.loads(text)["provenance"].get(family)
    return msgspec.convert(recorded, Provenance) if recorded else None


@cache
def constants(family: str) -> Constants:
    """Return a family's constants, including those inherited from its parent."""
    own = dict(_table()[family])
    parent = own.pop("inherits", None)
    values = {**constants(parent).values, **own} if parent else own
    root = re.split(r"[/@]", family)[0]
    return Constants(family, values, root, values.get("accuracy", "calibrated"))
