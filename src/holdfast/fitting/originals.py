"""Originals that are removed from a request, each under its ref, until they are stored."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.cite import CitingRules
from holdfast.privacy import flags_in_json, secrets_in_json
from holdfast.store.records import Content, Edit
from holdfast.store.refs import digest, ref_id
from holdfast.trim.pieces import listed, run_digest
from holdfast.trim.provenance import refs_of
from holdfast.wire import Message
from holdfast.wire.message import spans_of
from holdfast.wire.notes import SingleNote


class Originals:
    """Contents that one fit removes from a request."""

    def __init__(self, rules: CitingRules) -> None:
        self._rules = rules
        self._cited: dict[str, Content] = {}
        self._trimmed: dict[str, Content] = {}
        self._runs: dict[str, Sequence[Message]] = {}
        """Messages of which only the name was noted, by that: most that are tried never go."""
        self.refused = False
        """Whether something stayed because it may not be stored."""

    def cited(self, content: Content) -> None:
        """Note the original of a citation."""
        self._cited[content.ref_id] = content

    def name_of(self, kind: str, original: bytes) -> str:
        """Return the ref of an original that was stored before."""
        return ref_id(kind, digest(original), self._rules.ref_digits)

    def keep(self, kind: str, original: bytes, tokens: float) -> str:
        """Note a removed original and return its ref; empty if it may not be stored.

        Such content may not leave the request either: nothing would bring it back.
        """
        name, sha256 = self._name(kind, digest(original))
        if name not in self._trimmed:
            flags = flags_in_json(original)
            if not self._may_leave(flags):
                return ""
            self._note(name, kind, sha256, tokens, flags, original)
        return name

    def keep_run(self, originals: Sequence[Message], tokens: float) -> str:
        """Do the same for a list of client messages; their bytes are joined only if they leave."""
        name, sha256 = self._name("fold", run_digest(originals))
        if name not in self._trimmed:
            flags = tuple(sorted({flag for message in originals for flag in _flags_of(message)}))
            if not self._may_leave(flags):
                return ""
            self._note(name, "fold", sha256, tokens, flags)
            self._runs[name] = tuple(originals)
        return name

    def _name(self, kind: str, sha256: str) -> tuple[str, str]:
        return ref_id(kind, sha256, self._rules.ref_digits), sha256

    def _may_leave(self, flags: tuple[str, ...]) -> bool:
        if flags and self._rules.privacy == "refuse":
            self.refused = True
            return False
        return True

    def _note(
        self,
        name: str,
        kind: str,
        sha256: str,
        tokens: float,
        flags: tuple[str, ...],
        data: bytes = b"",
    ) -> None:
        self._trimmed[name] = Content(
            ref_id=name,
            kind=kind,
            sha256=sha256,
            data=data,
            summary=_SUMMARIES[kind],
            tokens=round(tokens),
            flags=flags,
            ttl_seconds=self._rules.ttl_seconds,
        )

    def would_lose(self, before: Sequence[Message], after: Sequence[Message]) -> bool:
        """Return whether a change removes a secret that may not be stored."""
        if self._rules.privacy != "refuse":
            return False
        remaining = secrets_in_json(b",".join(spans_of(after)))
        secrets = secrets_in_json(b",".join(spans_of(before)))
        return any(secret not in remaining for secret in secrets)

    def contents(self, messages: Sequence[Message], edits: Sequence[Edit]) -> tuple[Content, ...]:
        """Return the contents to store before messages are sent: those they or the edits name.

        Attempts that were not used noted more than these.
        """
        if not self._cited and not self._trimmed:
            return ()
        named = {ref for message in messages for ref in refs_of(message)}
        named.update(edit.ref_id for edit in edits)
        removed = (*self._cited.items(), *self._trimmed.items())
        return tuple(self._whole(content) for name, content in removed if name in named)

    def _whole(self, content: Content) -> Content:
        run = self._runs.get(content.ref_id)
        return content if run is None else msgspec.structs.replace(content, data=listed(run))


def _flags_of(message: Message) -> tuple[str, ...]:
    """Return the kinds of secrets and personal data in a message, which may be in many runs."""
    flags = _FLAGS.get(message)
    return _FLAGS.put(message, flags_in_json(message.raw)) if flags is None else flags


_FLAGS: SingleNote[tuple[str, ...]] = SingleNote("kinds of secrets")


_SUMMARIES = {
    "fold": "Messages of the conversation, as JSON, that a digest stands for",
    "text": "A text of the user's whose middle was cut out of the conversation",
    "tool_result": "A tool result whose middle was cut out of the conversation",
    "message": "Messages as the client sent them, before they were mended",
    "tools": "Tools that were withheld, as JSON",
    "schemas": "Definitions of tools that a directory stands for, as JSON",
}
