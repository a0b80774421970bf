"""Intents and warnings from tool descriptions, which are untrusted text.

The author of a server writes its descriptions, and a model reads them: they may contain `ignore
previous instructions` or invisible letters. An intent is one short line, and withheld if it gives
orders; the warnings are for the user who pins the tool. All patterns use RE2 and take linear time.
"""

from __future__ import annotations

import re2  # type: ignore[import-untyped]

from holdfast.quoting import in_one_line
from holdfast.toolbox.tool import Tool
from holdfast.trim.excerpts import before

MOST_INTENT = 100
"""Maximum characters of an intent; a first sentence typically has 60."""
WITHHELD = "(its description gives orders and is withheld)"
_INTENT_SOURCE = 400
"""Characters of a description from which the intent is taken."""
_MOST_READ = 40_000
"""Characters of a definition that are checked; the largest real one that we have seen has this
many."""
_SENTENCE_END = re2.compile(r"[.!?。！？](?:\s|$)")  # noqa: RUF001 - as other scripts end one
_ORDERS = {
    "overrides": re2.compile(
        r"(?i)\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:previous|prior|above|earlier|all"
        r"|other|system)\b.{0,20}\b(?:instruction|prompt|rule|message|guideline|direction|tool)s?\b"
        r"|\bnew (?:system )?instructions?:|\byou are now\b|\bsystem prompt\b"
    ),
    "conceals": re2.compile(
        r"(?i)\b(?:do not|don't|never|without)\b.{0,30}\b(?:tell|telling|mention|mentioning|inform"
        r"|informing|reveal|notify|notifying|show|alert|alerting)\b.{0,20}\b(?:the )?(?:user|human"
        r"|anyone|them|him|her)\b|\bkeep (?:this|it) (?:secret|hidden)\b"
    ),
    "directs": re2.compile(
        r"(?i)<\s*/?\s*(?:important|system|instructions?|admin|assistant|secret)\b[^>]{0,20}>"
        r"|\bbefore (?:using|calling|invoking) (?:any|this|other|every)\b"
        r"|\b(?:before|instead of|whenever|prior to)\b.{0,30}\b(?:using|calling|invoking|use of)\b"
        r".{0,20}\b(?:any|all|every|other)\b.{0,15}\btools?\b"
        r"|\b(?:always|must|first) (?:call|use|invoke|run) this (?:tool|function)\b.{0,30}"
        r"\b(?:before|first|instead)\b"
        r"|\binstead of (?:the |any )?other tools?\b"
    ),
    "exfiltrates": re2.compile(
        r"(?i)~/\.(?:ssh|aws|cursor|config|gnupg)\b|\.ssh/|\.aws/credentials|\bid_rsa\b"
        r"|/etc/(?:passwd|shadow)\b"
        r"|\b(?:read|send|post|upload|forward|include|pass|append)\b.{0,60}(?:\b(?:conversation"
        r"|chat history|api[ _-]?keys?|credentials|passwords?|private keys?|environment variables"
        r"|mcp\.json)|\.env)\b"
    ),
    # Unicode tags can hold an invisible sentence, direction marks reverse text, and zero-width
    # characters split words. The joiner of emoji (200D) is absent here because honest texts use it.
    "hides": re2.compile(
        r"[\x{E0000}-\x{E007F}\x{202A}-\x{202E}\x{2060}-\x{2069}\x{200B}\x{FEFF}]"
    ),
}


def tool_intent(tool: Tool) -> str:
    """Return a tool's purpose in one line, from its description's first sentence."""
    text = in_one_line(_without_surrogates(tool.description[:_INTENT_SOURCE]))
    end = _SENTENCE_END.search(text)
    text = text[: end.start() + 1] if end is not None else text
    if find_orders(text):
        return WITHHELD
    return before("".join(c if c.isprintable() else " " for c in text), MOST_INTENT).rstrip(" .")


def tool_warnings(tool: Tool) -> tuple[str, ...]:
    """Return the kinds of instructions to the model in a definition.

    A definition longer than people read is `overlong`, because its end may hide instructions.
    """
    text = f"{tool.name}\n{tool.description}\n{_schema_text(tool)}"
    # an instruction may span two lines
    orders = find_orders(_without_surrogates(text[:_MOST_READ].replace("\n", " ")))
    return (*orders, "overlong") if len(tool.definition) > _MOST_READ else orders


def find_orders(text: str) -> tuple[str, ...]:
    """Return the kinds of orders that a text gives."""
    return tuple(kind for kind, pattern in _ORDERS.items() if pattern.search(text))


def _schema_text(tool: Tool) -> str:
    """Return the schema as JSON; escaped line breaks would hide text from the patterns."""
    return tool.definition.decode("utf-8", "replace").replace("\\n", " ")


def _without_surrogates(text: str) -> str:
    """Replace lone surrogates, which RE2 rejects."""
    return text.encode("utf-8", "replace").decode()
