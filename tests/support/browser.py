"""A headless Chromium that opens built sites over loopback, and reports which sections of an index it shows."""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.programs import script

HEADLESS = shutil.which("chromium-headless-shell", path="/usr/lib/chromium")
"""Chromium without its windows and menus, from Debian: the same pages in half the processor time."""
BROWSER = HEADLESS or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    *("--in-process-gpu", "--no-zygote", "--renderer-process-limit=1"),  # two processes fewer: a tenth of the time
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup",  # pages of the address bar, each with a process
    "--disable-dev-shm-usage",
    "--force-prefers-reduced-motion",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
LOOK = """
const [anchors, HEADING] = [arguments[0], 'h1, h2, h3, h4, h5, h6'];
const there = [...document.querySelectorAll('[id]')].filter(element => anchors.includes(element.id));
const found = there.map(element => {
  location.hash = '';
  location.hash = '#' + encodeURIComponent(element.id);
  const top = element.getBoundingClientRect().top;
  const heading = (element.closest(HEADING) || element).cloneNode(true);
  heading.querySelectorAll('.headerlink').forEach(link => link.remove());
  const shown = element.getClientRects().length > 0 && top > -1 && top < innerHeight;
  return {id: element.id, text: heading.textContent, shown};
});
return {found, asked: performance.getEntriesByType('resource').map(entry => entry.name)};
"""


@dataclass(frozen=True, slots=True)
class Look:
    """A view of a page: the requested anchors that it has, in its order, and the addresses that it requested.

    Of each anchor ``id``, the ``text`` of its heading, and whether it is ``shown`` in the window after going there.
    """

    found: list[dict[str, Any]]
    asked: list[str]


def started(profile: Path, options: Any = None) -> Any:
    """The driver of a new Chromium with the folder of its profile. ``options``: those of Selenium for Chrome."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = options or webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    if HEADLESS:  # the driver waits for a first page, which this browser opens only when told to
        options.binary_location = str(profile.with_name(f"{profile.name}.sh"))
        script(Path(options.binary_location), f'exec {HEADLESS} "$@" data:,')
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=Service(DRIVER))


class Browser:
    """A Chromium with a profile of its own."""

    def __init__(self, profile: Path) -> None:
        self._driver = started(profile)
        self._driver.set_window_size(1200, 800)
        # A theme's own search reads the whole site for each page; no test looks at it.
        self._driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/search_index.json"]})
        self._driver.execute_cdp_cmd("Network.enable", {})

    def look(self, url: str, anchors: list[str]) -> Look:
        """Open a page and go to each of the anchors that are there."""
        self._open(url)
        return Look(**self._driver.execute_script(LOOK, anchors))

    def arrive(self, url: str) -> float:
        """Open a page at an anchor; how far its element is from the top of the window, in pixels."""
        self._open(url)
        top = "return document.getElementById(decodeURIComponent(location.hash.slice(1))).getBoundingClientRect().top"
        return float(self._driver.execute_script(top))

    def _open(self, url: str) -> None:
        """The driver comes back early now and then, from a page that has been going to its anchors."""
        from selenium.webdriver.support.wait import WebDriverWait

        self._driver.get(url)
        there = "return document.readyState === 'complete' && location.href === arguments[0]"
        WebDriverWait(self._driver, 20, 0.02).until(lambda driver: driver.execute_script(there, url))

    def close(self) -> None:
        """End the browser and its driver."""
        self._driver.quit()


@dataclass(frozen=True, slots=True)
class Host:
    """How a host of static files answers: whether it knows ranges, its headers, and after how long."""

    ranges: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    latency_s: float = 0.0


class _Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the body of an answer waits 40 ms for the client's acknowledgement

    def __init__(self, *given: Any, host: Host, **named: Any) -> None:
        self._host = host
        super().__init__(*given, **named)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the tests report errors."""

    def end_headers(self) -> None:
        for name, value in self._host.headers:
            self.send_header(name, value)
        super().end_headers()

    def do_GET(self) -> None:
        time.sleep(self._host.latency_s)
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        file = Path(self.translate_path(self.path))
        if not (self._host.ranges and asked and file.is_file()):
            super().do_GET()
            return
        start, size = int(asked[1]), file.stat().st_size
        with file.open("rb") as opened:
            opened.seek(start)
            part = opened.read(int(asked[2]) + 1 - start)
        self.send_response(206 if part else 416)
        self.send_header(
            "Content-Range", f"bytes {start}-{start + len(part) - 1}/{size}" if part else f"bytes */{size}"
        )
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)


@contextmanager
def hosted(folder: Path, host: Host = Host()) -> Iterator[str]:
    """Serve a folder on loopback; its address, with a slash at the end."""
    handler = functools.partial(_Quiet, directory=str(folder), host=host)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
