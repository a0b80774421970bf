"""Compare the cost of recorded sessions with Holdfast and without: `python -m benchmarks worse`.

Reads the recorded trajectories and agent sessions, replays each through the engine as the proxy
runs it, and prices every request with the provider's prompt cache. Modules, each using those before
it: sessions, prompt_cache, sight, replay, report.
"""

from benchmarks.worse.report import run

__all__ = ["run"]
