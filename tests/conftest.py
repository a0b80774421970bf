from __future__ import annotations

import os

from hypothesis import settings

# A shared machine is slow at times; a slow example is no failure.
settings.register_profile("default", deadline=None)
# A merge is judged by the same examples every time; people, and `make fuzz`, look for new ones.
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
