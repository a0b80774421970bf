"""Digests of all bytes sent for recorded conversations: `python -m benchmarks.golden FILE`.

A change that must not alter behaviour is checked by running this before and after it: the first run
writes FILE, later runs compare with it, name the first conversation that differs and exit with 1.
100 recorded conversations are told in four dialects through the proxy in a window of 16,000 tokens,
so that results are cited and histories folded.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path

from benchmarks.replay import WINDOW, _recordings
from tests.support.recorded import DATA
from tests.surfaces.proxy.harness import DIALECTS, running_proxy
from tests.surfaces.proxy.replaying import Retold, retell, story_of
from tests.surfaces.proxy.upstream import Upstream

_OWN_HEADERS = "x-holdfast-"
_RANDOM = {"x-holdfast-session", "x-holdfast-turn"}
"""Headers with an id drawn by chance."""
_TIMES = re.compile(r"\d+(\.\d+)? ?ms")


def main(path: Path, every: int = 1) -> None:
    if not (DATA / "trajectories").exists():
        sys.exit("Recorded trajectories are not on this machine: set HOLDFAST_DATA.")
    digests = sent_digests(every)
    if not path.exists():
        path.write_text(json.dumps(digests, indent=0))
        print(f"{len(digests)} digests written to {path}")
        return
    before = json.loads(path.read_text())
    changed = [name for name in digests if name in before and digests[name] != before[name]]
    compared = sum(name in before for name in digests)
    print(f"{len(changed)} of {compared} conversations differ", *changed[:20], sep="\n  ")
    sys.exit(bool(changed or not compared))


def sent_digests(every: int = 1) -> dict[str, str]:
    """Return the digest of each conversation, by its number and dialect."""
    digests = {}
    with (
        Upstream(window=WINDOW) as upstream,
        running_proxy({"request_limit": WINDOW, "cite_policy": "auto"}, upstream.url) as proxy,
    ):
        for number, recording in enumerate(_recordings()):
            for dialect in DIALECTS if number % every == 0 else ():
                retold = retell(story_of(recording, dialect), proxy, upstream)
                digests[f"{number:03d} {dialect}"] = _digest(retold)
                upstream.requests.clear()
    return digests


def _digest(retold: Retold) -> str:
    digest = hashlib.sha256()
    for turn in retold.turns:
        digest.update(turn.got.body if turn.got else turn.answered.body)
        for name, value in sorted(turn.answered.headers.items()):
            if name.startswith(_OWN_HEADERS) and name not in _RANDOM:
                digest.update(f"{name}: {_TIMES.sub('', value)}\n".encode())
    for written in retold.written:
        for edit in written.edits:
            digest.update(f"{edit}\n".encode())
    return digest.hexdigest()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:3]))
