"""A browser, and pages in it that must not complain about anything."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from .chromium import Chromium, chromium
from .scene import Scene, play

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page, Request

Expect = Any

# What the policy of the page forbids is told to the page, which keeps it for the test.
_WATCH = """
globalThis.violations = [];
document.addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective));
"""


@dataclass
class Tab:
    """A page in the browser, and what it did: `complaints` of its console and scripts, `requests` it sent."""

    page: Page
    browser: Chromium
    complaints: list[str] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    @contextmanager
    def complaining(self, about: str) -> Iterator[None]:
        """For what must be complained of, and is: browsers note every answer that is an error."""
        with self.page.expect_console_message(lambda said: about in said.text):
            yield
        self.complaints[:] = [one for one in self.complaints if about not in one]

    def drop(self, path: Path) -> None:
        """Drop a file onto the page's zone, as a hand with a mouse does."""
        zone = self.page.locator("#check-drop")
        zone.scroll_into_view_if_needed()
        box = zone.bounding_box()
        assert box is not None
        place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
        session = self.page.context.new_cdp_session(self.page)
        for kind in ("dragEnter", "dragOver", "drop"):
            session.send("Input.dispatchDragEvent", {"type": kind, **place, "data": data})
        session.detach()


@pytest.fixture
def expect() -> Expect:
    """Playwright's assertions, which wait for a page to become as it should be."""
    from playwright.sync_api import expect as assertions

    assertions.set_options(timeout=60_000)
    return assertions


@pytest.fixture(scope="session")
def browser() -> Iterator[Chromium]:
    with chromium() as running:
        yield running


@pytest.fixture
def tab(browser: Chromium) -> Iterator[Tab]:
    """An empty page. At the end, nothing may have been complained of, and every request must have been a
    plain look at the same server: no file was sent anywhere."""
    page = browser.context.new_page()
    page.add_init_script(_WATCH)
    page.set_default_timeout(60_000)
    made = Tab(page, browser)
    page.on("console", lambda said: made.complaints.append(f"{said.type}: {said.text}"))
    page.on("pageerror", lambda error: made.complaints.append(str(error)))
    page.on("request", lambda request: made.requests.append(request))  # noqa: PLW0108 - it marks the function
    yield made
    violations, origin = page.evaluate("[globalThis.violations, location.origin]")
    page.close()
    assert violations == []
    assert made.complaints == []
    assert made.requests
    for request in made.requests:
        assert request.url.startswith(f"{origin}/")
        assert request.method == "GET"
        assert request.post_data is None


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """For tests that only look."""
    with play(tmp_path_factory.mktemp("scene")) as made:
        yield made


@pytest.fixture
def own_scene(tmp_path: Path) -> Iterator[Scene]:
    """For tests in which somebody anchors."""
    with play(tmp_path) as made:
        yield made
