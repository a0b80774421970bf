"""Access of tenants to objects at a provider under one shared key.

If the settings' key is sent, all tenants share one account at the provider: each could open
another's responses, files or conversations by id. So the store records the tenant of each object,
other ids are refused as the provider refuses unknown ones, and only the paths listed here are
forwarded. If the client's own key is sent, the provider separates accounts itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from holdfast.engine import Holdfast
from holdfast.errors import WireError
from holdfast.upstream.network import UpstreamError
from holdfast.upstream.upstreams import Family, Upstream

OBJECTS_SESSION = "provider-objects"
"""Under this session the store links the names of objects to their tenant."""
_MOST_REFERENCES = 500
"""Of one request; each is looked up."""
_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}")

# `{own}` is the id of an object that this tenant created, `{any}` a model's name, or the id of
# something inside an own object. Lists of a whole account are not included. Nor are batches and
# fine-tuning of OpenAI and Gemini, whose requests are in files that nobody reads here, nor keys for
# browsers (`realtime/client_secrets`), which would bypass the proxy.
_OPENAI = """
GET models, models/{any}
POST embeddings, completions, moderations, images/generations, images/edits, images/variations
POST audio/speech, audio/transcriptions, audio/translations, responses/input_tokens
GET DELETE responses/{own}
GET responses/{own}/input_items
POST responses/{own}/cancel
POST files, uploads, uploads/{own}/parts, uploads/{own}/complete, uploads/{own}/cancel
GET DELETE files/{own}
GET files/{own}/content
POST vector_stores, conversations, containers, vector_stores/{own}/search
GET POST DELETE vector_stores/{own}, conversations/{own}
GET DELETE containers/{own}
GET POST vector_stores/{own}/files, conversations/{own}/items, containers/{own}/files
GET DELETE vector_stores/{own}/files/{any}, conversations/{own}/items/{any}
GET DELETE containers/{own}/files/{any}
GET containers/{own}/files/{any}/content
"""
_ANTHROPIC = """
GET models, models/{any}
POST complete, files, messages/batches
GET DELETE files/{own}, messages/batches/{own}
GET files/{own}/content, messages/batches/{own}/results
POST messages/batches/{own}/cancel
"""
_GEMINI = """
GET models, models/{any}
POST models/{any}:embedContent, models/{any}:batchEmbedContents, models/{any}:predict
POST files, cachedContents
GET DELETE files/{own}
GET PATCH DELETE cachedContents/{own}
"""
_BEDROCK = "POST model/{any}/invoke, model/{any}/invoke-with-response-stream"
_COHERE = """
GET models, models/{any}
POST embed, rerank, tokenize, detokenize, classify
"""
_VERSIONS = re.compile(
    r"/(?:openai/v1|api/v1|v1beta|v1alpha|v1|v2|(?:upload|download)/v1(?:beta|alpha)?)/(.*)"
)
_DEPLOYMENT = re.compile(r"/openai/deployments/[^/]+/(.*)")
_FORMS = frozenset(
    "files uploads/parts audio/transcriptions audio/translations images/edits images/variations"
    .split()
)  # fmt: skip
"""Paths whose bodies may be forms (multipart), and then hold bytes and no ids of objects."""
_CREATES = frozenset(
    "files uploads uploads/complete vector_stores conversations conversations/items containers "
    "containers/files messages/batches cachedContents responses messages chat/completions".split()
)
"""Paths whose answers name objects that belong to who asked."""


class _PathRule(NamedTuple):
    methods: frozenset[str]
    segments: tuple[str, ...]


def _table(text: str) -> tuple[_PathRule, ...]:
    lines = []
    for row in text.strip().splitlines():
        words = row.split(" ")
        methods = frozenset(word for word in words if word.isupper() and word.isalpha())
        paths = " ".join(word for word in words if word not in methods).split(", ")
        lines += [_PathRule(methods, tuple(path.split("/"))) for path in paths]
    return tuple(lines)


_ALLOWED: dict[Family, tuple[_PathRule, ...]] = {
    "openai": _table(_OPENAI),
    "anthropic": _table(_ANTHROPIC),
    "gemini": _table(_GEMINI),
    "bedrock": _table(_BEDROCK),
    "cohere": _table(_COHERE),
}


class ForeignObjectError(UpstreamError):
    """A request names an object at the provider that was not made for its tenant."""


class NotSharedError(UpstreamError):
    """A path is not open to tenants who share a provider's key."""


