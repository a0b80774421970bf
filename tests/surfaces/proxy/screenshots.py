"""Take the pictures in docs/images from the demo: python -m tests.surfaces.proxy.screenshots."""

from __future__ import annotations

from pathlib import Path

from tests.surfaces.proxy.chromium import browser
from tests.surfaces.proxy.demo import busy_proxy

IMAGES = Path(__file__).parents[3] / "docs" / "images"
PICTURES = {
    "dashboard.png": ("/", "body", 1100, 1040),
    "inspector.png": ("/sessions/nightly-build/turns/2", ".pager", 1100, 640),
    "compare.png": ("/sessions/nightly-build/compare?a=never&b=always", "h1", 1100, 620),
}
"""By file: the page, the element at the top of the picture, its width and height."""


def main() -> None:
    """Write every picture."""
    with busy_proxy() as running, browser() as tab:
        for name, (path, top, width, height) in PICTURES.items():
            tab.size(width, height)
            tab.open(running.url + path)
            tab.evaluate(f"document.querySelector('{top}').scrollIntoView()")
            (IMAGES / name).write_bytes(tab.picture())


if __name__ == "__main__":
    main()
