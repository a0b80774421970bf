r"""Secrets: keys, tokens and passwords that open something.

credentials: after detector, beside personal. The formats are those that vendors document, and
cover the rules of `detect-secrets` (a test holds that); its plugins that judge by entropy are left
out, since every git hash and UUID is as random as a key. `\b` and bounds keep hashes, refs and
words apart from tokens.
"""

from __future__ import annotations

import base64
import binascii
import json

from holdfast.privacy.detector import Detector, Span

_PEM_HEADER = (
    r"(?:-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    r"|PuTTY-User-Key-File-[23](?:: [^\n\\]*)?)"
)
_GAP = r"(?:\s|\\[nrt])*"  # a key inside a JSON string has its line ends escaped
_PEM_BODY = rf"(?:{_GAP}(?:[A-Za-z0-9+/=]{{20,}}|[A-Z][A-Za-z-]+: [^\n\\]*))*"
_PEM_END = rf"(?:{_GAP}[A-Za-z0-9+/=]{{0,19}}{_GAP}-----END [A-Z0-9 ]{{0,40}}-----)?"

_NAMES = (
    r"pass(?:word|wd|phrase)|pwd|contrase(?:ñ|n\x{303}?)a|secret"
    r"|(?:secret|api|auth|access|service|account|client|private|priv|db|database|encryption|signing)"
    r"[_-]?(?:access[_-]?)?key|(?:db|database|key)[_-]?pass"
    r"|(?:api|auth|access|refresh|bearer|session|secret)[_-]?token"
)
_TAIL = r"(?:[_-]?(?:value|plain|base64|key|\d{1,3}))?"
_ASSIGN = r"""(?:\\?["'`\]]){0,2}\s{0,8}(?::=|=>|={1,3}|!==?|:)\s{0,8}@?"""
_VALUE = r"""(?:\\?["'`]([^"'`\\\s]{6,200})\\?["'`]|([^"'`\\\s,;<>(){}\[\]&]{8,200}))"""
_PLACEHOLDERS = (
    b"redact example placeholder changeme your_ your- xxxx **** .... todo dummy undefined "
    b"process.env environ getenv secrets. secretkeyref"
).split()
_OPENERS = b"$<{[%*@#&/"  # `${DB_PASSWORD}`, `<password>`, `%s`, `/run/secrets/db`


def _is_random(value: bytes) -> bool:
    """Whether a value could be a password, and not a word, a name or a placeholder."""
    lowered = value.lower()
    if value[0] in _OPENERS or b"://" in value or any(p in lowered for p in _PLACEHOLDERS):
        return False
    if b"(" in value or b"${" in value or lowered.startswith((b"self.", b"this.", b"config.")):
        return False
    has_digit = any(48 <= byte <= 57 for byte in value)
    has_letter = any(byte > 64 for byte in value)
    is_number = value.replace(b".", b"").replace(b",", b"").replace(b"-", b"").isdigit()
    has_mark = any(byte in b"!#$%^&*+=?@~|" for byte in value)
    return not is_number and has_letter and (has_digit or has_mark)


def _assigned(data: bytes, start: int, stop: int) -> Span | None:
    return (start, stop) if _is_random(data[start:stop]) else None


def _in_url(data: bytes, start: int, stop: int) -> Span | None:
    user, _, password = data[start:stop].partition(b":")
    is_placeholder = password[:1] in (b"$", b"<", b"{", b"*", b"%", b"") or user[:1] in (b"$", b"<")
    return None if is_placeholder else (start, stop)


def _base64(part: bytes) -> bytes:
    try:
        return base64.urlsafe_b64decode(part.rstrip(b"=") + b"=" * (-len(part.rstrip(b"=")) % 4))
    except (binascii.Error, ValueError):
        return b""


def _jwt(data: bytes, start: int, stop: int) -> Span | None:
    """A token's first part is a JSON object."""
    try:
        header = json.loads(_base64(data[start:stop].split(b".", 1)[0]))
    except (ValueError, RecursionError):
        return None
    return (start, stop) if isinstance(header, dict) else None


