"""Values as Python prints them, rewritten as JSON: `{'rate': Decimal('5.49'), 'seen': None}`.

python_values: before document. Tools written in Python answer with the `repr` of their rows. This
rewrites tokens and evaluates nothing; what it does not know stays, and then is no JSON.
"""

from __future__ import annotations

import re

import msgspec

_TOKEN = re.compile(
    r"""(?P<text>[bru]?(?:'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*"))"""
    r"""|(?P<call>\b[A-Za-z_][\w.]*\((?:'[^'\\]*'|"[^"\\]*"|[\w\s,.+=<>-])*\))"""
    r"""|(?P<word>\b(?:None|True|False|nan|inf)\b)"""
    r"""|(?P<open>[(])|(?P<close>,?[)])""",
    re.DOTALL,
)
_WORDS = {"None": "null", "True": "true", "False": "false", "nan": '"nan"', "inf": '"inf"'}
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\n": ""}
_LOOKS_PYTHON = re.compile(r"[\[({]\s{0,9}'|[\[({,:]\s{0,9}(?:None|True|False|Decimal)\b")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def as_json(text: str) -> str:
    """Rewrite as JSON what looks as Python prints values; "" if it does not."""
    return _TOKEN.sub(_rewritten, text) if _LOOKS_PYTHON.search(text, 0, 4_000) else ""


def _rewritten(token: re.Match[str]) -> str:
    kind, text = token.lastgroup, token[0]
    if kind == "text":
        return _quoted(_unescaped(text[text.index(text[-1]) + 1 : -1]))
    if kind == "word":
        return _WORDS[text]
    if kind == "call":
        name, _, arguments = text[:-1].partition("(")
        return _call(name, arguments)
    return "[" if kind == "open" else "]"


def _call(name: str, arguments: str) -> str:
    """`Decimal('5.49')` is its number, a date is written as ISO does, others as they stand."""
    inner = arguments.strip().strip("'\"")
    if name == "Decimal" and _NUMBER.fullmatch(inner):
        return inner
    if name.endswith(("date", "datetime", "time")):
        return _quoted(_iso(name, arguments))
    return _quoted(inner if name in ("UUID", "Decimal") else f"{name}({arguments})")


def _iso(name: str, arguments: str) -> str:
    parts = [part.strip() for part in arguments.split(",")]
    if not all(part.isdigit() for part in parts):
        return f"{name}({arguments})"
    padded = [part.zfill(2) for part in parts]
    if name.endswith("datetime") or name.endswith("date"):
        day, clock = "-".join(padded[:3]), padded[3:6]
    else:
        day, clock = "", padded[:3]
    seconds = ":".join(clock) + (f".{parts[6].zfill(6)}" if len(parts) > 6 else "")
    return f"{day} {seconds}".strip()


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(escape: re.Match[str]) -> str:
    code = escape[1]
    if len(code) > 1:
        number = int(code[1:], 16)
        return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
    return _PLAIN.get(code, code)


def _quoted(text: str) -> str:
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return msgspec.json.encode(text.encode("utf-8", "replace").decode()).decode()
