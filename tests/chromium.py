"""Headless Chromium, for pages that are files: what it made of them, what it complained of, what it looks like."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.needed import needed

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_TIMEOUT_S = 50
# Of the page's own time, which goes by as fast as it has nothing to do.
_WAIT_MS = 8000
_CONSOLE = re.compile(r"CONSOLE.*?\] (.*)")


@dataclass(frozen=True, slots=True)
class Opened:
    """The page as elements after its scripts have run, and what came on the console."""

    elements: str
    console: list[str]


class Chromium:
    """A browser with a profile of its own in ``home``. It reaches no network, only the host ``reached``, if there is one."""

    def __init__(self, home: Path, reached: str = "") -> None:
        self._command = [
            needed(*_NAMES),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--hide-scrollbars",
            "--enable-logging=stderr",
            f"--host-resolver-rules=MAP * ~NOTFOUND{f', EXCLUDE {reached}' if reached else ''}",
            f"--virtual-time-budget={_WAIT_MS}",
            f"--user-data-dir={home}",
        ]

    def open(self, page: Path, *, query: str = "", width: int = 1200, dark: bool = False) -> Opened:
        """Open a page, in a window so wide (px)."""
        done = self._run(page, ["--dump-dom"], width, 1000, query=query, dark=dark)
        return Opened(done.stdout, _CONSOLE.findall(done.stderr))

    def screenshot(self, page: Path, out: Path, *, width: int = 1200, height: int = 1000, dark: bool = False) -> None:
        """Have a PNG of it."""
        self._run(page, [f"--screenshot={out}"], width, height, dark=dark)

    def _run(
        self, page: Path, what: list[str], width: int, height: int, *, query: str = "", dark: bool = False
    ) -> subprocess.CompletedProcess[str]:
        look = ["--blink-settings=preferredColorScheme=0"] if dark else []
        command = [*self._command, f"--window-size={width},{height}", *look, *what, f"{page.absolute().as_uri()}?{query}"]
        return subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True)
