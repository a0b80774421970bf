"""Base class for settings: loading, tracing the origin of values, and the sample file.

`Settings` is Holdfast's subclass; tests define others.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import ClassVar, Self

import msgspec

from holdfast import _toml
from holdfast.errors import SettingsError
from holdfast.settings.keys import Key, TracedValue, keys_of
from holdfast.settings.sources import FILE_NAME, gather, join_problems, unknown_variables


class Definitions(msgspec.Struct, frozen=True, kw_only=True):
    """The base class of tables of settings; `Settings` is the table of Holdfast."""

    removed: ClassVar[Mapping[str, str]] = {}
    """Advice for each former setting, by its name."""

    @classmethod
    def defined(cls) -> tuple[Key, ...]:
        """Return all settings in the order they are defined."""
        return tuple(keys_of(cls))

    @classmethod
    def load(
        cls,
        *,
        cwd: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str] | None = None,
        **arguments: object,
    ) -> Self:
        """Return the settings in force, or raise a `SettingsError` that names every problem."""
        traced = cls.trace(cwd=cwd, environ=environ, **arguments)
        return cls(**{key.name: value for key, value, _ in traced})

    @classmethod
    def trace(
        cls,
        *,
        cwd: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str] | None = None,
        **arguments: object,
    ) -> list[TracedValue]:
        """Return each setting in force with its origin, or raise as `load` does."""
        environ = os.environ if environ is None else environ
        traced, problems = gather(cls.defined(), cwd, environ, arguments, cls.removed)
        if problems:
            raise join_problems(problems)
        return traced

    @classmethod
    def check(
        cls,
        *,
        cwd: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> list[SettingsError]:
        """Return everything that is wrong, unknown `HOLDFAST_*` variables included."""
        environ = os.environ if environ is None else environ
        _, problems = gather(cls.defined(), cwd, environ, {}, cls.removed)
        return [*problems, *unknown_variables(cls.defined(), environ, cls.removed)]

    @classmethod
    def sample(cls) -> str:
        """Return a settings file with every default commented out."""
        head = (
            f"# {FILE_NAME}: every setting with its default.\n"
            "# Remove the # before a key to change it. The environment variable named\n"
            "# beside it sets the same, and wins over this file.\n"
        )
        return head + "".join(
            f"\n# {key.help}\n# {key.expects.capitalize()}. Environment: {key.variable}\n"
            f"#{key.name} = {_toml.literal(msgspec.to_builtins(key.default))}\n"
            for key in cls.defined()
        )

    def __repr__(self) -> str:
        fields = (f"{key.name}={key.shown(getattr(self, key.name))!r}" for key in self.defined())
        return f"{type(self).__name__}({', '.join(fields)})"
