"""`litellm.compress`; a message it replaced is in its cache, whole.

At its defaults it leaves every request under 200,000 tokens alone. With an argument that is the
number of tokens from which it acts.
"""

from __future__ import annotations

import sys

from litellm.compression import compress

from benchmarks.peers.conversation import RESULT, Shrunk, messages, serve


def shrink(text: str, question: str) -> Shrunk:
    options = {"compression_trigger": int(sys.argv[1])} if len(sys.argv) > 1 else {}
    result = compress(messages(text, question), model="gpt-4o", **options)
    shown = result["messages"][RESULT]["content"]
    more = text if text in result["cache"].values() else None
    return Shrunk(shown, more, whole=text in (shown, more))


if __name__ == "__main__":
    serve(shrink)
