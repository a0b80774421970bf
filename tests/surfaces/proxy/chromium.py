"""A real headless Chromium, driven over its DevTools protocol.

All complaints of a page are recorded: console messages, exceptions, refusals by the content
security policy, dialogs. Waits are for events of the browser, never for time to pass.
"""

from __future__ import annotations

import asyncio
import base64
import shutil
import subprocess
import tempfile
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import aiohttp

BUILD = Path(__file__).parents[3] / "build" / "browser"
"""Folder in which `make browser` installs its npm packages."""
AXE = BUILD / "node_modules" / "axe-core" / "axe.min.js"
AXE_MISSING = "needs axe-core: make browser"
NAME = (
    shutil.which("chromium")
    or shutil.which("chromium-browser")
    or shutil.which("chromium", path=str(BUILD))
    or ""
)
MISSING = "needs chromium: make browser, or have it on the path (Debian: apt install chromium)"
_FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--disable-dev-shm-usage --hide-scrollbars --remote-debugging-port=0 about:blank"
).split()
_PATIENCE = 30
_COMPLAINTS = (
    "Runtime.consoleAPICalled",
    "Runtime.exceptionThrown",
    "Log.entryAdded",
    "Page.javascriptDialogOpening",
)
_T = TypeVar("_T")


class Tab:
    """One tab of the browser."""

    def __init__(self, loop: asyncio.AbstractEventLoop, socket: Any) -> None:
        self._loop = loop
        self._socket = socket
        self._number = 0
        self._events: list[dict[str, Any]] = []

    @property
    def complaints(self) -> list[dict[str, Any]]:
        """Return the pages' console messages and refusals."""
        self.evaluate("1")  # earlier reports arrive before this result
        return [event for event in self._events if event["method"] in _COMPLAINTS]

    def open(self, url: str) -> None:
        """Go to a page, and wait until it is there whole."""
        self._events.clear()
        self.do("Page.navigate", url=url)
        self._run(self._until("Page.loadEventFired"))

    def evaluate(self, code: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.do("Runtime.evaluate", expression=code, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def settle(self, code: str) -> Any:
        """Return the result of a promise in the page."""
        answer = self.do("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until an expression is true; it is looked at whenever the page changes."""
        self.settle(f"""new Promise(done => {{
          const look = () => ({condition}) && (watch.disconnect(), done(true));
          const watch = new MutationObserver(look);
          watch.observe(document, {{subtree: true, childList: true, attributes: true}});
          look();
        }})""")

    def click(self, element: str) -> None:
        """Click where an element is to be seen, and wait for the page it leads to, if any."""
        x, y, leads = self.evaluate(f"""(() => {{
          const it = {element};
          if (!it) throw new Error("nothing to click");
          it.scrollIntoView({{block: "center"}});
          const box = it.getClientRects()[0];
          const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
          const top = document.elementFromPoint(x, y);
          if (!it.contains(top)) throw new Error("it is covered");
          const link = it.closest("a");
          const away = link && !link.hasAttribute("download") && !link.hash && !link.closest("svg");
          return [x, y, Boolean(away || it.closest("button"))];
        }})()""")
        self._events.clear()
        for kind in ("mousePressed", "mouseReleased"):
            self.do("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        if leads:
            self._run(self._until("Page.loadEventFired"))

    def type(self, text: str) -> None:
        """Type into the focused element."""
        self.do("Input.insertText", text=text)

    def press(self, key: str, code: int, *, said: str = "") -> None:
        """Press a key and let it go."""
        how = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.do("Input.dispatchKeyEvent", type="keyDown", text=said, **how)
        self.do("Input.dispatchKeyEvent", type="keyUp", **how)

    def follow(self, code: str) -> None:
        """Do something in the page that leads to another page, and wait for that."""
        self._events.clear()
        self.evaluate(code)
        self._run(self._until("Page.loadEventFired"))

    def size(self, width: int, height: int, *, dark: bool = False) -> None:
        """Make the window so large, and the reader's wish for dark or light known."""
        self.do("Emulation.setDeviceMetricsOverride", width=width, height=height,
                deviceScaleFactor=1, mobile=width < 600)  # fmt: skip
        wish = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.do("Emulation.setEmulatedMedia", features=[wish])

    def picture(self) -> bytes:
        """Return a screenshot, as PNG."""
        return base64.b64decode(self.do("Page.captureScreenshot", format="png")["data"])

    def do(self, method: str, **parameters: Any) -> Any:
        """Give a command, and wait for its answer."""
        return self._run(self._do(method, parameters))

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return self._loop.run_until_complete(asyncio.wait_for(work, _PATIENCE))

    async def _do(self, method: str, parameters: dict[str, Any]) -> Any:
        self._number += 1
        number = self._number
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        while True:
            said = await self._socket.receive_json()
            if said.get("id") == number:
                assert "error" not in said, said
                return said["result"]
            await self._take(said)

    async def _until(self, method: str) -> None:
        while not any(event["method"] == method for event in self._events):
            await self._take(await self._socket.receive_json())

    async def _take(self, said: dict[str, Any]) -> None:
        if "method" not in said:
            return
        self._events.append(said)
        if said["method"] == "Page.javascriptDialogOpening":  # it would hold the page up
            self._number += 1
            command = {"id": self._number, "method": "Page.handleJavaScriptDialog"}
            await self._socket.send_json({**command, "params": {"accept": True}})


@contextmanager
def browser() -> Iterator[Tab]:
    """Run Chromium with a new profile, and give its tab."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [NAME, f"--user-data-dir={profile}", *_FLAGS],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        loop = asyncio.new_event_loop()
        try:
            address = loop.run_until_complete(_address(Path(profile), process))
            with _connected(loop, address) as socket:
                tab = Tab(loop, socket)
                for domain in ("Page", "Runtime", "Log"):
                    tab.do(f"{domain}.enable")
                yield tab
        finally:
            loop.close()
            process.terminate()
            process.wait(timeout=_PATIENCE)


async def _address(profile: Path, process: subprocess.Popen[bytes]) -> str:
    """Where the browser can be reached: it writes a file as soon as it listens."""
    told = profile / "DevToolsActivePort"
    async with asyncio.timeout(_PATIENCE):
        while not (told.exists() and told.read_text().count("\n")):
            assert process.poll() is None, "chromium has ended"
            await asyncio.sleep(0.02)
    return f"http://127.0.0.1:{told.read_text().split()[0]}"


@contextmanager
def _connected(loop: asyncio.AbstractEventLoop, address: str) -> Iterator[Any]:
    async def connect() -> tuple[aiohttp.ClientSession, Any]:
        session = aiohttp.ClientSession()
        async with session.get(f"{address}/json/list") as answer:
            pages = [one for one in await answer.json() if one["type"] == "page"]
        return session, await session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0)

    session, socket = loop.run_until_complete(asyncio.wait_for(connect(), _PATIENCE))
    try:
        yield socket
    finally:
        loop.run_until_complete(socket.close())
        loop.run_until_complete(session.close())
