"""`python -m holdfast` is the `holdfast` command."""

from holdfast.surfaces.cli import main

main()
