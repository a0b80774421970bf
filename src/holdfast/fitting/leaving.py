"""Originals that leave a request, each under its ref, until they are stored.

leaving: after state, before the steps that take something out.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.cite import CitingRules
from holdfast.privacy import flags_in_json, secrets_in_json
from holdfast.store.records import Content, Edit
from holdfast.store.refs import digest, ref_id
from holdfast.trim.standing import refs_of
from holdfast.wire import Message
from holdfast.wire.message import spans_of


class Leaving:
    """What one call of fit takes out."""

    def __init__(self, rules: CitingRules) -> None:
        self._rules = rules
        self._cited: dict[str, Content] = {}
        self._trimmed: dict[str, Content] = {}
        self.refused = False
        """Whether something stayed because it may not be stored."""

    def cited(self, content: Content) -> None:
        """Note the original of a citation."""
        self._cited[content.ref_id] = content

    def name_of(self, kind: str, original: bytes) -> str:
        """The ref of an original that was stored before."""
        return ref_id(kind, digest(original), self._rules.ref_digits)

    def keep(self, kind: str, original: bytes, tokens: float) -> str:
        """Note an original that is taken out; its ref, or nothing where it may not be stored.

        What may not be stored may not leave either: nothing would bring it back.
        """
        sha256 = digest(original)
        name = ref_id(kind, sha256, self._rules.ref_digits)
        if name not in self._trimmed:
            kinds = flags_in_json(original)
            if kinds and self._rules.privacy == "refuse":
                self.refused = True
                return ""
            self._trimmed[name] = Content(
                ref_id=name,
                kind=kind,
                sha256=sha256,
                data=original,
                summary=_SUMMARIES[kind],
                tokens=round(tokens),
                flags=kinds,
                ttl_seconds=self._rules.ttl_seconds,
            )
        return name

    def would_lose(self, before: Sequence[Message], after: Sequence[Message]) -> bool:
        """Whether a change takes something away that may not be stored."""
        if self._rules.privacy != "refuse":
            return False
        remaining = secrets_in_json(b",".join(spans_of(after)))
        secrets = secrets_in_json(b",".join(spans_of(before)))
        return any(secret not in remaining for secret in secrets)

    def contents(self, messages: Sequence[Message], edits: Sequence[Edit]) -> tuple[Content, ...]:
        """What must be stored before messages are sent: what they or the edits name.

        What was tried and not done is more than that.
        """
        if not self._cited and not self._trimmed:
            return ()
        named = {ref for message in messages for ref in refs_of(message)}
        named.update(edit.ref_id for edit in edits)
        left = (*self._cited.items(), *self._trimmed.items())
        return tuple(content for name, content in left if name in named)


_SUMMARIES = {
    "fold": "Messages of the conversation, as JSON, that a digest stands for",
    "text": "A text of the user's whose middle was cut out of the conversation",
    "tool_result": "A tool result whose middle was cut out of the conversation",
    "message": "Messages as the client sent them, before they were mended",
    "tools": "Tools that were withheld, as JSON",
    "schemas": "Definitions of tools that a directory stands for, as JSON",
}
