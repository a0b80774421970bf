"""The tasks and answers of workers, and their transport through a pipe.

tasks: before all other files of workers. A message is a head of known types, followed by the bytes
of the content: nothing is unpickled, and a content is not copied into a head. A content is sent in
one direction only; the parent has it, and puts it back into the answer.
"""

from __future__ import annotations

import struct
from typing import BinaryIO

import msgspec

from holdfast.cite import Citation, CitingRules, cite, count
from holdfast.expand import ExpandOptions, Expansion, expand
from holdfast.expand.content_match import ContentMatch, MatchRules, match_content
from holdfast.extract import ExtractedText, FileKind, extract
from holdfast.store.records import Content
from holdfast.tokens import TokenCount
from holdfast.tokens import count as count_request
from holdfast.wire import read
from holdfast.wire.strict import Limits

_LENGTHS = struct.Struct("<QQ")
_PIPE_BYTES = 1 << 20
"""Bytes written at once: other threads of the process may run between two pieces."""


class CiteTask(msgspec.Struct, frozen=True, tag="cite"):
    """Cite the content."""

    rules: CitingRules
    kind: str | None = None
    question: str | None = None
    source_url: str | None = None
    tool: str = ""


class ExpandTask(msgspec.Struct, frozen=True, tag="expand"):
    """Open a part of the content."""

    ref_id: str
    kind: str
    options: ExpandOptions
    note: str
    opener: str


class MatchTask(msgspec.Struct, frozen=True, tag="match"):
    """Look for the passages of the content that answer a question."""

    ref_id: str
    kind: str
    question: str
    rules: MatchRules


class CountTask(msgspec.Struct, frozen=True, tag="count"):
    """Count the tokens of a request."""

    dialect: str
    model: str
    limits: Limits


class ExtractTask(msgspec.Struct, frozen=True, tag="extract"):
    """Read the text of a file."""

    kind: FileKind
    seconds: float
    """Seconds after which the reader returns its result so far."""
    url: str = ""


Task = CiteTask | ExpandTask | MatchTask | CountTask | ExtractTask


class Order(msgspec.Struct, frozen=True):
    """A task, and how long it may take."""

    task: Task
    seconds: float


class CiteResult(msgspec.Struct, frozen=True, tag="cited"):
    """A citation without the bytes of its original, or the text of one that stays as it is."""

    citation: Citation


class ExpandResult(msgspec.Struct, frozen=True, tag="opened"):
    """A part of a content."""

    expansion: Expansion


class MatchResult(msgspec.Struct, frozen=True, tag="matched"):
    """The passages of the content that answer the question."""

    match: ContentMatch


class CountResult(msgspec.Struct, frozen=True, tag="counted"):
    """The tokens of a request, before calibration."""

    count: TokenCount


class RefusalResult(msgspec.Struct, frozen=True, tag="refused"):
    """An error that is meant for the caller, such as that of a privacy policy."""

    kind: str
    what: str
    where: str
    fix: str


class FailureResult(msgspec.Struct, frozen=True, tag="failed"):
    """The task could not be done: out of memory, or a bug."""

    reason: str


Done = CiteResult | ExpandResult | MatchResult | CountResult | ExtractedText


class TaskAnswer(msgspec.Struct, frozen=True):
    """What became of an order."""

    result: Done | RefusalResult | FailureResult
    leaves: bool = False
    """The worker ends itself: it has grown large, and memory is seldom given back."""


def perform(task: Task, data: bytes) -> Done:
    """Do a task."""
    match task:
        case CiteTask():
            citation = cite(
                data,
                kind=task.kind,
                question=task.question,
                source_url=task.source_url,
                tool=task.tool,
                rules=task.rules,
            )
            return CiteResult(_without_data(citation))
        case ExpandTask():
            return ExpandResult(
                expand(
                    task.ref_id,
                    data,
                    task.kind,
                    task.options,
                    count=count,
                    note=task.note,
                    opener=task.opener,
                )
            )
        case MatchTask():
            match = match_content(task.ref_id, data, task.kind, task.question, task.rules, count)
            return MatchResult(match)
        case CountTask():
            conversation = read(data, task.dialect, limits=task.limits)
            return CountResult(count_request(conversation, model=task.model))
        case ExtractTask():
            return extract(data, task.kind, task.url, task.seconds)


def _without_data(citation: Citation) -> Citation:
    if citation.content is None:
        return msgspec.structs.replace(citation, text="")
    content: Content = msgspec.structs.replace(citation.content, data=b"")
    return msgspec.structs.replace(citation, content=content)


def with_data(citation: Citation, data: bytes) -> Citation:
    """Return a citation with the bytes of its content, which the pipe does not return."""
    if citation.content is None:
        return msgspec.structs.replace(citation, text=data.decode("utf-8", "replace"))
    content: Content = msgspec.structs.replace(citation.content, data=data)
    return msgspec.structs.replace(citation, content=content)


def pack(head: Order | TaskAnswer) -> bytes:
    """The head of a message; UnicodeEncodeError where a text in it is none."""
    return msgspec.msgpack.encode(head)


def send(pipe: BinaryIO, head: bytes, data: bytes = b"") -> None:
    """Write a message."""
    pipe.write(_LENGTHS.pack(len(head), len(data)) + head)
    for at in range(0, len(data), _PIPE_BYTES):
        pipe.write(memoryview(data)[at : at + _PIPE_BYTES])
    pipe.flush()


def receive(pipe: BinaryIO) -> tuple[bytes, bytes]:
    """Read a message, its head still packed; EOFError if the other side has closed the pipe."""
    lengths = _exactly(pipe, _LENGTHS.size)
    head, data = _LENGTHS.unpack(lengths)
    return _exactly(pipe, head), _exactly(pipe, data)


def _exactly(pipe: BinaryIO, size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return data
