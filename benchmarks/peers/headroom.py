"""headroom's `compress` at its defaults; what it sets aside is in its store, by a hash it names.

Its model for prose (Kompress) is fetched from Hugging Face and needs further packages; a plain
installation works without, and so does this.
"""

from __future__ import annotations

import re

from headroom import compress
from headroom.cache.compression_store import get_compression_store

from benchmarks.peers.conversation import RESULT, Shrunk, messages, serve

NAMED = re.compile(r"(?:hash=|<<ccr:)([0-9a-f]{8,64})")


def shrink(text: str, question: str) -> Shrunk:
    result = compress(messages(text, question), model="gpt-4o")
    shown = result.messages[RESULT]["content"]
    stored = [get_compression_store().retrieve(name) for name in NAMED.findall(shown)]
    originals = [entry.original_content for entry in stored if entry is not None]
    more = "\n".join(originals) if originals else None
    return Shrunk(shown, more, whole=text in (shown, more))


if __name__ == "__main__":
    serve(shrink)
