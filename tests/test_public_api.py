"""The public names are a contract: this list changes on purpose or not at all."""

from __future__ import annotations

import copy
import inspect
import pickle

import holdfast
from holdfast import errors

NAMES = [
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
    "validate",
    "write",
]


def test_the_public_names_are_exactly_these() -> None:
    assert holdfast.__all__ == NAMES
    assert all(hasattr(holdfast, name) for name in NAMES)


def test_everything_public_says_what_it_is() -> None:
    for name in NAMES:
        assert inspect.getdoc(getattr(holdfast, name)), name


def test_every_error_belongs_to_the_one_tree_and_is_drawn_in_it() -> None:
    drawn = errors.__doc__ or ""
    for name, error in inspect.getmembers(errors, inspect.isclass):
        assert issubclass(error, errors.HoldfastError)
        assert name in drawn


def test_errors_can_be_copied_and_pickled() -> None:
    found = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]
    kinds = [kind for kind in found if issubclass(kind, errors.HoldfastError)]
    assert len(kinds) == len(found)
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
