"""Define the tool that opens refs, written in every dialect, and write calls of it.

tool: after options. The definition is added to requests, so each of its words costs tokens in every
request. The example call of a citation has rows, a path or lines of this content. There is only one
example, because small models copy every example that they see into one call.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec

from holdfast.condense.places import short_place
from holdfast.document import ContentView, Document, step
from holdfast.errors import ExpandError
from holdfast.expand.options import DEFAULT_TOKENS, ExpandOptions
from holdfast.quoting import bracketed, inline
from holdfast.wire.blocks import Tool
from holdfast.wire.reader import dialect_named

NAME = "expand_ref"
OTHER_NAME = "holdfast_expand_ref"
"""Name for requests in which the client has a tool named `expand_ref`."""

DESCRIPTION = "Read a part of a stored tool result."
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "ref": {"type": "string", "description": "The ref, copied from the conversation."},
        "find": {
            "type": "string",
            "description": "What to read: words, a question, lines 40-80, a JSON path, /pattern/ "
            "or page 2.",
        },
    },
    "required": ["ref"],
}
"""Two parameters: a model of 1.5 billion parameters filled in every option of a longer list at
once. `calls.parse_call` still takes all of them. The definition has 64 tokens for GPT models and
124 for Claude; with the eleven options it had 69 and 185."""

DESCRIPTIONS = frozenset(
    {
        DESCRIPTION,
        "Open a part of the content that a citation stands for.",
        "Opens what a citation leaves out, in the ways it shows.",
    }
)
"""The description and those of earlier versions: a session keeps its first definition, because
tools are at the start of the prefix that providers cache."""


def is_opener(tool: Tool) -> bool:
    """Return whether a tool is this one, by its description: clients may use the same name."""
    return tool.description in DESCRIPTIONS


def definition(dialect: str, name: str = NAME) -> dict[str, Any]:
    """Return the tool as an entry of a request's list of tools."""
    return write(dialect, Tool(name=name, description=DESCRIPTION, parameters=PARAMETERS))


def write(dialect: str, tool: Tool) -> dict[str, Any]:
    """Return a tool as an entry of the list of tools of a dialect."""
    body = dialect_named(dialect).envelope("", [tool], {})
    tools = body["toolConfig"]["tools"] if "toolConfig" in body else body["tools"]
    # The dialects share the parameters; a change by one caller must not reach the next.
    entry: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(tools[0]))
    return entry


def read_arguments(arguments: object) -> dict[str, Any]:
    """Return the arguments of a call as a new dictionary."""
    if isinstance(arguments, str | bytes):
        try:
            arguments = msgspec.json.decode(arguments)
        except (ValueError, RecursionError):
            arguments = None
    if not isinstance(arguments, dict):
        raise ExpandError(
            "the arguments are no JSON object", where="arguments", fix="Give a JSON object."
        )
    return {str(name): value for name, value in arguments.items()}


_FIRST_ROW, _ROWS = 11, 5
_FIRST_LINE, _LAST_LINE = 40, 80
_LONGEST_PATH = 60
_LONGEST_FIND = 120
"""Maximum characters of a `find` that is repeated in the call for the next page."""
_ENDINGS = frozenset('"[]\\')
"""Characters of a name that could end the line of the call."""


def call_of(opener: str, ref: str, find: str = "") -> str:
    """Return a call as shown to a model: `expand_ref("ref:log:…", "lines 40-80")`."""
    values = [ref, find] if find else [ref]
    return f"{opener}({', '.join(json.dumps(each, ensure_ascii=False) for each in values)})"


def example(content: ContentView, tokens: int, visible: str) -> str:
    """Return a `find` that opens a part of a content; empty if there is none.

    Names of the content are used only if the privacy policy leaves them visible.
    """
    rows = _row_count(content)
    if rows > 1:
        first = min(_FIRST_ROW, rows // 2 + 1)
        return short_place(f"rows {first}-{min(first + _ROWS - 1, rows)}")
    path = _path(content.document, visible) if content.document is not None else ""
    if path:
        return path
    if content.document is None and content.line_count > 1:
        last = min(_LAST_LINE, content.line_count)
        return f"lines {min(_FIRST_LINE, (last + 1) // 2)}-{last}"
    has_pages = tokens > 1.5 * DEFAULT_TOKENS  # other counters may find a third less
    return "page 2" if has_pages else ""


def is_example(options: ExpandOptions, content: ContentView) -> bool:
    """Return whether options only repeat the example in a citation of this content.

    Fields are ignored, because citations of earlier versions had fields beside rows.
    """
    if not (options.path or options.slice or options.lines):
        return False
    written = find_of(ExpandOptions(path=options.path, slice=options.slice, lines=options.lines))
    return written == example(content, sys.maxsize, content.text)


def find_of(options: ExpandOptions) -> str | None:
    """Return the `find` with the meaning of options, except their page; None if there is none."""
    if options.fields or options.around:
        return None
    find = ""
    if options.lines:
        first, last = options.lines
        find = f"lines {first}" if first < 0 else short_place(f"lines {first}-{last or ''}")
    elif options.pattern:
        is_plain = _ENDINGS.isdisjoint(options.pattern) and options.pattern.isprintable()
        find = f"/{options.pattern}/" if is_plain else "\n"
    elif options.query:
        find = bracketed(" ".join(options.query.split()))
    elif options.slice:
        first, limit = options.slice.offset + 1, options.slice.limit
        of = f" of {inline(options.path)}" if options.path else ""
        find = short_place(f"rows {first}-{'' if limit is None else first + limit - 1}{of}")
    elif options.path:
        find = inline(options.path)
    return find if find.isprintable() and len(find) <= _LONGEST_FIND else None


def _row_count(content: ContentView) -> int:
    if content.table is not None:
        return len(content.table.rows)
    return len(content.rows.members) if content.rows is not None else 0


def _path(document: Document, visible: str) -> str:
    """Return the path of the largest value under the root; empty if it may not be named."""
    members = document.members(document.root.start, document.root.end)
    if not members:
        return ""
    largest = max(members, key=lambda member: member.end - member.value)
    path = step("$", largest.name)
    name = str(largest.name)
    is_plain = path.isprintable() and _ENDINGS.isdisjoint(name)
    return path if len(path) <= _LONGEST_PATH and is_plain and name in visible else ""
