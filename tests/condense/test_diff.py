"""Diffs: files, counts, hunks."""

from __future__ import annotations

from holdfast.condense import diff
from holdfast.condense.source import Source
from tests.condense.places import opened

GIT = """\
diff --git a/src/app.py b/src/app.py
index 1..2 100644
--- a/src/app.py
+++ b/src/app.py
@@ -1,3 +1,4 @@ def main():
 import os
-x = 1
+x = 2
+y = 3
@@ -40,2 +41,2 @@ class Late:
-old tail
+new tail
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/logo.png b/logo.png
new file mode 100644
Binary files /dev/null and b/logo.png differ
"""
PLAIN = (
    "--- one.txt\t2024-01-01\n+++ one.txt\t2024-01-02\n@@ -1 +1 @@\n-a\n+b\n"
    "--- two.txt\n+++ two.txt\n@@ -1 +1 @@\n-c\n+d\n"
)


def test_files_are_counted_with_their_changes() -> None:
    source = Source(GIT.encode())
    assert diff.sniff(source) > 0.9
    condensed = diff.condense(source)
    assert condensed.title == "Diff, 3 files, +3 -3 lines"
    outline = {note.text: note.where for note in condensed.notes if note.role == "outline"}
    assert outline == {
        "src/app.py +3 -2, 2 hunks": "lines 1-12",
        "gone.txt +0 -1, 1 hunk, deleted file": "lines 13-18",
        "logo.png +0 -0, 0 hunks, new file": "lines 19-21",
    }


def test_a_plain_diff_is_known_too() -> None:
    source = Source(PLAIN.encode())
    assert diff.sniff(source) > 0.5
    assert [(one.name, one.added, one.removed) for one in diff.parse(source)] == [
        ("one.txt", 1, 1),
        ("two.txt", 1, 1),
    ]


def test_a_later_hunk_is_quoted_under_the_name_of_its_file() -> None:
    source = Source(GIT.encode())
    late = next(part for part in diff.passages(source) if "new tail" in part.text)
    assert late.text.startswith("src/app.py\n@@ -40,2 +41,2 @@ class Late:")
    assert late.where == "lines 10-12"
    assert "new tail" in opened(source, late.where)


def test_the_message_of_a_commit_is_the_head() -> None:
    source = Source(f"commit 1a2b\nAuthor: A\n\n    Mend the tail\n\n{GIT}".encode())
    assert diff.sniff(source) > 0.5
    assert "Mend the tail" in diff.condense(source).notes[0].text


def test_a_list_with_dashes_is_no_diff() -> None:
    assert diff.sniff(Source(b"--- Menu\n- soup\n- bread\n")) == 0


def test_very_many_files_are_counted_and_all_are_in_passages() -> None:
    one = "diff --git a/f{0} b/f{0}\n--- a/f{0}\n+++ b/f{0}\n@@ -1 +1 @@\n-old {0}\n+new {0}\n"
    content = Source("".join(map(one.format, range(3_000))).encode())
    condensed = diff.condense(content)
    assert condensed.title == "Diff, 3,000 files, +3,000 -3,000 lines"
    assert any(note.text == "2,960 more files, +2,960 -2,960" for note in condensed.notes)
    parts = diff.passages(content)
    texts = "\n".join(part.text for part in parts)
    assert all(f"+new {n}\n" in f"{texts}\n" for n in range(3_000))
