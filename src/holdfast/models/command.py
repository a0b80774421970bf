"""Models behind programs that are installed here: `[cli]claude:haiku`, `[cli]gemini:flash`.

command: after protocol. A program is run without a shell, in an empty folder of its own, with the
prompt on its standard input (arguments are shown to everyone by `ps`, and end at 128 KB). It is an
agent of its own, and what it is given may be a page that somebody wrote to give it orders: it runs
without tools, or without the right to change anything. When its time is over, or it has said more
than a summary can have, the whole of its process group is killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from holdfast.errors import (
    ModelAnswerError,
    ModelError,
    ModelRefusedError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from holdfast.models.protocol import Completion
from holdfast.settings import environment_for_programs

_MOST_BYTES = 4_194_304
"""Of what a program may print: frames and events around an answer included."""
_PIECE = 65_536

Reply = Callable[[bytes], Completion]
"""What a program printed → its answer; raises ModelError, or anything where it is not that."""


class Program(NamedTuple):
    """How a program is asked: `{model}` in its arguments is the model."""

    arguments: tuple[str, ...]
    reply: Reply


def plain_reply(data: bytes) -> Completion:
    """All that was printed is the answer."""
    return Completion(data.decode("utf-8", "replace").strip())


def _claude_reply(data: bytes) -> Completion:
    answer = json.loads(data)
    if answer["is_error"] or answer.get("subtype", "success") != "success":
        raise ModelUnavailableError("the program tells of an error")
    usage = answer.get("usage") or {}
    read = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    cost = answer.get("total_cost_usd")
    return Completion(
        text=str(answer["result"]),
        input_tokens=sum(int(usage.get(name) or 0) for name in read),
        output_tokens=int(usage.get("output_tokens") or 0),
        cost=float(cost) if cost is not None else None,
        model=next(iter(answer.get("modelUsage") or {}), ""),
    )


def _gemini_reply(data: bytes) -> Completion:
    answer = json.loads(data)
    if answer.get("error"):
        raise ModelUnavailableError("the program tells of an error")
    models: Mapping[str, Any] = (answer.get("stats") or {}).get("models") or {}
    tokens = [(of.get("tokens") or {}) for of in models.values()]
    return Completion(
        text=str(answer["response"]),
        input_tokens=sum(int(of.get("prompt") or 0) for of in tokens),
        output_tokens=sum(int(of.get("candidates") or 0) for of in tokens),
        model=next(iter(models), ""),
    )


def _codex_reply(data: bytes) -> Completion:
    text = ""
    usage: dict[str, Any] = {}
    for event in _events(data):
        if event.get("type") == "item.completed":
            item = event.get("item") or {}
            if item.get("type") == "agent_message":
                text = str(item["text"])
        elif event.get("type") == "turn.completed":
            usage = event.get("usage") or {}
        elif event.get("type") == "turn.failed":
            raise ModelUnavailableError("the program tells of an error")
    return Completion(
        text=text,
        input_tokens=int(usage.get("input_tokens") or 0),
        output_tokens=int(usage.get("output_tokens") or 0),
    )


def _events(data: bytes) -> Iterator[dict[str, Any]]:
    for line in data.splitlines():
        with suppress(ValueError):  # warnings stand between the events
            event = json.loads(line)
            if isinstance(event, dict):
                yield event


PROGRAMS: dict[str, Program] = {
    "claude": Program(
        (
            *("claude", "--print", "--model", "{model}", "--output-format", "json"),
            # No tools, no servers of tools: all it can do is answer.
            *("--tools", "", "--strict-mcp-config", "--disable-slash-commands"),
            "--no-session-persistence",
        ),
        _claude_reply,
    ),
    "gemini": Program(
        (
            *("gemini", "--model", "{model}", "--output-format", "json"),
            # Without a terminal this mode leaves out every tool that writes or runs something.
            *("--approval-mode", "default", "--extensions", "none", "--skip-trust"),
        ),
        _gemini_reply,
    ),
    "codex": Program(
        (
            *("codex", "exec", "--model", "{model}", "--json", "--skip-git-repo-check"),
            *("--sandbox", "read-only", "--ephemeral", "-"),
        ),
        _codex_reply,
    ),
}
"""The programs that are known; `summarization_commands` names others."""


class CommandModel:
    """A model that a program asks."""

    def __init__(
        self, name: str, command: Sequence[str], reply: Reply, *, window: int, timeout: float
    ) -> None:
        self.name = name
        self.window = window
        self._command = tuple(command)
        self._reply = reply
        self._timeout = timeout

    def __repr__(self) -> str:
        return f"<CommandModel {self.name}>"

    async def complete(self, prompt: str, *, system: str = "", max_tokens: int) -> Completion:
        """Run the program once; see `CompletionModel`. It knows no limit but its own."""
        del max_tokens
        program = shutil.which(self._command[0])
        if program is None:
            raise ModelRefusedError(
                "the program is not installed",
                where=self.name,
                fix=f"Install {self._command[0]}, or name another provider.",
            )
        text = f"{system}\n\n{prompt}" if system else prompt
        try:
            code, printed = await self._run(program, text.encode("utf-8", "replace"))
        except TimeoutError:
            raise ModelTimeoutError(
                f"no answer within {self._timeout:g} seconds",
                where=self.name,
                fix="Raise summarization_timeout, or name a faster provider.",
            ) from None
        except OSError as error:
            raise ModelRefusedError(
                f"the program cannot be run ({type(error).__name__})", where=self.name
            ) from None
        if code != 0:
            raise ModelUnavailableError(
                f"the program ended with code {code}",
                where=self.name,
                fix="Run it by hand to see why: what it prints is not shown here.",
            )
        try:
            return self._reply(printed)
        except ModelError as error:
            raise type(error)(error.what, where=self.name, fix=error.fix) from None
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise ModelAnswerError(
                "the program printed no answer",
                where=self.name,
                fix="Its version may be another: name its command in summarization_commands.",
            ) from None

    async def _run(self, program: str, text: bytes) -> tuple[int, bytes]:
        with tempfile.TemporaryDirectory(prefix="holdfast-", ignore_cleanup_errors=True) as folder:
            process = await asyncio.create_subprocess_exec(
                program,
                *self._command[1:],
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=folder,
                env=environment_for_programs(),
                start_new_session=True,
            )
            feeding = asyncio.create_task(_feed(process, text))
            try:
                async with asyncio.timeout(self._timeout):
                    printed = await self._read(process)
                    return await process.wait(), printed
            finally:
                feeding.cancel()
                _end(process)
                await process.wait()
                await asyncio.gather(feeding, return_exceptions=True)

    async def _read(self, process: asyncio.subprocess.Process) -> bytes:
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        printed = bytearray()
        while piece := await process.stdout.read(_PIECE):
            printed += piece
            if len(printed) > _MOST_BYTES:
                raise ModelAnswerError(
                    f"the program printed more than {_MOST_BYTES:,} bytes", where=self.name
                )
        return bytes(printed)


async def _feed(process: asyncio.subprocess.Process, text: bytes) -> None:
    """Give the program its prompt; one that reads no further has seen what it wanted."""
    assert process.stdin is not None  # noqa: S101 - a pipe was asked for
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(text)
        await process.stdin.drain()
    process.stdin.close()


def _end(process: asyncio.subprocess.Process) -> None:
    """End the program and all that it started: one that was left would go on asking and paying."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
