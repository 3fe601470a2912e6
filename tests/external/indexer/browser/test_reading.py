"""The page as a person sees it: the picture, freshness, both colour schemes, narrow screens, no script."""

from __future__ import annotations

import hashlib
import os
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.indexer.api.ground import owner_number

from .scene import made_up_site

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

    from .conftest import Expect, Tab
    from .scene import Scene, Site

OWNER = owner_number(5)
SCREENSHOTS = "EXPLORER_SCREENSHOTS"
"""A variable that names a folder: the pictures are kept there, to be looked at."""

# Text whose contrast with what is behind it is below WCAG's AA: 4.5, or 3 where it is large.
_FAINT = """() => {
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const color = numbers(getComputedStyle(one).backgroundColor);
      if (color[3] !== 0) return color;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !element.checkVisibility() || element.closest("title, desc")) continue;
    const style = getComputedStyle(element);
    const [one, two] = [light(numbers(element.namespaceURI.endsWith("svg") ? style.fill : style.color)),
                        light(behind(element))];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    const large = parseFloat(style.fontSize) >= 24;
    if (ratio < (large ? 3 : 4.5)) faint.push(`${element.tagName} ${element.textContent} ${ratio}`);
  }
  return faint;
}"""


@pytest.fixture(scope="module")
def long_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One owner with 300 versions, of which some are missing."""
    roots = [hashlib.sha256(b"%d" % number).digest() for number in range(300)]
    missing = [*range(1, 20), *range(120, 170), 250]
    with made_up_site(tmp_path_factory.mktemp("long"), OWNER, roots, missing=missing) as site:
        yield site


def keep(page: Page, name: str) -> None:
    folder = os.environ.get(SCREENSHOTS)
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def test_the_timeline_is_drawn(tab: Tab, scene: Scene, expect: Expect) -> None:
    page = tab.page
    page.goto(scene.site.origin)
    page.get_by_role("link", name=scene.alice.address).click()
    expect(page.get_by_role("img", name="Versions over time")).to_be_visible()
    boxes = page.locator("circle.point").evaluate_all(
        "(all) => all.map((one) => one.getBoundingClientRect()).map(({ x, y, width }) => [x, y, width])"
    )
    assert len(boxes) == 3
    assert [y for _, y, _ in boxes] == sorted((y for _, y, _ in boxes), reverse=True)
    assert boxes[0][1] - boxes[2][1] > 100
    assert all(width > 4 for _, _, width in boxes)
    stairs = page.locator("path.stairs")
    assert stairs.evaluate("(path) => path.getTotalLength()") > 100
    assert stairs.evaluate("(path) => getComputedStyle(path).stroke") != "none"
    expect(page.locator("#as-of")).to_have_text(str(scene.site.ledger))
    expect(page.locator("#latest-title")).to_have_text("Version 3, the latest")


def test_hundreds_of_versions_and_their_gaps_are_drawn(tab: Tab, long_site: Site, expect: Expect) -> None:
    page = tab.page
    page.goto(f"{long_site.origin}/owners/{OWNER}")
    expect(page.locator("circle.point")).to_have_count(230)
    holes = page.locator(".picture rect.hole")
    expect(holes).to_have_count(3)
    frame = page.locator("svg.picture").bounding_box()
    assert frame is not None
    for place in range(3):
        box = holes.nth(place).bounding_box()
        assert box is not None
        assert box["width"] >= 5
        assert box["height"] >= 5
        assert box["x"] >= frame["x"] - 1
        assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1
    expect(page.locator("#timeline .gap-note")).to_contain_text("versions 120 to 169")
    page.locator("nav a[rel=next]").click()
    expect(page.locator("#versions tbody th").first).to_have_text("249")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_colour_schemes_can_be_read(
    tab: Tab, scene: Scene, long_site: Site, expect: Expect, scheme: str
) -> None:
    page = tab.page
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    verdicts = {
        "latest": scene.alice.blobs[2],
        "older": scene.alice.blobs[0],
        "none": scene.alice.blobs[0] + b" ",
        "sealed": b"age-encryption.org/v1\n",
    }
    page.goto(scene.site.origin)
    for name, content in verdicts.items():
        tab.drop(tab.browser.file("file.json", content))
        expect(page.locator(f".verdict.{name}")).to_be_visible()
        assert page.evaluate(_FAINT) == []
        keep(page, f"{scheme}-{name}")
    sums = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (sum(sums) < 200) is (scheme == "dark")
    page.goto(f"{scene.site.origin}/owners/{scene.alice.address}")
    assert page.evaluate(_FAINT) == []
    keep(page, f"{scheme}-owner")
    tab.requests.clear()  # of the other server
    page.goto(f"{long_site.origin}/owners/{OWNER}")
    assert page.evaluate(_FAINT) == []
    keep(page, f"{scheme}-gaps")


def test_it_fits_into_320_pixels(tab: Tab, scene: Scene, expect: Expect) -> None:
    page = tab.page
    page.set_viewport_size({"width": 320, "height": 640})
    for name, target in (("first", "/"), ("owner", f"/owners/{scene.alice.address}")):
        page.goto(scene.site.origin + target)
        tab.drop(tab.browser.file("file.json", scene.alice.blobs[2]))
        expect(page.locator(".verdict.latest")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
        keep(page, f"narrow-{name}")
    with tab.complaining("422"):
        page.goto(f"{scene.site.origin}/owners/G")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    sizes = page.locator("body *").evaluate_all(
        "(all) => all.map((one) => parseFloat(getComputedStyle(one).fontSize))"
    )
    assert min(sizes) >= 12


def test_landmarks_headings_and_names(tab: Tab, scene: Scene, expect: Expect) -> None:
    page = tab.page
    for target in ("/", f"/owners/{scene.alice.address}"):
        page.goto(scene.site.origin + target)
        for role in ("banner", "main", "contentinfo", "search"):
            expect(page.get_by_role(role)).to_have_count(1)
        levels = page.locator("h1, h2, h3, h4").evaluate_all(
            "(all) => all.map((one) => Number(one.tagName[1]))"
        )
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))
        unnamed = page.locator("a, button, input:not([type=hidden])").evaluate_all(
            "(all) => all.filter((one) => !(one.textContent.trim() || one.labels?.length)).length"
        )
        assert unnamed == 0
        ids = page.locator("[id]").evaluate_all("(all) => all.map((one) => one.id)")
        assert len(ids) == len(set(ids))
        expect(page.get_by_role("table")).to_have_count(1)


def test_still_for_those_who_want_it_still(tab: Tab, scene: Scene) -> None:
    seen = []
    for motion in ("no-preference", "reduce"):
        tab.page.emulate_media(reduced_motion="reduce" if motion == "reduce" else "no-preference")
        tab.page.goto(scene.site.origin)
        style = "getComputedStyle(document.getElementById('check-drop')).transitionProperty"
        seen.append(tab.page.evaluate(style))
    assert seen[0] != "none"
    assert seen[1] == "none"


def test_reading_needs_no_script(tab: Tab, scene: Scene, expect: Expect) -> None:
    tab.page.goto(scene.site.origin)
    running = tab.browser.context.browser
    assert running is not None
    context = running.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(scene.site.origin)
        expect(page.get_by_text("Checking a file needs JavaScript.")).to_be_visible()
        expect(page.locator("#check-tool")).to_be_hidden()
        page.get_by_role("link", name=scene.bob.address).click()
        expect(page.locator("circle.point")).to_have_count(2)
        expect(page.locator(".standing")).to_have_count(3)
        expect(page.locator(".standing:visible")).to_have_count(1)
        page.get_by_label("Owner", exact=True).fill(scene.alice.address)
        page.get_by_role("button", name="Show").click()
        expect(page.locator("h1")).to_contain_text(scene.alice.address)
    finally:
        context.close()


HOSTILE = [
    b"<script>alert(1)</script>",
    b"javascript:alert(1)",
    b'"><img src=x onerror=alert(1)><svg onload=alert(1)>',
    b"\xff\xfe<b>no text",
    "https://exa\u202emple.example/".encode(),
    b"{{ constructor.constructor('alert(1)')() }}",
]


def test_what_owners_write_is_text(tab: Tab, own_scene: Scene, expect: Expect) -> None:
    scene, page = own_scene, tab.page
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    for uri in HOSTILE:
        scene.bob.anchor_raw(uri, acl=uri)
    scene.follow()
    for target in ("/", f"/owners/{scene.bob.address}"):
        page.goto(scene.site.origin + target)
        elements = page.evaluate(
            "[document.images.length, document.scripts.length, document.querySelectorAll('b').length]"
        )
        assert elements == [0, 2, 0]
    shown = page.locator("#versions .foreign").all_inner_texts()
    assert shown[5] == HOSTILE[0].decode()
    assert shown[3] == HOSTILE[2].decode()
    assert shown[2] == HOSTILE[3].hex()
    assert shown[1] == "https://exa\\u202emple.example/"
    linked = page.locator("#versions td a").evaluate_all("(all) => all.map((one) => [one.href, one.rel])")
    assert len(linked) == 2  # Bob's own two
    assert all(href.startswith("https://blobs.example.org/") for href, _ in linked)
    assert all({"noopener", "noreferrer"} <= set(rel.split()) for _, rel in linked)
    assert dialogs == []
