"""Detect personal data with a fixed format: emails, phone numbers, cards, accounts, US SSNs.

Names and postal addresses have no such format and are not detected. IP addresses are not either:
they identify machines and would flag every log line.
"""

from __future__ import annotations

from holdfast.privacy.detector import Detector, Span, stands_alone

_FILES = frozenset(
    b"png jpg jpeg gif svg webp ico js mjs css json html htm xml md txt py ts service slice socket "
    b"timer mount target scope".split()
)
"""Suffixes in file and unit names with an `@`, such as `icon@2x.png` and `getty@tty1.service`."""

_IBAN_LENGTHS = {
    text[:2].encode(): int(text[2:])
    for text in (
        "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 "
        "EE20 EG29 ES24 FI18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 "
        "IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MR27 MT31 MU30 "
        "NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SE24 SI19 SK24 SM27 ST25 SV28 TL23 "
        "TN24 TR26 UA29 VA22 VG24 XK20"
    ).split()
}


def _email(data: bytes, start: int, stop: int) -> Span | None:
    # `\n` and `\u003c` in a JSON string are escapes, not letters
    if data[start - 1 : start] == b"\\":
        start += 5 if data[start : start + 5].lower() in (b"u003c", b"u0022", b"u0027") else 1
    user, _, domain = data[start:stop].partition(b"@")
    if not user or user == b"git" or domain.rpartition(b".")[2].lower() in _FILES:
        return None
    return start, stop


def _phone(data: bytes, start: int, stop: int) -> Span | None:
    digits = sum(48 <= byte <= 57 for byte in data[start:stop])
    if not 7 <= digits <= 15 or not stands_alone(data, start, stop):
        return None
    # A diff prefixes added lines with a plus, so an all-digit line there is not a phone number.
    is_added_line = data[start : start + 1] == b"+" and data[start - 1 : start] in (b"", b"\n")
    return None if is_added_line and data[start + 1 : stop].isdigit() else (start, stop)


def passes_luhn(digits: bytes) -> bool:
    """Return whether digits pass the Luhn check: double every second one, sum divisible by ten."""
    values = [byte - 48 for byte in digits[::-1]]
    return (sum(values[::2]) + sum(sum(divmod(2 * v, 10)) for v in values[1::2])) % 10 == 0


def _card(data: bytes, start: int, stop: int) -> Span | None:
    written = data[start:stop]
    digits = written.replace(b" ", b"").replace(b"-", b"")
    if not passes_luhn(digits) or not stands_alone(data, start, stop):
        return None
    # One number in ten passes Luhn by chance, so a bare number called an id, or in a ref, is no
    # card.
    before = data[max(start - 48, 0) : start].lower()
    is_id = before.rstrip(b" \"':=\\").endswith(b"id") or b"ref:" in before.rpartition(b" ")[2]
    return None if written == digits and is_id else (start, stop)


def _iban(data: bytes, start: int, stop: int) -> Span | None:
    length = _IBAN_LENGTHS.get(data[start : start + 2])
    if length is None:
        return None
    end, length_so_far = start, 0
    while end < stop and length_so_far < length:
        length_so_far += data[end] != 32
        end += 1
    account = data[start:end].replace(b" ", b"")
    if length_so_far < length or not stands_alone(data, start, end):
        return None
    moved = account[4:] + account[:4]
    number = int("".join(str(int(chr(byte), 36)) for byte in moved))
    return (start, end) if number % 97 == 1 else None


def _ssn(data: bytes, start: int, stop: int) -> Span | None:
    return (start, stop) if stands_alone(data, start, stop) else None


PERSONAL = (
    Detector(
        "email",
        r"\b[A-Za-z0-9][A-Za-z0-9._%+-]*@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,24}\b",
        check=_email,
    ),
    Detector(
        "credit_card",
        r"\b(?:(?:4[0-9]{3}|5[1-5][0-9]{2}|2[2-7][0-9]{2}|6(?:011|2[0-9]{2}|4[4-9][0-9]|5[0-9]{2})"
        r"|35[2-8][0-9])(?:[ -]?[0-9]{4}){3}|3[47][0-9]{2}[ -]?[0-9]{6}[ -]?[0-9]{5})\b",
        check=_card,
    ),
    Detector("iban", r"\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]){11,36}", check=_iban),
    Detector(
        "us_ssn",
        r"\b(?:00[1-9]|0[1-9][0-9]|[1-57-8][0-9]{2}|6[0-57-9][0-9]|66[0-57-9])"
        r"-(?:0[1-9]|[1-9][0-9])-(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})\b",
        check=_ssn,
    ),
    Detector(
        "phone",
        r"\+[1-9][0-9]{0,3}(?:[ .-]?(?:\([0-9]{1,5}\)|[0-9]{1,5})){1,7}",
        check=_phone,
    ),
    Detector(
        "phone",
        r"\([2-9][0-9]{2}\) ?[2-9][0-9]{2}[ .-][0-9]{4}\b"
        r"|\b[2-9][0-9]{2}(?:-[2-9][0-9]{2}-|\.[2-9][0-9]{2}\.)[0-9]{4}\b",
        check=_phone,
    ),
    Detector(
        "phone",
        r"""(?i:(?:\b|_)(?:tele)?(?:phone|mobile|cell|tel|fax)\w{0,12}(?:\\?["'])?[:=]\s{0,4}(?:\\?["'])?)"""
        r"(\+?[0-9(](?:[ ().-]{0,2}[0-9]){6,14})",
        check=_phone,
    ),
)
"""All detectors of personal data."""
