"""Bytes as text: as they are where they are UTF-8, else by the signs of another encoding.

plain: after kinds. UTF-8 stays byte for byte, so that a quotation of the text is one of the file.
"""

from __future__ import annotations

import codecs

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decoded(data: bytes) -> tuple[str, str]:
    """The text, and a note on what was done to the bytes; empty if they are the text."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            text = data[len(mark) :].decode(encoding, "replace")
            return text, "" if encoding == "utf-8" else f"read as {encoding.upper()}"
    try:
        return data.decode(), ""
    except UnicodeDecodeError as error:
        # A stray byte in a file of UTF-8 is damage; a file with many is of another encoding.
        if error.start > len(data) // 2 or data.count(b"\xc3") > 4:
            return data.decode(
                "utf-8", "replace"
            ), "bytes that are no UTF-8 show as \N{REPLACEMENT CHARACTER}"
        return data.decode("cp1252", "replace"), "read as Windows-1252"
