"""Parse a model's call of expand_ref, including malformed calls.

Small models copy every example of a citation into one call, keep placeholders, wrap the JSON in a
fence or drop the prefix of a ref: of 26 calls by a model of 1.5 billion parameters, 22 held a
literal "…" and none was understood. So only a missing ref is refused. Contradicting options become
attempts, the most specific one first, and `expand` shows the first one that finds something. Calls
by programs are parsed strictly by `ExpandOptions.parse`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from holdfast.errors import ExpandError
from holdfast.expand.options import READERS, ExpandOptions, Slice
from holdfast.expand.tool import read_arguments
from holdfast.store.refs import REF
from holdfast.store.refs import parse as parse_ref

_REF_NAMES = ("ref", "ref_id", "id", "reference", "ref_ids", "citation")
_WRAPPERS = ("options", "arguments", "parameters", "input", "args")
"""Names of objects in which models nest their options."""
_SYNONYMS = {
    "question": "query", "q": "query", "search": "query", "terms": "query", "keywords": "query",
    "keyword": "query", "text": "query", "regex": "pattern", "grep": "pattern", "line": "lines",
    "range": "lines", "line_range": "lines", "json_path": "path", "jsonpath": "path",
    "key": "path", "columns": "fields", "keys": "fields", "near": "around",
}  # fmt: skip
_PLACEHOLDERS = frozenset(
    {"…", "...", "..", "string", "text", "null", "none", "undefined", "n/a", "your question",
     "your query", "the question", "regular expression", "regex", "words"}
)  # fmt: skip
_LONGEST_WORDS = 2_000
"""Maximum characters of a question; the remainder is probably a pasted document."""
_LONGEST_ASKED = 300
"""Maximum characters of a question that answers a copied example; a longer text is a task."""
_LONGEST_NAME = 200
_LONGEST_ARGUMENTS = 100_000
"""Maximum characters that are searched for JSON or a ref if the arguments are not JSON."""
_LEAST_DIGITS = 4
_CLOSE = 0.85
"""Minimum similarity of a ref; two refs of one kind differ in about half of their characters."""
_WRAPPING = "`'\"\u201c\u201d\u2018\u2019 \t\r\n"
"""Characters that models put around a value: all kinds of quotes, and backticks."""

# Each begins at a fixed place and has bounded repetitions, so each is linear.
_BARE_REF = re.compile(r"\b([a-z][a-z0-9_]{0,39}:[0-9a-f]{16,64})(?![0-9a-f])")
_LINES = re.compile(r"(?:lines?|l)?\s{0,3}-?\d{1,12}\s{0,3}(?:(?:-|–|to|:|\.\.)\s{0,3}l?\d{0,12})?")  # noqa: RUF001
_PAGE = re.compile(r"(?:(.{0,2000}),)?\s{0,3}page\s{0,3}=?\s{0,3}(\d{1,6})", re.IGNORECASE)
_ROWS = re.compile(
    r"rows?\s{0,3}(\d{1,9})(?:\s{0,3}(?:-|–|to)\s{0,3}(\d{0,9}))?(?:\s{1,3}of\s{1,3}(\$.{0,2000}))?",  # noqa: RUF001
    re.IGNORECASE,
)
_PATTERN = re.compile(r"/(.{1,2000})/(i?)")
_PLACE = re.compile(r"(?:characters?|paragraphs?|passages?|section:)\s.{1,2000}", re.IGNORECASE)
"""A place in a citation other than lines, rows and paths."""
_DOTTED = re.compile(r"[\w-]{1,80}(?:\.[\w-]{1,80}|\[\d{1,9}\]|\[\*\]){1,40}")


def parse_call(
    arguments: object, question: str = "", default_ref: str = ""
) -> tuple[str, ExpandOptions]:
    """Return the ref and the options of a call, from its arguments as JSON text or as a value.

    `question` is the latest one of the user; it is searched for if the options find nothing.
    `default_ref` is used for a call without a ref.

    Raises:
        ExpandError: There is no ref.
    """
    try:
        values = _arguments(arguments)
    except ExpandError:
        if not default_ref:
            raise
        values = {}
    ref = _take_ref(values)
    for name in _WRAPPERS:
        inner = values.pop(name, None)
        if inner:
            values = _inner(inner) | values
    ref = ref or _take_ref(values) or default_ref
    if not ref:
        raise ExpandError(
            "the call names no ref",
            where="ref",
            fix="Copy a ref from this conversation exactly.",
        )
    return ref, _options(values, " ".join(question.split())[:_LONGEST_WORDS])


def nearest_ref(name: str, refs: Sequence[str]) -> str:
    """Return the most similar ref of a conversation, preferring later ones; empty if none.

    Models truncate refs, change a digit, or write the name of a file instead.
    """
    digits = name.rpartition(":")[2].lower()
    if len(digits) >= _LEAST_DIGITS:
        alike = [ref for ref in refs if _share_beginning(ref.rpartition(":")[2], digits)]
        if len(alike) == 1:
            return alike[0]
    close = difflib.get_close_matches(name, refs, n=1, cutoff=_CLOSE)
    if close:
        return close[0]
    return refs[0] if refs and parse_ref(name) is None else ""


def _share_beginning(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _arguments(arguments: object) -> dict[str, Any]:
    """Return the arguments as an object; a text is searched for JSON, then for a ref."""
    if isinstance(arguments, bytes):
        arguments = arguments.decode("utf-8", "replace")
    if isinstance(arguments, str):
        text = arguments[:_LONGEST_ARGUMENTS]
        inner = text[text.find("{") : text.rfind("}") + 1]
        for candidate in (arguments, inner):
            try:
                value = msgspec.json.decode(candidate)
            except (ValueError, RecursionError):
                continue
            arguments = value
            break
        else:
            return {"ref_id": _ref_shaped(text)}
    if isinstance(arguments, list) and len(arguments) == 1:
        arguments = arguments[0]
    if isinstance(arguments, str):
        return {"ref_id": _ref_shaped(arguments[:_LONGEST_ARGUMENTS])}
    return read_arguments(arguments)


def _inner(value: object) -> dict[str, Any]:
    try:
        return _arguments(value) if isinstance(value, dict | str) else {}
    except ExpandError:
        return {}


def _take_ref(given: dict[str, Any]) -> str:
    """Remove the ref from the arguments and return it; empty if there is none."""
    for name in _REF_NAMES:
        value = given.pop(name, None)
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, str) and (ref := _ref_in(value[:_LONGEST_ARGUMENTS])):
            return ref
    return ""


def _ref_in(text: str) -> str:
    """Return the ref in a text, with its prefix; otherwise the text itself.

    The answer to the call then describes the form of a ref.
    """
    return _ref_shaped(text) or text.strip(_WRAPPING + "[]()<>")[:_LONGEST_NAME]


def _ref_shaped(text: str) -> str:
    if match := REF.search(text):
        return match[0]
    if match := _BARE_REF.search(text):
        return match[0] if parse_ref(match[0]) else f"ref:{match[1]}"
    name = text.strip(_WRAPPING + "[]()<>")
    return name if parse_ref(name) else ""


# --- options -------------------------------------------------------------------------------------


def _options(given: dict[str, Any], question: str) -> ExpandOptions:
    """Return the options to try first, with the others in `otherwise`."""
    values, is_clear = _read(given)
    most = values.pop("max_tokens", None)
    find, page = _split_page(values.pop("find", ""))
    page = max(page, values.pop("page", 1))
    attempts = [*_attempts(values), *(_attempts_for(find) if find else ())]
    attempts.sort(key=_vagueness)
    # The answer to lines and rows out of range is their number, not passages for the question.
    # A ref alone asks for the beginning, and a page number for the page after another.
    is_exact = is_clear and all(each.lines or each.slice for each in attempts)
    is_exact = is_exact or (is_clear and page > 1)
    if not attempts and (is_exact or page > 1 or not question):
        attempts = [ExpandOptions()]
    attempts = [msgspec.structs.replace(each, page=1 if each.around else page) for each in attempts]
    if question and not is_exact:
        attempts.append(ExpandOptions(query=question))
    common: dict[str, Any] = {} if most is None else {"max_tokens": most}
    first, *alternatives = (
        msgspec.structs.replace(each, **common) for each in dict.fromkeys(attempts)
    )
    options: ExpandOptions = msgspec.structs.replace(
        first,
        otherwise=tuple(alternatives),
        question=question if len(question) <= _LONGEST_ASKED else "",
    )
    return options


def _split_page(find: str) -> tuple[str, int]:
    """Return the searched text and the page number of `timeout, page 2`."""
    match = _PAGE.fullmatch(" ".join(find.split()))
    return ((match[1] or "").strip(), max(1, int(match[2]))) if match else (find, 1)


def _vagueness(options: ExpandOptions) -> int:
    """Return a sort key: 0 for options that name one place, more for vaguer ones."""
    if options.path or options.fields or options.slice:
        return 0
    return 1 if options.lines else 2 if options.pattern else 3


def _read(given: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the usable options, and whether none was ignored."""
    values: dict[str, Any] = {}
    run: dict[str, Any] = {}
    is_clear = True
    for raw_name, raw in given.items():
        name = raw_name.strip().lower()
        name = _SYNONYMS.get(name, name)
        value = raw
        if isinstance(raw, str):  # quotes belong to a pattern, backticks hardly ever
            value = raw.strip("`" if name == "pattern" else _WRAPPING)
        if value is None or value in ("", [], {}):
            continue
        try:
            if _is_placeholder(value, name):
                is_clear = False
            elif name in ("offset", "limit"):
                run[name] = READERS["page"](name, value)
            elif name == "find":
                values[name] = str(value)[:_LONGEST_WORDS]
            elif name in READERS:
                values.setdefault(name, READERS[name](name, value))
        except ExpandError:
            is_clear = False
    if run:
        values.setdefault("slice", Slice(run.get("offset", 0), run.get("limit")))
    if "query" in values:
        values["query"] = values["query"][:_LONGEST_WORDS]
    return values, is_clear


