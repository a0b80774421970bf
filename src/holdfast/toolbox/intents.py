"""What a tool says of itself, as we show it: one quoted line, and warnings where it gives orders.

intents: after tool. A description is written by whoever wrote the server, and read by a model: it
may say `ignore previous instructions`, or hide letters that nobody sees. So what is shown is short,
in one line, and withheld where it gives orders; whoever pins the tool is told why. All patterns are
in RE2 and linear.
"""

from __future__ import annotations

import re2  # type: ignore[import-untyped]

from holdfast.quoting import in_one_line
from holdfast.toolbox.tool import Tool
from holdfast.trim.excerpts import before

MOST_INTENT = 100
"""Characters of an intent; a first sentence has 60 as a rule."""
WITHHELD = "(its description gives orders and is withheld)"
_LOOKED_AT = 400
"""Characters of a description that an intent is taken from."""
_MOST_READ = 40_000
"""Characters of a definition that are looked at; the largest real one at hand has that many."""
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
    # Tags of Unicode write any sentence unseen; marks of direction turn one round; what has no
    # width parts words. The joiner of emoji (200D) is in honest texts.
    "hides": re2.compile(
        r"[\x{E0000}-\x{E007F}\x{202A}-\x{202E}\x{2060}-\x{2069}\x{200B}\x{FEFF}]"
    ),
}


def intent_of(tool: Tool) -> str:
    """In one line what a tool is for, by its own first sentence; empty if it says nothing."""
    told = in_one_line(_sound(tool.description[:_LOOKED_AT]))
    end = _SENTENCE_END.search(told)
    told = told[: end.start() + 1] if end is not None else told
    if orders_in(told):
        return WITHHELD
    return before("".join(c if c.isprintable() else " " for c in told), MOST_INTENT).rstrip(" .")


def warnings_of(tool: Tool) -> tuple[str, ...]:
    """What in a definition speaks to the model instead of describing the tool, by kind.

    A definition that is longer than people read is `overlong`, for what stands at its end.
    """
    text = f"{tool.name}\n{tool.description}\n{_schema_text(tool)}"
    orders = orders_in(_sound(text[:_MOST_READ].replace("\n", " ")))  # an order may break its line
    return (*orders, "overlong") if len(tool.definition) > _MOST_READ else orders


def orders_in(text: str) -> tuple[str, ...]:
    """The kinds of orders that a text gives."""
    return tuple(kind for kind, pattern in _ORDERS.items() if pattern.search(text))


def _schema_text(tool: Tool) -> str:
    """The schema as JSON; escapes would hide letters from the patterns."""
    return tool.definition.decode("utf-8", "replace").replace("\\n", " ")


def _sound(text: str) -> str:
    """Without lone surrogates, which RE2 does not read."""
    return text.encode("utf-8", "replace").decode()
