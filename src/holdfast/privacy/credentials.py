r"""Detect secrets: keys, tokens and passwords.

Formats and lengths follow the vendors' documentation or consoles and cover the rules of
`detect-secrets`, which a test verifies; its entropy plugins are left out, because git hashes and
UUIDs are as random as keys. Word boundaries and minimum lengths separate tokens from hashes, refs
and words such as `hvs.token` and `xai-org`.
"""

from __future__ import annotations

import base64
import binascii
import json

import re2  # type: ignore[import-untyped]

from holdfast.privacy.detector import Detector, Span

_PATTERNS = {
    # Model providers and their tools.
    "openrouter_key": r"\bsk-or-v1-[0-9a-f]{64}\b",
    "groq_key": r"\bgsk_[A-Za-z0-9]{48,60}\b",
    "xai_key": r"\bxai-[A-Za-z0-9]{70,90}\b",
    "perplexity_key": r"\bpplx-[A-Za-z0-9]{40,60}\b",
    "replicate_token": r"\br8_[A-Za-z0-9]{37}\b",
    "nvidia_key": r"\bnvapi-[A-Za-z0-9_-]{60,70}",
    "cerebras_key": r"\bcsk-[a-z0-9]{48}\b",
    "deepseek_key": r"\bsk-[0-9a-f]{32}\b",
    "tavily_key": r"\btvly-(?:dev-|prod-)?[A-Za-z0-9]{32}\b",
    "langsmith_key": r"\blsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}\b",
    "pinecone_key": r"\bpcsk_[A-Za-z0-9]{5,8}_[A-Za-z0-9]{50,70}\b",
    # Clouds and their identities.
    "google_oauth_token": r"\bya29\.[A-Za-z0-9_-]{20,}|\b1//0[A-Za-z0-9_-]{40,}",
    "google_client_secret": r"\bGOCSPX-[A-Za-z0-9_-]{28}",
    "azure_client_secret": r"\b[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}",
    "azure_sas": r"\bsig=((?:[A-Za-z0-9+/]|%2[BbFf]){43}(?:=|%3[Dd]))",
    "digitalocean_token": r"\bdo[opr]_v1_[0-9a-f]{64}\b",
    "databricks_token": r"\bdapi[0-9a-f]{32}\b",
    "heroku_key": r"\bHRKU-AA[A-Za-z0-9_-]{58}",
    "fly_token": r"\bfm[12][ar]?_[A-Za-z0-9+/=]{60,}",
    "netlify_token": r"\bnf[bcoup]_[A-Za-z0-9]{36}\b",
    "supabase_key": r"\bsbp_[0-9a-f]{40}\b|\bsb_secret_[A-Za-z0-9_-]{30,}",
    "planetscale_token": r"\bpscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,64}",
    # Secret stores and infrastructure.
    "vault_token": r"\bhv[brs]\.[A-Za-z0-9_-]{24,}",
    "doppler_token": r"\bdp\.(?:[a-z]{2}|scim|audit)\.(?:[a-z0-9_-]{1,60}\.)?[A-Za-z0-9]{40,44}\b",
    "terraform_token": r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}",
    "pulumi_token": r"\bpul-[0-9a-f]{40}\b",
    "age_key": r"\bAGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}\b",
    "grafana_token": r"\bglsa_[A-Za-z0-9]{32}_[0-9a-f]{8}\b|\bglc_[A-Za-z0-9+/]{32,}",
    "newrelic_key": r"\bNRAK-[A-Z0-9]{27}\b",
    "sentry_token": r"\bsntry[su]_[A-Za-z0-9+/=_]{40,}",
    "dockerhub_token": r"\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{27,32}",
    "rubygems_key": r"\brubygems_[0-9a-f]{48}\b",
    # Services.
    "stripe_webhook_secret": r"\bwhsec_[A-Za-z0-9+/]{24,64}={0,2}",
    "shopify_token": r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b",
    "linear_key": r"\blin_(?:api|oauth)_[A-Za-z0-9]{32,64}\b",
    "notion_token": r"\bntn_[0-9]{11}[A-Za-z0-9]{32,40}\b|\bsecret_[A-Za-z0-9]{43}\b",
    "figma_token": r"\bfig[dru]_[A-Za-z0-9_-]{40,}",
    "postman_key": r"\bPMAK-[0-9a-f]{24}-[0-9a-f]{34}\b",
    "airtable_token": r"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}\b",
    "atlassian_token": r"\bATATT3[A-Za-z0-9_=-]{150,}",
    "brevo_key": r"\bxkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}\b",
    "mailgun_key": r"\bkey-[0-9a-f]{32}\b",
}
VENDOR_KEYS = tuple(Detector(kind, pattern) for kind, pattern in _PATTERNS.items())
"""One detector per vendor."""


_PEM_HEADER = (
    r"(?:-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    r"|PuTTY-User-Key-File-[23](?:: [^\n\\]*)?)"
)
_GAP = r"(?:\s|\\[nrt])*"  # a key inside a JSON string has its line breaks escaped
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
    b"redact xxxx **** .... undefined process.env environ getenv secrets. secretkeyref"
).split()
_MADE_UP = r"example|placeholder|change[-_]?me|your[-_]?|todo|dummy"
_MADE_UP_WORD = re2.compile(f"(?i){_MADE_UP}")
_FILLER = re2.compile(f"(?i){_MADE_UP}|password|secret|token|api[-_]?key")
"""Words of placeholder values. A real secret may contain `example`; the remaining characters
decide.
"""
_FEWEST_AROUND = 6
_COMMON = frozenset(
    b"string text required optional hidden none null true false unknown invalid incorrect wrong"
    b" forgotten missing enabled disabled default prompt interactive basic plain bearer admin user"
    b" username value field input label reset update change confirm current new old empty".split()
)
_WIDEST_KEY = 8_000
"""Bytes searched on either side of a JSON web key's part; an RSA key of 8,192 bits is shorter."""
_OPENERS = b"$<{[%*@#&/"  # `${DB_PASSWORD}`, `<password>`, `%s`, `/run/secrets/db`


