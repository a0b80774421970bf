"""Read a model's call of expand_ref, in whatever form the model wrote it.

Small models copy every example of a citation into one call, leave placeholders in, wrap the JSON in
a fence or drop the prefix of a ref: of 26 calls that a model of 1.5 billion parameters made, 22
held a literal "…" and none was understood. So only a missing ref is refused here. Options that
contradict each other become attempts, the most specific one first; `expand` shows the first that
finds something. Programs are read strictly, by `ExpandOptions.parse`.
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
"""Objects that models put their options into."""
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
"""Characters of a question that are used: a longer one is a pasted document."""
_LONGEST_ASKED = 300
"""Characters of a question that is answered where a call copies an example: more is a task."""
_LONGEST_NAME = 200
_LONGEST_ARGUMENTS = 100_000
"""Characters of arguments that are searched for JSON or a ref where they are not JSON."""
_LEAST_DIGITS = 4
_CLOSE = 0.85
"""Share of a ref that must be right: two refs of one kind differ in about half."""
_WRAPPING = "`'\"\u201c\u201d\u2018\u2019 \t\r\n"
"""What models put around a value: quotes of every kind, and the backticks of Markdown."""

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
"""A place as a citation names it, beside lines, rows and paths."""
_DOTTED = re.compile(r"[\w-]{1,80}(?:\.[\w-]{1,80}|\[\d{1,9}\]|\[\*\]){1,40}")


def parse_call(
    arguments: object, question: str = "", default_ref: str = ""
) -> tuple[str, ExpandOptions]:
    """Return the ref and the options of a call, from its arguments as JSON text or as a value.

    `question` is what the user asked last: it is searched for where the options find nothing.
    A call that names no ref means `default_ref`.

    Raises:
        ExpandError: no ref is named.
    """
    try:
        given = _arguments(arguments)
    except ExpandError:
        if not default_ref:
            raise
        given = {}
    ref = _take_ref(given)
    for name in _WRAPPERS:
        inner = given.pop(name, None)
        if inner:
            given = _inner(inner) | given
    ref = ref or _take_ref(given) or default_ref
    if not ref:
        raise ExpandError(
            "the call names no ref",
            where="ref",
            fix="Copy a ref from this conversation exactly.",
        )
    return ref, _options(given, " ".join(question.split())[:_LONGEST_WORDS])


def nearest_ref(name: str, refs: Sequence[str]) -> str:
    """Return which ref of a conversation a model meant, the latest first; empty if none.

    Models cut refs short, change a digit, or write the name of a file instead.
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
    """Return the arguments as an object; text is searched for JSON, then for a ref."""
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
    """Return the ref in a text, with its prefix; where there is none, the text itself.

    The answer then says what a ref looks like.
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
    """Return what to open first, with what to try after it."""
    values, is_clear = _read(given)
    most = values.pop("max_tokens", None)
    find, page = _split_page(values.pop("find", ""))
    page = max(page, values.pop("page", 1))
    attempts = [*_attempts(values), *(_attempts_for(find) if find else ())]
    attempts.sort(key=_vagueness)
    # Lines and rows that are not there are told how many there are: the question is no answer to
    # that. A ref alone asks for the beginning, and a page for what comes after another.
    is_exact = is_clear and all(each.lines or each.slice for each in attempts)
    is_exact = is_exact or (is_clear and page > 1)
    if not attempts and (is_exact or page > 1 or not question):
        attempts = [ExpandOptions()]
    attempts = [msgspec.structs.replace(each, page=1 if each.around else page) for each in attempts]
    if question and not is_exact:
        attempts.append(ExpandOptions(query=question))
    common: dict[str, Any] = {} if most is None else {"max_tokens": most}
    first, *others = (msgspec.structs.replace(each, **common) for each in dict.fromkeys(attempts))
    options: ExpandOptions = msgspec.structs.replace(
        first,
        otherwise=tuple(others),
        question=question if len(question) <= _LONGEST_ASKED else "",
    )
    return options


def _split_page(find: str) -> tuple[str, int]:
    """Return what is looked for, and which page of it: `timeout, page 2`."""
    match = _PAGE.fullmatch(" ".join(find.split()))
    return ((match[1] or "").strip(), max(1, int(match[2]))) if match else (find, 1)


def _vagueness(options: ExpandOptions) -> int:
    """Return how little an option says about the place: a path names one, words may be anywhere."""
    if options.path or options.fields or options.slice:
        return 0
    return 1 if options.lines else 2 if options.pattern else 3


def _read(given: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the options that say something, and whether that is all that was given."""
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
    """Return whether a value only stands for one that the model should have put there."""
    if isinstance(value, list):
        return all(_is_placeholder(each, name) for each in value)
    if not isinstance(value, str):
        return False
    words = value.strip("<>[]{}()" + _WRAPPING).lower()
    is_marked = value.startswith("<") and value.endswith(">")
    return is_marked or words in _PLACEHOLDERS or words == name


def _attempts(values: dict[str, Any]) -> Iterator[ExpandOptions]:
    """Yield one attempt for each option that cannot be combined, the most specific first."""
    structure = {name: values[name] for name in ("path", "fields", "slice") if name in values}
    if structure:
        yield ExpandOptions(**structure)
    if "path" in structure and len(structure) > 1:
        yield ExpandOptions(path=structure["path"])
    for name in ("lines", "pattern", "around", "query"):
        if name in values:
            yield ExpandOptions(**{name: values[name]})
        if name == "pattern" and name in values:  # `foo(` was meant as it stands
            yield ExpandOptions(around=values[name].strip())


def _attempts_for(find: str) -> Iterator[ExpandOptions]:
    """Yield what words may mean: rows, lines, a pattern, a path, a place, or a question."""
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
