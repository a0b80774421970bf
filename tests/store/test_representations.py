"""No record of a store shows its content where it is printed, as tracebacks and logs do."""

from __future__ import annotations

import pytest

from holdfast.store import Scope
from holdfast.store.queue import AttemptEnd
from holdfast.store.records import RefInfo, Stored, Summary
from holdfast.store.turn_store import turn_of
from tests.store.everything import answer, fact, said, tool
from tests.store.harness import content, session

SECRET = "the-content-of-a-message"
CONTENT = content(SECRET, summary=SECRET, compressed=SECRET)
INFO = RefInfo(
    ref_id=CONTENT.ref_id,
    kind="log",
    sha256=CONTENT.sha256,
    size=9,
    tokens=3,
    summary=SECRET,
    compressed=SECRET,
    meta={"url": SECRET},
    flags=(),
    created_at=1.0,
    expires_at=None,
    accessed_at=None,
    accesses=0,
    state="fresh",
)
RECORDS = {
    "Content": CONTENT,
    "RefInfo": INFO,
    "Stored": Stored(INFO, SECRET.encode()),
    "Summary": Summary("key", SECRET.encode(), ""),
    "SessionRecord": session(title=SECRET),
    "AttemptEnd": AttemptEnd(state="done", attempts=1, gist=SECRET),
    "NewFact": fact("f1", SECRET, "r", "s", subject=SECRET),
    "Fact": fact("f1", SECRET, "r", "s", subject=SECRET).fact,
    "StoredAnswer": answer("a1", SECRET, SECRET, (), "s"),
    "StoredTool": tool("search", SECRET),
    "NewTurn": said("t1", SECRET),
    "RememberedTurn": turn_of(Scope("ann", "blue", "s1"), said("t1", SECRET), 1),
}


@pytest.mark.parametrize("name", RECORDS)
def test_no_record_shows_its_content(name: str) -> None:
    record = RECORDS[name]
    assert type(record).__name__ == name
    assert SECRET not in repr(record)
    assert SECRET not in repr([record])
