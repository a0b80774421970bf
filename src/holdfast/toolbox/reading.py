"""What a search reads in a tool when it comes in: words by field, parts of words, and its vectors.

reading: after tool. A tool is read once, and what is read is kept beside it under the name of its
maker: of another version or another embedder it is made again, and never compared. A schema is
walked without recursion and without following `$ref`, up to so many nodes: one that is nested ten
thousand deep or refers to itself costs what its first nodes cost.
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
from holdfast.search.postings import encoded
from holdfast.search.vectors import quantised
from holdfast.search.words import fold, number_of, parts_of, terms_of, words_of
from holdfast.toolbox.tool import Tool

VERSION = 2
FIELDS = ("name", "description", "parameters", "server")
_MOST_CHARACTERS = 4_000
"""Of one field: what a description says first is what it is about."""
_MOST_NODES = 400
"""Of a schema; the largest real one at hand has 250 with a name or a description."""
_GRAM = 4
_LONGEST_WORD = 40
_EMBEDDED, _EMBEDDED_SCHEMA = 1_000, 600
"""Characters of a description and of a schema that vectors are made of."""
_OF_TEXTS = (0.4, 0.6)
"""How much the two texts of a tool count in its vector, as they were learnt: see `_embedded`."""


class Read(msgspec.Struct, frozen=True, array_like=True):
    """What is read in a tool."""

    fields: tuple[bytes, ...]
    """The words of each field, each once, as numbers of 4 bytes."""
    counts: tuple[bytes, ...]
    """How often each stands there."""
    grams: bytes
    """Runs of four letters of name and description, each once."""
    vector: bytes
    """Of all that it says, most of all of its name and description; none without an embedder."""


def maker_of(embedder: Embedder | None) -> str:
    """Who reads with this embedder."""
    return f"{VERSION} {'words' if embedder is None else embedder.name}"


_decoder = msgspec.msgpack.Decoder(Read)


def decoded(read: bytes) -> Read:
    """What `read_all` encoded."""
    return _decoder.decode(read)


def read_all(tools: Sequence[Tool], embedder: Embedder | None) -> list[bytes]:
    """What is read in each tool, encoded; the texts of all are embedded together."""
    vectors = [b""] * len(tools)
    if embedder is not None and tools:
        vectors = [vector.tobytes() for vector in quantised(_vectors(tools, embedder))]
    return [
        msgspec.msgpack.encode(_read(tool, vector))
        for tool, vector in zip(tools, vectors, strict=True)
    ]


def _vectors(tools: Sequence[Tool], embedder: Embedder) -> Any:
    """A vector for each tool: of both its texts; of the longer alone where each takes its time."""
    pairs = [_embedded(tool) for tool in tools]
    if not embedder.is_quick:
        return embedder.embed([whole for _, whole in pairs])
    texts = [text for pair in pairs for text in pair]
    both = np.asarray(embedder.embed(texts), np.float32).reshape(len(tools), 2, -1)
    # Both cosines of a query, weighted, are the product with one vector.
    return np.einsum("npd,p->nd", both, np.array(_OF_TEXTS, np.float32))


def _read(tool: Tool, vector: bytes) -> Read:
    texts = (tool.name, tool.description, schema_text(tool.parameters), tool.server)
    fields = [encoded(Counter(terms_in(text[:_MOST_CHARACTERS]))) for text in texts]
    grams = grams_in(f"{tool.name} {tool.description[:_MOST_CHARACTERS]}")
    return Read(
        fields=tuple(terms for terms, _ in fields),
        counts=tuple(counts for _, counts in fields),
        grams=np.fromiter(grams, dtype=np.uint32, count=len(grams)).tobytes(),
        vector=vector,
    )


def _embedded(tool: Tool) -> tuple[str, str]:
    """What its vector is made of: what it is for, and that with its server and parameters."""
    about = f"{' '.join(spoken(tool.name))}: {tool.description[:_EMBEDDED]}"
    server = " ".join(spoken(tool.server))
    return about, f"{server} {about} {schema_text(tool.parameters)[:_EMBEDDED_SCHEMA]}"


def spoken(name: str) -> list[str]:
    """A name as words: `searchIssues_v2` is search, issues, v and 2."""
    return [fold(part) for part in parts_of(name)] or [fold(name)]


def terms_in(text: str) -> list[int]:
    """The words of a text as numbers; a word of several parts stands for itself and for them."""
    words: list[str] = []
    for word in words_of(text):
        words.append(word)
        # `ID` and `Search` are one word; `searchIssues` and `utf8` are made of two.
        if not (word.islower() or word.isupper() or word[1:].islower()) or not word.isalpha():
            parts = parts_of(word)
            if len(parts) > 1:
                words += parts
    return terms_of(words)


_LETTERS = re.compile(r"[^\W_]+")


def grams_in(text: str) -> dict[int, None]:
    """Runs of four letters inside words, as numbers, each once: they see through endings."""
    words = _LETTERS.findall(fold(" ".join(parts_of(text))))
    return dict.fromkeys(chain.from_iterable(map(_grams, words)))


def _grams(word: str) -> tuple[int, ...]:
    """Of a word as people write them, those that are remembered."""
    return _known_grams(word) if len(word) <= _LONGEST_WORD else _runs(word)


@lru_cache(maxsize=32_768)
def _known_grams(word: str) -> tuple[int, ...]:
    return _runs(word)


def _runs(word: str) -> tuple[int, ...]:
    spaced = f" {word} "
    runs = (spaced[at : at + _GRAM] for at in range(max(1, len(spaced) - _GRAM + 1)))
    return tuple(map(number_of, runs))


def schema_text(schema: Any) -> str:
    """The names and descriptions in a schema, the outermost first."""
    texts: list[str] = []
    size = nodes = 0
    level: list[Any] = [schema]
    while level and nodes < _MOST_NODES and size < _MOST_CHARACTERS:
        inner: list[Any] = []
        for node in level[: _MOST_NODES - nodes]:
            nodes += 1
            for text in _said(node):
                texts.append(text)
                size += len(text) + 1
            inner += _inner(node)
        level = inner
    return " ".join(texts)[:_MOST_CHARACTERS]


def _said(node: Any) -> list[str]:
    if not isinstance(node, Mapping):
        return []
    properties = node.get("properties")
    names = [str(name)[:100] for name in properties] if isinstance(properties, Mapping) else []
    description, choices = node.get("description"), node.get("enum")
    told = [description[:500]] if isinstance(description, str) else []
    listed = choices[:20] if isinstance(choices, list) else []
    return [
        *names[:_MOST_NODES],
        *told,
        *(value[:50] for value in listed if isinstance(value, str)),
    ]


def _inner(node: Any) -> list[Any]:
    """The schemas inside a schema."""
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
