"""The public names are a contract: this list changes on purpose or not at all."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys

import pytest

import holdfast
from holdfast import errors

NAMES = [
    "Agent",
    "Client",
    "Holdfast",
    "HoldfastError",
    "Scope",
    "Settings",
    "cite",
    "convert",
    "count",
    "fit",
    "read",
    "repair",
    "research",
    "validate",
    "write",
]


def test_the_public_names_are_exactly_these() -> None:
    assert holdfast.__all__ == NAMES
    assert all(hasattr(holdfast, name) for name in NAMES)


def test_everything_public_says_what_it_is() -> None:
    for name in NAMES:
        assert inspect.getdoc(getattr(holdfast, name)), name


def test_importing_holdfast_loads_nothing_that_takes_time() -> None:
    code = (
        "import sys, holdfast\n"
        "heavy = {'numpy', 'aiohttp', 'apsw', 'splintr', 'typer', 'rich', 'msgspec'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "import holdfast.cite.content_citation\n"  # the package does not take the function's place
        "assert holdfast.cite('short').text == 'short'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_version_is_told_without_loading_the_command_line() -> None:
    code = (
        "import sys\n"
        "from holdfast.surfaces.cli import main\n"
        "try:\n    main(['--version'])\n"
        "finally:\n    assert not {'typer', 'rich', 'msgspec'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == f"holdfast {holdfast.__version__}\n"


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        holdfast.nothing  # type: ignore[attr-defined] # noqa: B018


def test_every_error_belongs_to_the_one_tree_and_is_drawn_in_it() -> None:
    drawn = errors.__doc__ or ""
    for name, error in inspect.getmembers(errors, inspect.isclass):
        assert issubclass(error, errors.HoldfastError | errors.HoldfastWarning)
        assert name in drawn


def test_errors_can_be_copied_and_pickled() -> None:
    found = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]
    kinds = [kind for kind in found if issubclass(kind, errors.HoldfastError)]
    assert {*found} - {*kinds} == {errors.HoldfastWarning}
    for kind in kinds:
        error = kind("something is off", where="$.a", fix="Mend it.")
        for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
            assert type(again) is kind
            assert str(again) == str(error)
    budget = errors.BudgetExceededError("too much", kind="input", limit=5, planned=9)
    assert pickle.loads(pickle.dumps(budget)).planned == 9


def test_an_error_reads_as_what_where_and_what_to_do() -> None:
    error = errors.WireError("something is off", where="$.a", fix="Mend it.")
    assert str(error) == "something is off (at $.a). Mend it."
    assert str(errors.WireError("something is off")) == "something is off."
