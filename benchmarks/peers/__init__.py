"""What is left of a tool result, and of the answer in it: Holdfast beside its peers.

`python -m benchmarks.peers` sets up an environment for each peer in `.venv-peers/` (needs PyPI
once), asks the same questions of all, and prints one table. Nothing here is part of the package
or of its development environment.
"""