def _is_reference(value: bytes) -> bool:
    """Return whether a value is code, a variable or a mask instead of a secret."""
    lowered = value.lower()
    return (
        value[0] in _OPENERS
        or any(mark in value for mark in (b"://", b"(", b"${"))
        or lowered.startswith((b"self.", b"this.", b"config."))
        or any(placeholder in lowered for placeholder in _PLACEHOLDERS)
    )


def _is_random(value: bytes) -> bool:
    """Return whether a value may be a secret rather than a word, name or placeholder."""
    if _is_reference(value):
        return False
    if _MADE_UP_WORD.search(value):
        remainder = _FILLER.sub(b"", value)
        return len(remainder) >= _FEWEST_AROUND and _is_mixed(remainder)
    return _is_mixed(value)


def _is_mixed(value: bytes) -> bool:
    has_digit = any(48 <= byte <= 57 for byte in value)
    has_letter = any(byte > 64 for byte in value)
    is_number = value.replace(b".", b"").replace(b",", b"").replace(b"-", b"").isdigit()
    has_mark = any(byte in b"!#$%^&*+=?@~|" for byte in value)
    return not is_number and has_letter and (has_digit or has_mark)


def _assigned(data: bytes, start: int, stop: int) -> Span | None:
    return (start, stop) if _is_random(data[start:stop]) else None


def _password(data: bytes, start: int, stop: int) -> Span | None:
    """Return the span of an all-letter value where a password is expected, except UI words."""
    value = data[start:stop]
    is_word = value.lower() in _COMMON or _is_reference(value) or _FILLER.search(value)
    return None if is_word else (start, stop)


def _login(data: bytes, start: int, stop: int) -> Span | None:
    """Return the span of `user:password` on a command line, unless it is a placeholder."""
    user, _, password = data[start:stop].partition(b":")
    is_made_up = _is_reference(password) or user[:1] in b"$<{" or _FILLER.fullmatch(password)
    return None if is_made_up or user.isdigit() else (start, stop)


def _jwk(data: bytes, start: int, stop: int) -> Span | None:
    """Return the span of a private part of a JSON web key, if the object around it has `kty`."""
    opening = data.rfind(b"{", max(0, start - _WIDEST_KEY), start)
    closing = data.find(b"}", stop, stop + _WIDEST_KEY)
    is_key = opening >= 0 and closing >= 0 and b"kty" in data[opening:closing]
    return (start, stop) if is_key else None


def _in_url(data: bytes, start: int, stop: int) -> Span | None:
    user, _, password = data[start:stop].partition(b":")
    is_placeholder = password[:1] in (b"$", b"<", b"{", b"*", b"%", b"") or user[:1] in (b"$", b"<")
    is_placeholder = is_placeholder or b"xxxx" in password.lower()
    return None if is_placeholder else (start, stop)


def _base64(part: bytes) -> bytes:
    try:
        return base64.urlsafe_b64decode(part.rstrip(b"=") + b"=" * (-len(part.rstrip(b"=")) % 4))
    except (binascii.Error, ValueError):
        return b""


def _jwt(data: bytes, start: int, stop: int) -> Span | None:
    """Return the span of a token whose header is a JSON object with `alg` (RFC 7515).

    Pagination cursors have the same shape, but no algorithm.
    """
    try:
        header = json.loads(_base64(data[start:stop].split(b".", 1)[0]))
    except (ValueError, RecursionError):
        return None
    return (start, stop) if isinstance(header, dict) and "alg" in header else None


def _discord(data: bytes, start: int, stop: int) -> Span | None:
    """Return the span of a Discord bot token, whose first part encodes the bot's number."""
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
    *VENDOR_KEYS,
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
    Detector(
        "password",
        r"""(?i:pass(?:word|wd|phrase)|\bpwd)(?:\\?["'])?\s{0,4}(?::=|=>|[:=])\s{0,4}\\?["']"""
        r"""([A-Za-z]{8,64})\\?["']"""
        r"""|(?:^|[\s;"'])(?:export\s+)?[A-Z0-9_]*PASS(?:WORD|WD)?=([A-Za-z]{8,64})(?:[\s;"'\\]|$)""",
        check=_password,
    ),
    Detector(
        "login",
        r"""\bcurl\s(?:[^\n|;]*?\s)?(?:-u|--user|-U|--proxy-user)[ =]?\\?["']?"""
        r"""([^\s"':\\]{1,100}:[^\s"'\\]{3,200})""",
        check=_login,
    ),
    Detector(
        "password",
        r"""\bsshpass\s+-p\s*\\?["']?([^\s"'\\]{4,200})"""
        r"|\bmachine\s+\S{1,200}\s+login\s+\S{1,100}\s+password\s+([^\s\\]{4,200})",
        check=_assigned,
    ),
    Detector(
        "jwk_private_key",
        r"""\\?"(?:d|k|p|q|dp|dq|qi)\\?"\s{0,4}:\s{0,4}\\?"([A-Za-z0-9_-]{16,})\\?\"""",
        check=_jwk,
    ),
)
"""All detectors of secrets; where findings overlap, the first in this order names the kind."""
