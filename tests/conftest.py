from __future__ import annotations

from hypothesis import settings

# A shared machine is slow at times; a slow example is no failure.
settings.register_profile("default", deadline=None)
settings.load_profile("default")
