"""cli: the `holdfast` command, with a file per command and per group of commands.

Exit codes: 0 success, 1 the request or the settings have faults, 2 the command failed,
3 a bug in Holdfast, 130 interrupted. No traceback and no Python warning is ever printed, and no
error message contains text of a conversation.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import holdfast
from holdfast.errors import HoldfastError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, with the process's own arguments if none are given, and exit."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if list(arguments) == ["--version"]:  # scripts call it often: import nothing
        sys.stdout.write(f"holdfast {holdfast.__version__}\n")
        sys.exit(0)
    from ._output import abandon_stdout, complain, prepare_streams, remark  # noqa: PLC0415 - above
    from ._warnings import plain_warnings  # noqa: PLC0415

    prepare_streams()
    try:
        with plain_warnings(remark):
            code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        abandon_stdout()
        code = 1
    except OSError as error:
        abandon_stdout()
        complain(HoldfastError(f"the output cannot be written: {error.strerror}"))
        code = 2
    sys.exit(code)


def _run(arguments: Sequence[str]) -> int | str | None:
    from typer._completion_classes import completion_init  # noqa: PLC0415 - see main

    from holdfast.extras import extra_with, missing_extra  # noqa: PLC0415

    from ._groups import application  # noqa: PLC0415
    from ._output import complain  # noqa: PLC0415

    completion_init()  # a shell may ask for completions
    try:
        application()(arguments, prog_name="holdfast")
    except SystemExit as end:
        return end.code
    except HoldfastError as error:
        complain(error)
        return 2
    except OSError:
        raise
    except ModuleNotFoundError as error:
        extra = extra_with(error.name)
        complain(missing_extra(extra) if extra else _bug(error))
        return 2 if extra else 3
    except Exception as error:  # noqa: BLE001  # a bug; its text may contain content
        complain(_bug(error))
        return 3
    return 0


def _bug(error: Exception) -> HoldfastError:
    """Return an error with the kind and place of another, whose text may contain content."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return HoldfastError(
        f"internal error: {type(error).__name__}",
        where=f"{Path(place.filename).name}:{place.lineno}",
        fix="This is a bug; please report it with this line.",
    )
