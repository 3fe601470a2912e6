"""A file is dropped onto the page, or chosen, and the page says what it is."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.canonical import encode
from mycelium_sdk.records import Record
from tests.indexer.api.ground import owner_number

from .chromium import PLAIN_HOST
from .scene import made_up_site

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page

    from .conftest import Expect, Tab
    from .scene import Scene

OWNER = owner_number(5)
AGE = (
    b"age-encryption.org/v1\n-> X25519 "
    + b"A" * 43
    + b"\n"
    + b"B" * 43
    + b"\n--- "
    + b"C" * 43
    + b"\n"
    + bytes(99)
)


def verdict(page: Page) -> Locator:
    return page.locator("#check-result .verdict")


def tampered(blob: bytes) -> bytes:
    changed = blob.replace(b"learned, 1", b"learned, 7")
    assert changed != blob
    return changed


def test_the_latest_version(tab: Tab, scene: Scene, expect: Expect) -> None:
    blob, owner = scene.alice.blobs[2], scene.alice.address
    tab.page.goto(f"{scene.site.origin}/owners/{owner}")
    tab.drop(tab.browser.file("latest.json", blob))
    expect(verdict(tab.page)).to_have_class("verdict latest")
    expect(verdict(tab.page).locator("h3")).to_have_text("Matches the latest version")
    told = verdict(tab.page).locator("dd").all_inner_texts()
    assert told[0] == f"latest.json ({len(blob)} bytes)"
    assert told[1:3] == [hashlib.sha256(blob).hexdigest(), owner]
    assert told[-1] == "3, the latest"
    assert all(hashlib.sha256(blob).hexdigest() not in request.url for request in tab.requests)


def test_an_older_version(tab: Tab, scene: Scene, expect: Expect) -> None:
    tab.page.goto(f"{scene.site.origin}/owners/{scene.alice.address}")
    for version in (1, 2):
        tab.drop(tab.browser.file("older.json", scene.alice.blobs[version - 1]))
        expect(verdict(tab.page).locator("h3")).to_have_text(f"Matches older version {version}")
        expect(verdict(tab.page)).to_have_class("verdict older")
        expect(verdict(tab.page)).to_contain_text("the latest is version 3")


def test_a_tampered_one(tab: Tab, scene: Scene, expect: Expect) -> None:
    tab.page.goto(f"{scene.site.origin}/owners/{scene.alice.address}")
    for bad in (tampered(scene.alice.blobs[2]), scene.alice.blobs[2][:-1], scene.alice.blobs[2] + b"\n"):
        tab.drop(tab.browser.file("bad.json", bad))
        expect(verdict(tab.page)).to_contain_text(hashlib.sha256(bad).hexdigest())
        expect(verdict(tab.page)).to_have_class("verdict none")
        expect(verdict(tab.page).locator("h3")).to_have_text("Matches no version")
        expect(verdict(tab.page)).to_contain_text("None of the 3 anchored versions")


def test_one_of_another_owner(tab: Tab, scene: Scene, expect: Expect) -> None:
    tab.page.goto(f"{scene.site.origin}/owners/{scene.alice.address}")
    tab.drop(tab.browser.file("bob.json", scene.bob.blobs[0]))
    expect(verdict(tab.page).locator("h3")).to_have_text("Belongs to another owner; matches older version 1")
    expect(verdict(tab.page)).to_have_class("verdict foreign")
    tab.drop(tab.browser.file("bob.json", tampered(scene.bob.blobs[1])))
    expect(verdict(tab.page).locator("h3")).to_have_text("Belongs to another owner; matches no version")
    expect(verdict(tab.page)).to_have_class("verdict none")
    verdict(tab.page).get_by_role("link", name=scene.bob.address).click()
    expect(tab.page.locator("h1")).to_contain_text(scene.bob.address)


def test_on_the_first_page_the_file_says_whose_it_is(tab: Tab, scene: Scene, expect: Expect) -> None:
    tab.page.goto(scene.site.origin)
    for agent in (scene.alice, scene.bob):
        tab.drop(tab.browser.file("any.json", agent.blobs[-1]))
        expect(verdict(tab.page)).to_contain_text(agent.address)
        expect(verdict(tab.page).locator("h3")).to_have_text("Matches the latest version")


def test_an_owner_who_never_anchored(tab: Tab, scene: Scene, expect: Expect) -> None:
    tab.page.goto(scene.site.origin)
    with tab.complaining("404"):
        tab.drop(tab.browser.file("new.json", encode(OWNER, [Record("nobody saw this", ())])))
    expect(verdict(tab.page).locator("h3")).to_have_text("Its owner never anchored here")
    expect(verdict(tab.page)).to_have_class("verdict none")


@pytest.mark.parametrize(
    "content",
    [AGE, b"-----BEGIN AGE ENCRYPTED FILE-----\nYWdlLWVuY3J5cHRpb24ub3JnL3YxCg==\n"],
    ids=["binary", "armour"],
)
def test_a_sealed_one(tab: Tab, scene: Scene, expect: Expect, content: bytes) -> None:
    tab.page.goto(scene.site.origin)
    tab.drop(tab.browser.file("sealed.age", content))
    expect(verdict(tab.page).locator("h3")).to_have_text("Sealed")
    expect(verdict(tab.page)).to_have_class("verdict sealed")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x89PNG\r\n\x1a\n",
        b' {"owner":"%s","records":[]}',
        b'\xef\xbb\xbf{"owner":"%s","records":[]}',
        b'{"Owner":"%s","records":[]}',
        b'{"owner":"%s", "records":[]}',
        b'{"owner":"<img src=x onerror=alert(1)>","records":[]}',
    ],
)
def test_what_is_no_blob(tab: Tab, scene: Scene, expect: Expect, content: bytes) -> None:
    content = content.replace(b"%s", scene.alice.address.encode())
    tab.page.goto(scene.site.origin)
    tab.drop(tab.browser.file("<b>other<b>.json", content))
    expect(verdict(tab.page).locator("h3")).to_have_text("Not a memory blob")
    expect(verdict(tab.page)).to_contain_text("<b>other<b>.json")


def test_an_owner_with_a_wrong_checksum_is_no_owner(tab: Tab, scene: Scene, expect: Expect) -> None:
    address = scene.alice.address
    wrong = address[:20] + ("A" if address[20] != "A" else "B") + address[21:]
    tab.page.goto(scene.site.origin)
    blob = scene.alice.blobs[0].replace(address.encode(), wrong.encode())
    with tab.complaining("422"):
        tab.drop(tab.browser.file("a.json", blob))
    expect(verdict(tab.page).locator("h3")).to_have_text("Not a memory blob")


def test_a_file_that_is_too_large(tab: Tab, scene: Scene, expect: Expect) -> None:
    tab.page.goto(scene.site.origin)
    expect(tab.page.locator("#check-hint")).to_contain_text("At most 512 MiB")
    tab.drop(tab.browser.file("large.json", size=(512 << 20) + 1))
    expect(verdict(tab.page).locator("h3")).to_have_text("Too large to check here")


def test_a_file_of_many_chunks(tab: Tab, scene: Scene, expect: Expect) -> None:
    blob = encode(scene.alice.address, [Record(f"{number} " + "x" * 1000, ()) for number in range(9000)])
    tab.page.goto(scene.site.origin)
    tab.drop(tab.browser.file("long.json", blob))
    expect(verdict(tab.page)).to_contain_text(hashlib.sha256(blob).hexdigest())
    expect(verdict(tab.page).locator("h3")).to_have_text("Matches no version")
    expect(tab.page.locator("#check-progress")).to_be_hidden()


def test_a_folder_or_several_files_are_no_file(tab: Tab, scene: Scene, expect: Expect) -> None:
    tab.page.goto(scene.site.origin)
    folder = tab.browser.folder / "folder"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    tab.drop(folder)
    expect(verdict(tab.page)).to_have_class("verdict unknown")
    tab.page.evaluate("""() => {
        const dataTransfer = new DataTransfer();
        for (const name of ["a", "b"]) dataTransfer.items.add(new File(["x"], name));
        document.body.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
    }""")
    expect(verdict(tab.page).locator("h3")).to_have_text("One file at a time")


def test_by_the_keyboard_alone(tab: Tab, scene: Scene, expect: Expect) -> None:
    page, keys = tab.page, tab.page.keyboard
    # Playwright begins to catch these windows when it is first told to, and does not wait until it does.
    page.on("filechooser", lambda _: None)
    page.goto(scene.site.origin)
    keys.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    keys.press("Tab")
    keys.press("Tab")
    expect(page.get_by_label("Owner", exact=True)).to_be_focused()
    keys.type(scene.alice.address)
    keys.press("Enter")
    expect(page.locator("h1")).to_contain_text(scene.alice.address)
    keys.press("Tab")
    keys.press("Enter")  # to the content
    expect(page.locator("main")).to_be_focused()
    chooser = page.get_by_label("Choose a blob file to check")
    for _ in range(20):
        keys.press("Tab")
        if chooser.evaluate("(element) => element === document.activeElement"):
            break
    expect(chooser).to_be_focused()
    seen = page.locator("#check-drop").evaluate("(zone) => getComputedStyle(zone).outlineStyle")
    assert seen == "solid"
    with page.expect_file_chooser() as waiting:
        keys.press("Enter")
    waiting.value.set_files(
        {"name": "b.json", "mimeType": "application/json", "buffer": scene.alice.blobs[2]}
    )
    expect(verdict(page).locator("h3")).to_have_text("Matches the latest version")
    expect(chooser).to_have_value("")  # else the browser keeps silent if the same file is chosen again
    with page.expect_file_chooser() as waiting:
        keys.press("Space")
    other = tampered(scene.alice.blobs[2])
    waiting.value.set_files({"name": "b.json", "mimeType": "application/json", "buffer": other})
    expect(verdict(page).locator("h3")).to_have_text("Matches no version")
    expect(page.get_by_role("status").filter(has_text="Matches no version")).to_have_attribute(
        "aria-live", "polite"
    )


def test_a_version_far_back_is_found(tab: Tab, tmp_path: Path, expect: Expect) -> None:
    blob = encode(OWNER, [Record("long ago", ())])
    roots = [hashlib.sha256(b"%d" % number).digest() for number in range(450)]
    roots[2] = hashlib.sha256(blob).digest()
    with made_up_site(tmp_path, OWNER, roots) as site:
        tab.page.goto(f"{site.origin}/owners/{OWNER}")
        tab.drop(tab.browser.file("far.json", blob))
        expect(verdict(tab.page).locator("h3")).to_have_text("Matches older version 3")
        expect(verdict(tab.page)).to_contain_text("3 of 450")


def test_what_is_missing_here_is_not_called_tampered(tab: Tab, tmp_path: Path, expect: Expect) -> None:
    blob = encode(OWNER, [Record("in the gap", ())])
    roots = [hashlib.sha256(b"%d" % number).digest() for number in range(9)]
    roots[4] = hashlib.sha256(blob).digest()
    with made_up_site(tmp_path, OWNER, roots, missing=(4, 5, 7)) as site:
        tab.page.goto(f"{site.origin}/owners/{OWNER}")
        tab.drop(tab.browser.file("gap.json", blob))
        expect(verdict(tab.page).locator("h3")).to_have_text("Matches none of the versions known here")
        expect(verdict(tab.page)).to_contain_text("Versions 4 to 5, 7 are missing in this index.")


def test_without_an_answer_nothing_is_said(tab: Tab, scene: Scene, expect: Expect) -> None:
    tab.page.goto(scene.site.origin)
    tab.page.route("**/memory/**", lambda route: route.fulfill(status=503, body="{}"))
    with tab.complaining("503"):
        tab.drop(tab.browser.file("latest.json", scene.alice.blobs[2]))
    expect(verdict(tab.page).locator("h3")).to_have_text("The index did not answer")
    expect(verdict(tab.page)).to_have_class("verdict unknown")
    tab.page.unroute("**/memory/**")
    tab.drop(tab.browser.file("latest.json", scene.alice.blobs[2]))
    expect(verdict(tab.page).locator("h3")).to_have_text("Matches the latest version")


def test_hashing_needs_https_or_this_machine(tab: Tab, scene: Scene, expect: Expect) -> None:
    tab.page.goto(f"http://{PLAIN_HOST}:{scene.site.port}/owners/{scene.alice.address}")
    expect(tab.page.locator("#check-insecure")).to_contain_text("Open it by https, or at localhost")
    expect(tab.page.locator("#check-tool")).to_be_hidden()
    expect(tab.page.locator("h1")).to_contain_text(scene.alice.address)


def test_what_was_said_is_said_anew_when_the_owner_anchors(
    tab: Tab, own_scene: Scene, expect: Expect
) -> None:
    alice = own_scene.alice
    tab.page.goto(f"{own_scene.site.origin}/owners/{alice.address}")
    tab.drop(tab.browser.file("latest.json", alice.blobs[2]))
    expect(verdict(tab.page).locator("h3")).to_have_text("Matches the latest version")
    alice.anchor("one more thing")
    own_scene.follow()
    expect(verdict(tab.page).locator("h3")).to_have_text("Matches older version 3")
    expect(verdict(tab.page)).to_contain_text("the latest is version 4")
