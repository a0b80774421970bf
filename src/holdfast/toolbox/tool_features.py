"""Extract the features by which a tool is found: words by field, letter n-grams and a vector.

Features are extracted once and stored with the name of the indexer; those of another version or
embedder are extracted again, never compared. A schema is walked without recursion, without
following `$ref`, and up to a maximum of nodes: one that is nested ten thousand levels deep, or
refers to itself, costs no more than its first nodes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import msgspec
import numpy as np

from holdfast.models.protocol import Embedder
from holdfast.search.postings import encode_counts
from holdfast.search.vectors import quantise
from holdfast.search.words import fold, number_of, parts_of, terms_of, words_of
from holdfast.toolbox.tool import Tool

VERSION = 2
FIELDS = ("name", "description", "parameters", "server")
_MOST_CHARACTERS = 4_000
"""Maximum characters per field: a description begins with its topic."""
_MOST_NODES = 400
"""Maximum nodes of a schema; the largest real one seen has 250 with a name or a description."""
_GRAM = 4
_LONGEST_WORD = 40
_EMBEDDED, _EMBEDDED_SCHEMA = 1_000, 600
"""Characters of a description and of a schema that are embedded."""
_TEXT_WEIGHTS = (0.4, 0.6)
"""Weights of a tool's two texts in its vector, fitted on the tool data: see `_vector_texts`."""


class ToolFeatures(msgspec.Struct, frozen=True, array_like=True):
    """The features of a tool."""

    fields: tuple[bytes, ...]
    """The ids of each field's distinct words, 4 bytes each."""
    counts: tuple[bytes, ...]
    """How often each word occurs."""
    grams: bytes
    """Letter 4-grams of name and description, each once."""
    vector: bytes
    """A vector of its texts, mostly of name and description; empty without an embedder."""


def index_maker(embedder: Embedder | None) -> str:
    """Return the name of the indexer: its version and its embedder."""
    return f"{VERSION} {'words' if embedder is None else embedder.name}"


_decoder = msgspec.msgpack.Decoder(ToolFeatures)


def decode_features(read: bytes) -> ToolFeatures:
    """Decode features that `encode_features` encoded."""
    return _decoder.decode(read)


def encode_features(tools: Sequence[Tool], embedder: Embedder | None) -> list[bytes]:
    """Return each tool's encoded features; the embedder gets all texts in one call."""
    vectors = [b""] * len(tools)
    if embedder is not None and tools:
        vectors = [vector.tobytes() for vector in quantise(_vectors(tools, embedder))]
    return [
        msgspec.msgpack.encode(_extract(tool, vector))
        for tool, vector in zip(tools, vectors, strict=True)
    ]


def _vectors(tools: Sequence[Tool], embedder: Embedder) -> Any:
    """Return a vector per tool: of both its texts, or of the longer one if the embedder is slow."""
    pairs = [_vector_texts(tool) for tool in tools]
    if not embedder.is_quick:
        return embedder.embed([full_text for _, full_text in pairs])
    texts = [text for pair in pairs for text in pair]
    both = np.asarray(embedder.embed(texts), np.float32).reshape(len(tools), 2, -1)
    # The weighted sum of a query's two cosines equals the product with one vector.
    return np.einsum("npd,p->nd", both, np.array(_TEXT_WEIGHTS, np.float32))


def _extract(tool: Tool, vector: bytes) -> ToolFeatures:
    texts = (tool.name, tool.description, schema_text(tool.parameters), tool.server)
    fields = [encode_counts(Counter(extract_terms(text[:_MOST_CHARACTERS]))) for text in texts]
    grams = extract_grams(f"{tool.name} {tool.description[:_MOST_CHARACTERS]}")
    return ToolFeatures(
        fields=tuple(terms for terms, _ in fields),
        counts=tuple(counts for _, counts in fields),
        grams=np.fromiter(grams, dtype=np.uint32, count=len(grams)).tobytes(),
        vector=vector,
    )


def _vector_texts(tool: Tool) -> tuple[str, str]:
    """Return a tool's two texts to embed: its purpose, and that with server and parameters."""
    about = f"{' '.join(split_name(tool.name))}: {tool.description[:_EMBEDDED]}"
    server = " ".join(split_name(tool.server))
    return about, f"{server} {about} {schema_text(tool.parameters)[:_EMBEDDED_SCHEMA]}"


def split_name(name: str) -> list[str]:
    """Split a name into words: `searchIssues_v2` is search, issues, v and 2."""
    return [fold(part) for part in parts_of(name)] or [fold(name)]


def extract_terms(text: str) -> list[int]:
    """Return the ids of a text's words; a compound word counts as itself and as its parts."""
    words: list[str] = []
    for word in words_of(text):
        words.append(word)
        # `ID` and `Search` are one word; `searchIssues` and `utf8` are compounds of two.
        if not (word.islower() or word.isupper() or word[1:].islower()) or not word.isalpha():
            parts = parts_of(word)
            if len(parts) > 1:
                words += parts
    return terms_of(words)


_LETTERS = re.compile(r"[^\W_]+")


def extract_grams(text: str) -> dict[int, None]:
    """Return the distinct letter 4-grams of words, which match different endings too."""
    words = _LETTERS.findall(fold(" ".join(parts_of(text))))
    return dict.fromkeys(chain.from_iterable(map(_word_grams, words)))


def _word_grams(word: str) -> tuple[int, ...]:
    """Return the 4-grams of a word; those of ordinary length are cached."""
    return _cached_grams(word) if len(word) <= _LONGEST_WORD else _split_grams(word)


@lru_cache(maxsize=32_768)
def _cached_grams(word: str) -> tuple[int, ...]:
    return _split_grams(word)


def _split_grams(word: str) -> tuple[int, ...]:
    spaced = f" {word} "
    runs = (spaced[at : at + _GRAM] for at in range(max(1, len(spaced) - _GRAM + 1)))
    return tuple(map(number_of, runs))


def schema_text(schema: Any) -> str:
    """Return the names and descriptions in a schema, the outermost first."""
    texts: list[str] = []
    size = nodes = 0
    level: list[Any] = [schema]
    while level and nodes < _MOST_NODES and size < _MOST_CHARACTERS:
        inner: list[Any] = []
        for node in level[: _MOST_NODES - nodes]:
            nodes += 1
            for text in _node_texts(node):
                texts.append(text)
                size += len(text) + 1
            inner += _inner_schemas(node)
        level = inner
    return " ".join(texts)[:_MOST_CHARACTERS]


def _node_texts(node: Any) -> list[str]:
    if not isinstance(node, Mapping):
        return []
    properties = node.get("properties")
    names = [str(name)[:100] for name in properties] if isinstance(properties, Mapping) else []
    description, choices = node.get("description"), node.get("enum")
    descriptions = [description[:500]] if isinstance(description, str) else []
    values = choices[:20] if isinstance(choices, list) else []
    return [
        *names[:_MOST_NODES],
        *descriptions,
        *(value[:50] for value in values if isinstance(value, str)),
    ]


def _inner_schemas(node: Any) -> list[Any]:
    """Return the schemas inside a schema."""
    if not isinstance(node, Mapping):
        return []
    inner: list[Any] = []
    for key in ("properties", "$defs", "definitions"):
        if isinstance(members := node.get(key), Mapping):
            inner += list(members.values())[:_MOST_NODES]
    for key in ("items", "additionalProperties", "anyOf", "oneOf", "allOf"):
        member = node.get(key)
        inner += member[:_MOST_NODES] if isinstance(member, list) else [member]
    return inner
