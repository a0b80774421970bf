"""Exceptions injected into any function of the package, by replacing its code object.

Every holder of a reference to the function (an imported name, a bound method, a partial, a cache)
calls the replacement, so no module has to be patched. Other functions run at full speed.
"""

from __future__ import annotations

import errno
import gc
import inspect
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, Literal, NamedTuple

import apsw

import holdfast

PACKAGE = str(Path(holdfast.__file__).parent) + "/"
CONTENT = "the-clients-words"
"""Text of each injected exception: it must appear nowhere."""

Mode = Literal["first", "later", "always", "after"]
"""When a function raises: at its first call, at a later one, at each, or after its first call has
done its work."""
MODES: tuple[Mode, ...] = ("first", "later", "always", "after")


class _OddError(Exception):
    """An exception whose text is content, for any arguments."""

    def __str__(self) -> str:
        return CONTENT


EXCEPTIONS: tuple[Callable[[], Exception], ...] = (
    lambda: KeyError(CONTENT),
    lambda: ZeroDivisionError(CONTENT),
    lambda: RecursionError(CONTENT),
    lambda: MemoryError(CONTENT),
    lambda: OSError(errno.EIO, os.strerror(errno.EIO)),
    lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    lambda: TimeoutError(CONTENT),
    lambda: apsw.BusyError(CONTENT),
    lambda: apsw.FullError(CONTENT),
    lambda: apsw.CorruptError(CONTENT),
    _OddError,
)


class Step(NamedTuple):
    """A function of the package that a request calls."""

    file: str
    """Within the package."""
    name: str
    line: int
    calls: int
    """How often one request calls it."""
    function: Any
    """The function object. `Any`: a checker would take such a field for a method."""

    def __str__(self) -> str:
        return f"{self.file}:{self.name}"


# --- which functions a request calls -------------------------------------------------------------


class Recorder:
    """Counts the calls of the package's functions, in every thread, while `records` is set."""

    def __init__(self) -> None:
        self.records = False
        self._calls: dict[CodeType, int] = {}

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Watch this thread and every thread that starts inside."""
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        if not self.records or event != "call":
            return
        code = frame.f_code
        if code.co_filename.startswith(PACKAGE):
            self._calls[code] = self._calls.get(code, 0) + 1

    def take(self) -> list[Step]:
        """Return the functions called so far in order, and forget them."""
        gc.unfreeze()  # conftest.py has frozen all that was imported, and hidden it from this list
        functions = {
            each.__code__: each for each in gc.get_objects() if isinstance(each, FunctionType)
        }
        gc.freeze()
        calls, self._calls = self._calls, {}
        missing = [code for code in calls if code not in functions and _is_named(code)]
        assert len(missing) < len(calls) / 20, f"functions that are not found: {missing[:20]}"
        return [
            Step(
                code.co_filename.removeprefix(PACKAGE),
                code.co_qualname,
                code.co_firstlineno,
                count,
                functions[code],
            )
            for code, count in calls.items()
            if code in functions and _is_named(code)
        ]


def _is_named(code: CodeType) -> bool:
    """Return whether code is that of a function which exists once: no nested one, no class body."""
    return "<locals>" not in code.co_qualname and not code.co_name.startswith("<")


# --- the fault -----------------------------------------------------------------------------------

_SOURCES = {
    "plain": """
        def stub(*args, **kwargs):
            return "call"(args, kwargs)
    """,
    "generator": """
        def stub(*args, **kwargs):
            return (yield from "call"(args, kwargs))
    """,
    "coroutine": """
        async def stub(*args, **kwargs):
            return await "call"(args, kwargs)
    """,
    "async generator": """
        async def stub(*args, **kwargs):
            inner = "call"(args, kwargs)
            try:
                async for each in inner:
                    yield each
            finally:
                await inner.aclose()
    """,
}


class Fault:
    """One function that raises; how often it did is in `raised`."""

    def __init__(self, step: Step, mode: Mode, make: Callable[[], Exception]) -> None:
        self.step = step
        self.mode = mode
        self.raised = 0
        self._make = make
        self._calls = 0
        self._code = step.function.__code__
        self.has_begun: Callable[[], bool] = lambda: False
        """Says whether the client has a part of its answer."""
        self.is_late = False
        """Whether it had one when the function raised first."""
        self.is_late_too = False
        """Whether it had one at any time that the function raised: no header can report that."""
        self._original = FunctionType(
            self._code,
            step.function.__globals__,
            step.function.__name__,
            step.function.__defaults__,
            step.function.__closure__,
        )
        self._original.__kwdefaults__ = step.function.__kwdefaults__

    @contextmanager
    def injected(self) -> Iterator[None]:
        """Have the function raise inside."""
        self.step.function.__code__ = _stub(self._code, self._call)
        try:
            yield
        finally:
            self.step.function.__code__ = self._code

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._calls += 1
        match self.mode:
            case "first" if self._calls > 1:
                return self._original(*args, **kwargs)
            case "later" if self._calls != min(self.step.calls, 3):
                return self._original(*args, **kwargs)
            case "after" if self._calls > 1:
                return self._original(*args, **kwargs)
            case "after":
                return self._after(args, kwargs)
        raise self._raise()

    def _raise(self) -> Exception:
        begun = self.has_begun()
        self.is_late = self.is_late if self.raised else begun
        self.is_late_too |= begun
        self.raised += 1
        return self._make()

    def _after(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Let the function do its work, and raise then."""
        result = self._original(*args, **kwargs)
        if inspect.iscoroutinefunction(self._original):
            return self._awaited(result)
        if inspect.isasyncgenfunction(self._original):
            return self._iterated(result)
        if inspect.isgeneratorfunction(self._original):
            return self._exhausted(result)
        raise self._raise()

    async def _awaited(self, result: Any) -> Any:
        await result
        raise self._raise()

    async def _iterated(self, result: Any) -> Any:
        async for each in result:
            yield each
        raise self._raise()

    def _exhausted(self, result: Any) -> Any:
        yield from result
        raise self._raise()


def _stub(code: CodeType, call: Callable[..., Any]) -> CodeType:
    """Return code that calls `call`, in the place of some code: of its kind, with its name."""
    free = "; ".join(code.co_freevars) or "None"
    source = inspect.cleandoc(_SOURCES[_kind(code)]).replace("\n", "\n    ")
    head, _, body = source.partition(":\n")
    names = ", ".join(code.co_freevars)
    whole = f"def outer({names}):\n    {head}:\n        {free}\n{body}\n    return stub\n"
    scope: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # a text is called: it is replaced below
        exec(compile(whole, code.co_filename, "exec"), scope)
    stub: CodeType = scope["outer"](*code.co_freevars).__code__
    consts = tuple(call if const == "call" else const for const in stub.co_consts)
    return stub.replace(
        co_consts=consts,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
        co_name=code.co_name,
        co_qualname=code.co_qualname,
    )


def _kind(code: CodeType) -> str:
    if code.co_flags & inspect.CO_ASYNC_GENERATOR:
        return "async generator"
    if code.co_flags & inspect.CO_COROUTINE:
        return "coroutine"
    return "generator" if code.co_flags & inspect.CO_GENERATOR else "plain"
