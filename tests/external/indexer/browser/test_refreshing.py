"""An open page follows the index by itself, and rests while nobody sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest
    from playwright.sync_api import Route

    from .conftest import Expect, Tab
    from .scene import Scene

# A tab that can be told to be hidden.
_HIDING = """
globalThis.away = false;
Object.defineProperty(Document.prototype, "hidden", { get: () => globalThis.away });
globalThis.turn = (away) => {
  globalThis.away = away;
  document.dispatchEvent(new Event("visibilitychange"));
};
"""


def test_a_new_anchor_appears_by_itself(tab: Tab, own_scene: Scene, expect: Expect) -> None:
    scene, page = own_scene, tab.page
    page.goto(f"{scene.site.origin}/owners/{scene.alice.address}")
    expect(page.locator("circle.point")).to_have_count(3)
    page.evaluate("globalThis.same = true")
    scene.alice.anchor("one more thing")
    scene.follow()
    expect(page.locator("circle.point")).to_have_count(4)
    expect(page.locator("#latest-title")).to_have_text("Version 4, the latest")
    expect(page.locator("#versions tbody th").first).to_have_text("4")
    expect(page.locator("#as-of")).to_have_text(str(scene.site.ledger))
    expect(page.get_by_role("status").first).to_contain_text("New anchors came in")
    assert page.evaluate("globalThis.same") is True  # not by loading the page anew


def test_the_list_of_owners_follows_and_keeps_the_focus(tab: Tab, own_scene: Scene, expect: Expect) -> None:
    scene, page = own_scene, tab.page
    page.goto(scene.site.origin)
    first = page.locator("#owners tbody a.address").first
    expect(first).to_have_text(scene.bob.address)
    page.get_by_role("link", name=scene.alice.address).focus()
    scene.alice.anchor("one more thing")
    scene.follow()
    expect(first).to_have_text(scene.alice.address)
    expect(first).to_be_focused()


def test_a_page_that_waits_for_the_first_events(
    tab: Tab, own_scene: Scene, expect: Expect, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(own_scene.site.store, "progress", lambda _source: None)
        tab.page.goto(own_scene.site.origin)
        expect(tab.page.locator("h1")).to_have_text("Nothing ingested yet")
    expect(tab.page.locator("h1")).to_have_text("Anchored memories")
    tab.complaints[:] = [one for one in tab.complaints if "503" not in one]


def test_it_asks_now_and_then_and_not_while_hidden(tab: Tab, scene: Scene, expect: Expect) -> None:
    page = tab.page
    page.add_init_script(_HIDING)
    page.clock.install()
    page.goto(scene.site.origin)

    def looks() -> int:
        return sum(request.resource_type == "fetch" for request in tab.requests)

    with page.expect_response(lambda answer: answer.request.resource_type == "fetch") as first:
        page.clock.run_for(5000)
    assert first.value.status == 304
    assert looks() == 1
    expect(page.locator("#lag")).not_to_have_text("")
    page.evaluate("turn(true)")
    page.clock.run_for(3_600_000)
    assert looks() == 1
    with page.expect_response(lambda answer: answer.request.resource_type == "fetch") as again:
        page.evaluate("turn(false)")
    assert again.value.status == 304
    assert looks() == 2


def test_hidden_while_it_asks_it_asks_no_more(tab: Tab, scene: Scene) -> None:
    page = tab.page
    page.add_init_script(_HIDING)
    page.clock.install()
    page.goto(scene.site.origin)
    held: list[Route] = []
    page.route("**/*", lambda route: held.append(route))  # noqa: PLW0108 - it marks the function
    with page.expect_request("**/*"):
        page.clock.run_for(5000)
    page.evaluate("turn(true)")
    with page.expect_response("**/*"):
        held[0].continue_()
    page.clock.run_for(3_600_000)
    assert len(held) == 1


def test_ages_grow_and_failures_are_told(tab: Tab, scene: Scene, expect: Expect) -> None:
    page = tab.page
    page.clock.install()
    page.goto(f"{scene.site.origin}/owners/{scene.alice.address}")
    page.route("**/owners/**", lambda route: route.fulfill(status=503))
    said = page.get_by_role("status").first
    expect(said).to_have_text("")
    for _ in range(2):
        with page.expect_response(lambda answer: answer.status == 503):
            page.clock.fast_forward(60_000)
    expect(said).to_contain_text("The index does not answer")
    page.unroute("**/owners/**")
    with page.expect_response(lambda answer: answer.status == 304):
        page.clock.fast_forward(7_200_000)
    expect(said).to_have_text("")
    expect(page.locator("#freshness [data-since]")).to_have_text("2 h ago")
    tab.complaints[:] = [one for one in tab.complaints if "503" not in one]