class SharedPath(NamedTuple):
    """A path that tenants with a shared key may ask for."""

    resource: str
    """The path without its version and ids: `containers/files`."""
    own: tuple[str, ...] = ()
    """Objects that it names."""

    @property
    def creates(self) -> bool:
        """Whether the answer names objects that belong to who asked."""
        return self.resource in _CREATES

    @property
    def takes_forms(self) -> bool:
        """Whether the body may be a form."""
        return self.resource in _FORMS


def shared_path(method: str, path: str, family: Family) -> SharedPath:
    """Return the rule for a path with single slashes; NotSharedError if it is not listed."""
    match = _VERSIONS.fullmatch(path) or _DEPLOYMENT.fullmatch(path)
    path_rest = match[1] if match else path.removeprefix("/") if family == "bedrock" else ""
    segments = path_rest.split("/")
    for line in _ALLOWED[family]:
        if method in line.methods and _fits(line.segments, segments):
            pairs = list(zip(line.segments, segments, strict=True))
            own = [
                f"{segments[at - 1]}/{part}" if family == "gemini" else part
                for at, (pattern, part) in enumerate(pairs)
                if pattern == "{own}"
            ]
            fixed = [pattern for pattern, _ in pairs if "{" not in pattern]
            return SharedPath("/".join(fixed), tuple(own))
    raise NotSharedError(
        "this path is not open to clients who share the proxy's key",
        status=403,
        where=f"{method[:10]} {path[:100]}",
        fix="Use a key of your own with a proxy that has none set for this provider.",
    )


def _fits(wanted: Sequence[str], given: Sequence[str]) -> bool:
    if len(wanted) != len(given):
        return False
    return all(_SEGMENT.fullmatch(b) and _is(a, b) for a, b in zip(wanted, given, strict=True))


def _is(wanted: str, given: str) -> bool:
    if wanted in ("{own}", "{any}"):
        return ":" not in given or wanted == "{any}"
    name, _, verb = wanted.partition(":")
    return given == wanted or (name == "{any}" and bool(verb) and given.endswith(f":{verb}"))


# --- ids in requests -----------------------------------------------------------------------------

# Keys are compared in lower case and without underscores: Gemini takes both spellings.
_ID_ENDS = (
    "fileid", "fileids", "vectorstoreid", "vectorstoreids", "containerid", "responseid",
    "conversationid", "batchid", "cachedcontent", "fileuri",
)  # fmt: skip
_ID_KEYS = frozenset({"conversation", "container", "prompt"})
_USERS_DATA: dict[Family, frozenset[str]] = {
    "openai": frozenset({"metadata", "parameters", "schema"}),
    "anthropic": frozenset({"metadata", "inputschema"}),
    "gemini": frozenset(
        {"functioncall", "functionresponse", "parameters", "parametersjsonschema",
         "responseschema", "responsejsonschema"}
    ),
    "bedrock": frozenset({"inputschema", "json"}),
    "cohere": frozenset({"parameters", "schema"}),
}  # fmt: skip
"""Members with free content of clients: a client's tool may have a parameter `file_id`."""
_CALLS: dict[Family, frozenset[str]] = {
    "anthropic": frozenset({"tool_use", "server_tool_use", "mcp_tool_use"}),
}
_GEMINI_NAME = re.compile(r"(?:^|/)((?:files|cachedContents)/[A-Za-z0-9_-]{1,200})(?:$|[:?/])")
_BUCKET = re.compile(r"(?:s3|gs)://", re.IGNORECASE)


def references(value: Any, family: Family) -> Iterator[str]:
    """Yield the objects that a parsed request names."""
    pending = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending += node
        elif isinstance(node, dict):
            if _is_reference(node):
                yield from _texts(node.get("id"))
            skipped = _CALLS.get(family, frozenset())
            for name, inside in node.items():
                key = name.lower().replace("_", "").replace("-", "")
                if key in _USERS_DATA[family]:
                    continue
                if key == "input" and node.get("type") in skipped:
                    continue
                yield from _named(key, inside)
                pending.append(inside)