def _is_placeholder(value: object, name: str) -> bool:
    """Return whether a value is a placeholder that the model did not fill in."""
    if isinstance(value, list):
        return all(_is_placeholder(each, name) for each in value)
    if not isinstance(value, str):
        return False
    words = value.strip("<>[]{}()" + _WRAPPING).lower()
    is_marked = value.startswith("<") and value.endswith(">")
    return is_marked or words in _PLACEHOLDERS or words == name


def _attempts(values: dict[str, Any]) -> Iterator[ExpandOptions]:
    """Yield an attempt for each option that cannot be combined, the most specific first."""
    structure = {name: values[name] for name in ("path", "fields", "slice") if name in values}
    if structure:
        yield ExpandOptions(**structure)
    if "path" in structure and len(structure) > 1:
        yield ExpandOptions(path=structure["path"])
    for name in ("lines", "pattern", "around", "query"):
        if name in values:
            yield ExpandOptions(**{name: values[name]})
        if name == "pattern" and name in values:  # `foo(` was meant literally
            yield ExpandOptions(around=values[name].strip())


def _attempts_for(find: str) -> Iterator[ExpandOptions]:
    """Yield the meanings of a text: rows, lines, a pattern, a path, a place, or a question."""
    words = " ".join(find.split())
    if match := _ROWS.fullmatch(words):
        first = max(1, int(match[1]))
        last = first if match[2] is None else int(match[2]) if match[2] else None
        limit = None if last is None else max(first, last) - first + 1
        yield ExpandOptions(path=match[3] or "", slice=Slice(first - 1, limit))
        return
    if _LINES.fullmatch(words.lower()):
        yield from _attempts(_read({"lines": words})[0])
    if match := _PATTERN.fullmatch(words):
        yield ExpandOptions(pattern=f"(?i){match[1]}" if match[2] else match[1])
    elif words[0] in "$/" or _DOTTED.fullmatch(words):
        yield ExpandOptions(path=words)
    if words[0] == "$" or _PLACE.fullmatch(words):
        yield ExpandOptions(around=words)
    yield ExpandOptions(query=words)
    yield ExpandOptions(around=words)
