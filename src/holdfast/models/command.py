"""Models of installed programs: `[cli]claude:haiku`, `[cli]gemini:flash`.

A program is run without a shell, in an empty folder, with the prompt on its standard input
(arguments are visible to everyone in `ps`, and limited to 128 KB). It is an agent, and its input
may contain hostile orders: it runs without tools, or without permission to change anything. After
its timeout, or too much output, its whole process group is killed.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from holdfast.budget.usage import Usage, reported_usage, token_count
from holdfast.errors import (
    ModelAnswerError,
    ModelError,
    ModelRefusedError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from holdfast.models.protocol import Completion
from holdfast.settings import environment_for_programs
from holdfast.temporary import temporary_folder

_MOST_BYTES = 4_194_304
"""Maximum output of a program, including frames and events around an answer."""
_LINGER_SECONDS = 1.0
"""Seconds to wait for the output of a program that has ended: it is in the pipe already, and
reading it takes milliseconds."""

Reply = Callable[[bytes], Completion]
"""Maps a program's output to its answer; raises ModelError, or any exception for other output."""


class InstalledProgram(NamedTuple):
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
    usage = reported_usage(answer) or Usage()
    cost = answer.get("total_cost_usd")
    return Completion(
        text=str(answer["result"]),
        input_tokens=usage.input or 0,
        output_tokens=usage.output or 0,
        # NaN and negative values are no prices, and would spoil every sum.
        cost=float(cost) if isinstance(cost, int | float) and 0 <= cost < math.inf else None,
        model=next(iter(answer.get("modelUsage") or {}), ""),
    )


def _gemini_reply(data: bytes) -> Completion:
    answer = json.loads(data)
    if answer.get("error"):
        raise ModelUnavailableError("the program tells of an error")
    models: Mapping[str, Any] = (answer.get("stats") or {}).get("models") or {}
    usages = [(of.get("tokens") or {}) for of in models.values()]
    return Completion(
        text=str(answer["response"]),
        input_tokens=sum(token_count(usage.get("prompt")) or 0 for usage in usages),
        output_tokens=sum(token_count(usage.get("candidates")) or 0 for usage in usages),
        model=next(iter(models), ""),
    )


def _codex_reply(data: bytes) -> Completion:
    text = ""
    usage = Usage()
    for event in _events(data):
        if event.get("type") == "item.completed":
            item = event.get("item") or {}
            if item.get("type") == "agent_message":
                text = str(item["text"])
        elif event.get("type") == "turn.completed":
            usage = reported_usage(event) or Usage()
        elif event.get("type") == "turn.failed":
            raise ModelUnavailableError("the program tells of an error")
    return Completion(
        text=text,
        input_tokens=usage.input or 0,
        output_tokens=usage.output or 0,
    )


def _events(data: bytes) -> Iterator[dict[str, Any]]:
    for line in data.splitlines():
        with suppress(ValueError):  # warnings are mixed with the events
            event = json.loads(line)
            if isinstance(event, dict):
                yield event


PROGRAMS: dict[str, InstalledProgram] = {
    "claude": InstalledProgram(
        (
            *("claude", "--print", "--model", "{model}", "--output-format", "json"),
            # No tools, no servers of tools: all it can do is answer.
            *("--tools", "", "--strict-mcp-config", "--disable-slash-commands"),
            "--no-session-persistence",
        ),
        _claude_reply,
    ),
    "gemini": InstalledProgram(
        (
            *("gemini", "--model", "{model}", "--output-format", "json"),
            # Without a terminal this mode leaves out every tool that writes or runs something.
            *("--approval-mode", "default", "--extensions", "none", "--skip-trust"),
        ),
        _gemini_reply,
    ),
    "codex": InstalledProgram(
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
        except (OSError, ValueError) as error:  # of an argument with a zero character in it
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
        # The prompt is in an anonymous file, not in a pipe: a program that does not read it blocks
        # nobody, and neither do its children.
        with (
            temporary_folder() as folder,
            tempfile.TemporaryFile() as prompt,
        ):
            prompt.write(text)
            prompt.seek(0)
            transport, output = await asyncio.get_running_loop().subprocess_exec(
                _Output,
                program,
                *self._command[1:],
                stdin=prompt,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=folder,
                env=environment_for_programs(),
                start_new_session=True,
            )
            try:
                try:
                    async with asyncio.timeout(self._timeout):
                        await output.told.wait()
                finally:
                    _end(transport.get_pid())
                with suppress(TimeoutError):
                    await asyncio.wait_for(output.closed.wait(), _LINGER_SECONDS)
            finally:
                transport.close()
                await output.gone.wait()
        if output.is_too_long:
            raise ModelAnswerError(
                f"the program printed more than {_MOST_BYTES:,} bytes", where=self.name
            )
        return transport.get_returncode() or 0, bytes(output.printed)


class _Output(asyncio.SubprocessProtocol):
    """The output of a program, and its end.

    They are independent: a child in another session may hold the output open for ever, and
    `Process.wait` of asyncio waits for that.
    """

    def __init__(self) -> None:
        self.printed = bytearray()
        self.told = asyncio.Event()
        """Set when it has ended, or printed too much."""
        self.closed = asyncio.Event()
        """Nobody can print anything more."""
        self.gone = asyncio.Event()

    @property
    def is_too_long(self) -> bool:
        return len(self.printed) > _MOST_BYTES

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        del fd
        if not self.is_too_long:
            self.printed += data
        if self.is_too_long:
            self.told.set()
            self.closed.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        del exc
        if fd == 1:
            self.closed.set()

    def process_exited(self) -> None:
        self.told.set()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.gone.set()


def _end(pid: int) -> None:
    """Kill the program and all its children: a remaining one would continue to call and pay."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGTERM)  # which ends a program at once on Windows