def _is_reference(item: dict[str, Any]) -> bool:
    """Return whether OpenAI looks an item up by its id; other items contain their data."""
    match item.get("type"):
        case None | "item_reference":  # an item reference needs no type
            return item.get("type") is not None or item.keys() <= {"id", "type"}
        case "reasoning":
            return not item.get("encrypted_content")
        case "image_generation_call":
            return not item.get("result")
    return False


def _named(key: str, value: Any) -> Iterator[str]:
    if key == "s3location" or (key == "fileuri" and _is_bucket(value)):
        yield "bucket"  # the account's own storage: nobody's object, so it is always refused
    elif key == "skillid":
        yield from (text for text in _texts(value) if text.startswith("skill_"))
    elif key in _ID_KEYS and isinstance(value, dict):
        yield from _texts(value.get("id"))
    elif key == "prompt":
        return  # a text, of completions and images
    elif key in _ID_KEYS or key.endswith(_ID_ENDS):
        for text in _texts(value):
            names = _GEMINI_NAME.findall(text)
            if names or not (key == "fileuri" and "://" in text):  # an address of the web is none
                yield from names or [text]


def _is_bucket(value: Any) -> bool:
    return isinstance(value, str) and _BUCKET.match(value.strip()) is not None


def _texts(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [text for text in values if isinstance(text, str) and text]


# --- ids in answers ------------------------------------------------------------------------------


def created_names(answer: Any) -> set[str]:
    """Return the objects that a response, or an event of one, reports as created.

    Only members that the provider writes are read. A request's metadata, tools and schemas are
    repeated in the response, and a model writes the arguments of its calls: an id in them may be
    another tenant's, placed there to claim it.
    """
    if not isinstance(answer, dict):
        return set()
    names: list[Any] = []
    for value in (answer, answer.get("response"), answer.get("delta"), answer.get("item")):
        if isinstance(value, dict):
            names += [value.get("id"), value.get("container_id"), _gemini_name(value)]
            for inside in ("conversation", "container", "file"):
                nested = value.get(inside)
                if isinstance(nested, dict):
                    names += [nested.get("id"), _gemini_name(nested)]
            names += _items(value)
    return {
        name
        for name in names
        if isinstance(name, str) and 0 < len(name) <= 200 and not name.startswith("chatcmpl")
    }


def _gemini_name(value: dict[str, Any]) -> Any:
    name = value.get("name")
    return name if isinstance(name, str) and _GEMINI_NAME.fullmatch(name) else None


def _items(answer: dict[str, Any]) -> Iterator[Any]:
    """Return the ids of output items, and of files that the provider's own tools made."""
    for item in [*_list(answer, "output"), *_list(answer, "data")]:
        yield from (item.get("id"), item.get("container_id"))
        for part in _list(item, "content"):
            for note in _list(part, "annotations"):
                yield from (note.get("file_id"), note.get("container_id"))
    for choice in _list(answer, "choices"):
        message = choice.get("message")
        audio = message.get("audio") if isinstance(message, dict) else None
        yield audio.get("id") if isinstance(audio, dict) else None
    for block in _list(answer, "content"):
        if str(block.get("type", "")).endswith("_tool_result"):
            result = block.get("content")
            for entry in _list(result, "content") if isinstance(result, dict) else ():
                yield entry.get("file_id")


def _list(value: dict[str, Any], key: str) -> list[dict[str, Any]]:
    items = value.get(key)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


# --- whose they are ------------------------------------------------------------------------------


async def check_own(engine: Holdfast, upstream: Upstream, names: Sequence[str]) -> None:
    """Raise ForeignObjectError unless all objects were made for the engine's tenant."""
    if len(names) > _MOST_REFERENCES:
        raise WireError(
            f"the request names more than {_MOST_REFERENCES} objects of the provider",
            fix="Name fewer at once.",
        )
    for name in names:
        if not await engine.store.session_linked(engine.scope, _link(upstream, name)):
            raise ForeignObjectError(
                "no object with this id was made by this client",
                status=404,
                where=name[:100],
                fix="Use ids from answers to your own requests.",
            )


async def note_own(engine: Holdfast, upstream: Upstream, names: set[str]) -> None:
    """Note that objects were made for the engine's tenant."""
    links = [_link(upstream, name) for name in sorted(names)]
    await engine.store.link(engine.scope.of(OBJECTS_SESSION), links)


def _link(upstream: Upstream, name: str) -> str:
    return f"object {upstream.name or upstream.family} {name}"
