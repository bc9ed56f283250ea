"""A user of the playground: a headless Chromium that types and presses keys, and records the requested addresses."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tests.support.browser import started

T = TypeVar("T")
PATIENCE = 15.0


class Element:
    """The first element of a selector; searched again when the page replaces it."""

    def __init__(self, visitor: Visitor, selector: str) -> None:
        self._visitor, self._selector = visitor, selector

    def _do(self, action: Callable[[Any], T]) -> T:
        (done,) = self._visitor.until(lambda: [action(each) for each in self._visitor.all(self._selector)[:1]])
        return done

    def click(self) -> None:
        self._do(lambda element: element.click())

    def clear(self) -> None:
        self._do(lambda element: element.clear())

    def send_keys(self, *keys: str) -> None:
        self._do(lambda element: element.send_keys(*keys))

    def is_displayed(self) -> bool:
        return self._do(lambda element: bool(element.is_displayed()))

    def is_selected(self) -> bool:
        return self._do(lambda element: bool(element.is_selected()))

    def get_attribute(self, name: str) -> str:
        return self._do(lambda element: str(element.get_attribute(name)))


class Visitor:
    """A Chromium with a profile of its own."""

    def __init__(self, profile: Path) -> None:
        from selenium import webdriver

        options = webdriver.ChromeOptions()
        options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
        options.add_experimental_option("perfLoggingPrefs", {"enableNetwork": True, "enablePage": False})
        self.driver = started(profile, options)
        self.screen()
        self.driver.get("about:blank")
        self.requests(), self.complaints()  # those of the browser's own first page

    def screen(self, width: int = 1280, height: int = 860, dark: bool = False, scale: float = 1) -> None:
        """The size of the window in CSS pixels, and what the system prefers."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        preferred = {"prefers-color-scheme": "dark" if dark else "light", "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in preferred.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def go(self, url: str) -> None:
        """Open an address as a new visit."""
        if self.driver.current_url.partition("#")[0] == url.partition("#")[0]:  # opening it would only go to its anchor
            self.run("history.replaceState(null, '', arguments[0])", url)
            self.driver.refresh()
        else:
            self.driver.get(url)

    def run(self, script: str, *arguments: Any) -> Any:
        """The result of a script."""
        return self.driver.execute_script(script, *arguments)

    def until(self, look: Callable[[], T], seconds: float = PATIENCE) -> T:
        """The first true result of ``look``."""
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.wait import WebDriverWait

        waiting = WebDriverWait(self.driver, seconds, 0.1, [StaleElementReferenceException])
        return waiting.until(lambda _: look())

    def all(self, selector: str) -> list[Any]:
        """The elements that are there now."""
        return list(self.driver.find_elements("css selector", selector))

    def see(self, selector: str) -> Element:
        """The first element, waited for."""
        self.until(lambda: self.all(selector))
        return Element(self, selector)

    def text(self, selector: str) -> str:
        """The text of the first element, waited for."""
        return str(self.until(lambda: next((each.text for each in self.all(selector)), "")))

    def texts(self, selector: str) -> list[str]:
        """The texts of the elements that are there now, as they are written rather than as they are styled."""
        script = "return [...document.querySelectorAll(arguments[0])].map(each => each.textContent)"
        return list(self.run(script, selector))

    def attributes(self, selector: str, name: str) -> list[str]:
        """An attribute of the elements that are there now."""
        script = "return [...document.querySelectorAll(arguments[0])].map(each => each.getAttribute(arguments[1]))"
        return list(self.run(script, selector, name))

    def press(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def ask(self, question: str) -> None:
        """Type a question, and wait for the answer to it."""
        field = self.see("#q")
        field.clear()
        field.send_keys(question)
        asked = "return new URLSearchParams(location.hash.slice(1)).get('q')"
        self.until(lambda: self.run(asked) == question and not self.all("[aria-busy]"))

    def hash(self) -> str:
        """The fragment of the address."""
        return str(self.run("return location.hash"))

    def focused(self) -> str:
        """The text, or the id, of the element with the focus."""
        return str(self.run("return document.activeElement.id || document.activeElement.textContent"))

    def overflow(self) -> float:
        """How many pixels the page is wider than its window."""
        return float(self.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def _log(self, kind: str) -> list[dict[str, Any]]:
        """The entries of one of the browser's logs since the last call."""
        entries: list[dict[str, Any]] = self.driver.execute("getLog", {"type": kind})["value"]
        return entries

    def requests(self) -> list[str]:
        """The addresses requested by the page since the last call, also those that failed."""
        events = [json.loads(entry["message"])["message"] for entry in self._log("performance")]
        asked = [each["params"] for each in events if each["method"] == "Network.requestWillBeSent"]
        return [each["request"]["url"] for each in asked if each["request"]["url"] != "about:blank"]

    def complaints(self) -> list[str]:
        """The console's messages since the last call: errors, warnings, violations of the policy."""
        return [entry["message"] for entry in self._log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def picture(self, file: Path, quality: int = 82) -> None:
        """The window as it looks, as WebP or PNG."""
        kind = file.suffix.removeprefix(".")
        how = {"format": kind, **({"quality": quality} if kind == "webp" else {})}
        file.write_bytes(base64.b64decode(self.driver.execute_cdp_cmd("Page.captureScreenshot", how)["data"]))

    def close(self) -> None:
        """End the browser and its driver."""
        self.driver.quit()