def _discord(data: bytes, start: int, stop: int) -> Span | None:
    """A bot token's first part is the bot's number."""
    return (start, stop) if _base64(data[start:stop].split(b".", 1)[0]).isdigit() else None


CREDENTIALS = (
    Detector("private_key", _PEM_HEADER + _PEM_BODY + _PEM_END),
    Detector(
        "aws_access_key",
        r"\b(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}\b",
    ),
    Detector(
        "aws_secret_key",
        r"""(?i:aws)[^\n]{0,20}?(?i:key|pwd?|pass(?:word)?|token)[^\n]{0,20}?["']([0-9a-zA-Z/+]{40})\\?["']""",
    ),
    Detector(
        "github_token",
        r"\b(?:gh[pousr]_[A-Za-z0-9_]{36,255}|github_pat_[A-Za-z0-9_]{22,255})",
    ),
    Detector(
        "gitlab_token",
        r"\b(?:gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas)-|GR1348941)[A-Za-z0-9_-]{20,1000}",
    ),
    Detector(
        "slack_token",
        r"(?i:\bxox[abeoprs]-(?:[0-9]+-)+[a-z0-9-]+|\bxapp-[0-9]-[a-z0-9-]{20,}"
        r"|https://hooks\.slack\.com/services/T\w+/B\w+/\w+)",
    ),
    Detector("stripe_key", r"\b[rs]k_live_[0-9A-Za-z]{24,247}"),
    Detector(
        "openai_key",
        r"\bsk-[A-Za-z0-9_-]*[A-Za-z0-9_-]{20}T3BlbkFJ[A-Za-z0-9_-]{20,}",
    ),
    Detector("anthropic_key", r"\bsk-ant-[a-z0-9]{2,12}-[A-Za-z0-9_-]{40,200}"),
    Detector("google_api_key", r"\bAIza[0-9A-Za-z_-]{35}"),
    Detector("huggingface_token", r"\bhf_[A-Za-z]{34}\b"),
    Detector(
        "npm_token",
        r"\bnpm_[A-Za-z0-9]{36}\b|:_authToken=\s*([A-Za-z0-9_-]{20,})",
    ),
    Detector("pypi_token", r"\bpypi-AgE[A-Za-z0-9_-]{70,}"),
    Detector("sendgrid_key", r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    Detector("twilio_key", r"\b(?:AC|SK)[0-9a-f]{32}\b"),
    Detector("mailchimp_key", r"\b[0-9a-f]{32}-us[0-9]{1,2}\b"),
    Detector("square_key", r"\bsq0(?:csp|atp|idp)-[0-9A-Za-z_-]{22,43}"),
    Detector("telegram_token", r"\b[0-9]{8,10}:AA[0-9A-Za-z_-]{33}\b"),
    Detector(
        "discord_token",
        r"\b[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,38}",
        check=_discord,
    ),
    Detector("azure_storage_key", r"AccountKey=([A-Za-z0-9+/=]{88})"),
    Detector("artifactory_token", r"\bAKC[a-zA-Z0-9]{64,}\b"),
    Detector(
        "jwt",
        r"\beyJ[A-Za-z0-9_-]{8,}=*\.[A-Za-z0-9_-]{2,}=*(?:\.[A-Za-z0-9_=-]*){1,3}",
        check=_jwt,
    ),
    Detector(
        "basic_auth_url",
        r"""://([^\s/?#\[\]@:"'<>(){}\\]{0,100}:[^\s/?#\[\]@:"'<>(){}\\]{1,200})@[A-Za-z0-9\[]""",
        check=_in_url,
    ),
    Detector(
        "authorization_header",
        r"""(?i:authorization["']?\s{0,4}[:=]\s{0,4}["']?(?:bearer|basic|token)\s+)"""
        r"([A-Za-z0-9._~+/=-]{12,})",
        check=_assigned,
    ),
    Detector(
        "generic_secret_assignment",
        f"(?i:(?:{_NAMES}){_TAIL}){_ASSIGN}{_VALUE}",
        check=_assigned,
    ),
)
"""Every detector of secrets; where findings overlap, the first of these gives the kind."""
