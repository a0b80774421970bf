"""OpenAI's vocabularies for tiktoken, without a network.

tiktoken downloads its vocabularies when it first needs them. The same tables are compiled into
splintr, which the package counts with; here they are written out once in OpenAI's own file format,
where tiktoken finds them in its cache. tiktoken checks the file against OpenAI's SHA-256 and would
download again if one byte differed, so nothing is taken on trust but the table of tokens: cutting
words, merging and counting are tiktoken's own.
"""

from __future__ import annotations

import base64
import hashlib
import os
from functools import cache
from pathlib import Path
from unittest import mock

import splintr
import tiktoken

CACHE = Path(__file__).parents[2] / "build" / "vocabularies"
_URL = "https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
_TOKENS = {"o200k_base": 199_998, "cl100k_base": 100_256}
"""Number of ranks in a file; splintr's own special tokens follow."""


@cache
def encoding(name: str = "o200k_base") -> tiktoken.Encoding:
    """tiktoken's encoding of this name."""
    # tiktoken names the files of its cache by the SHA-1 of their address.
    address = _URL.format(name=name).encode()
    path = CACHE / hashlib.sha1(address, usedforsecurity=False).hexdigest()
    if not path.exists():
        _write(name, path)
    with mock.patch.dict(os.environ, {"TIKTOKEN_CACHE_DIR": str(CACHE)}):
        return tiktoken.get_encoding(name)


def _write(name: str, path: Path) -> None:
    table = splintr.Tokenizer.from_pretrained(name)
    ranks = range(_TOKENS[name])
    lines = (
        base64.b64encode(bytes(table.decode_token_bytes(rank))) + b" %d\n" % rank for rank in ranks
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    # Workers of one test run may all find it missing: each writes its own, and the last one stays.
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(b"".join(lines))
    unfinished.replace(path)
