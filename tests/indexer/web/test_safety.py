"""Whatever owners write into their anchors, a page stays the page that the template says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mycelium_indexer.web.wording import duration, is_safe_link, printable
from tests.indexer.api.ground import Api, anchors_of, fill, owner_number
from tests.indexer.web.documents import Document

if TYPE_CHECKING:
    from mycelium_indexer.store.base import IndexStore

OWNER = owner_number(1)
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HOSTILE = [
    "<script>alert(1)</script>",
    "</bdi></td></table><img src=x onerror=alert(1)>",
    '" autofocus onfocus=alert(1) x="',
    "' onmouseover='alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:msgbox(1)",
    "http://plain.example/blob.json",
    "//no-scheme.example/",
    "https:/one-slash.example",
    "https://user:password@secret.example/",
    "https://a.example/ with space",
    "https://a.example\\@b.example/",
    "https://exa\u202emple.example/gpj.exe",
    "\thttps://tab.example/",
    "file:///etc/passwd",
    "\x00\x1b[31m\r\nSet-Cookie: a=b",
]
LINKED = [
    "https://a.example/b.json",
    "HTTPS://a.example:8443/b?c=d&e=%22",
    "https://a.example/'><b>",
    'https://a.example/"onclick="alert(1)',
]
FEW_TAGS = {
    "a", "bdi", "body", "button", "circle", "code", "dd", "defs", "desc", "div", "dl", "dt",
    "figcaption", "figure", "footer", "form", "h1", "h2", "head", "header", "html", "input", "label",
    "line", "link", "main", "meta", "nav", "p", "path", "pattern", "progress", "rect",
    "script", "section", "span", "strong", "svg", "table", "tbody", "td", "text", "th", "thead", "time",
    "title", "tr",
}  # fmt: skip


@pytest.fixture
def hostile(store: IndexStore, site: Api) -> Api:
    uris = [text.encode() for text in HOSTILE] + [b"\xff\xfe no text", b"x" * 1024]
    fill(store, anchors_of(OWNER, uris))
    for number, uri in enumerate(uris, 2):
        fill(store, anchors_of(owner_number(number), [uri], acl=uri, start=2000 + number))
    return site


def targets() -> list[str]:
    return ["/", *(f"/owners/{owner_number(number)}" for number in range(1, len(HOSTILE) + 4))]


def test_no_element_attribute_or_script_comes_from_an_anchor(hostile: Api) -> None:
    for target in targets():
        document = Document(hostile.get(target).body.decode("utf-8"))
        for element in document.elements:
            assert element.tag in FEW_TAGS
            assert not [name for name in element.attributes if name.startswith("on") or name == "style"]
            for name in ("href", "src", "action"):
                value = element.attributes.get(name)
                assert value is None or value.startswith(("./", "../", "#"))
        scripts = document.all("script")
        assert [(one.attributes["type"], one.text) for one in scripts] == [("module", "")] * 2


def test_all_of_them_are_shown_as_text(hostile: Api) -> None:
    for number, text in enumerate(HOSTILE, 2):
        document = Document(hostile.get(f"/owners/{owner_number(number)}").body.decode("utf-8"))
        shown = [one.text for one in document.all("bdi", class_="foreign")]
        assert len(shown) == 3  # the latest anchor, its access list, the table
        assert shown[0] == shown[1] == " ".join(printable(text).split())
        assert "\u202e" not in "".join(shown)
    (no_text,) = [
        one.text for one in Document(hostile.get("/").body.decode("utf-8")).all("code", class_="foreign")
    ]
    assert no_text == b"\xff\xfe no text".hex()


@pytest.mark.parametrize("uri", LINKED)
def test_an_https_address_is_a_link_that_tells_the_other_side_nothing(
    store: IndexStore, site: Api, uri: str
) -> None:
    fill(store, anchors_of(OWNER, [uri.encode()]))
    for target, times in (("/", 1), (f"/owners/{OWNER}", 2)):
        document = Document(site.get(target).body.decode("utf-8"))
        found = document.all("a", href=uri)
        assert [one.text for one in found] == [uri] * times
        for one in found:
            assert {"noopener", "noreferrer"} <= set((one.attributes["rel"] or "").split())


@pytest.mark.parametrize("uri", [*HOSTILE, None, ""])
def test_nothing_else_is_linked(uri: str | None) -> None:
    assert not is_safe_link(uri)


def test_every_answer_has_the_policy(store: IndexStore, site: Api) -> None:
    nothing = site.get("/")
    fill(store, anchors_of(OWNER, [b""]))
    answers = [nothing, *(site.get(target) for target in (
        "/", f"/owners/{OWNER}", f"/owners/{owner_number(2)}", "/owners/G", "/?cursor=x",
        "/static/explorer.css", "/static/refresh.js", "/static/check.js", "/static/icon.svg",
    ))]  # fmt: skip
    for answer in answers:
        assert answer.headers["Content-Security-Policy"] == POLICY
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert [answer.headers["Cache-Control"] for answer in answers] == ["no-store"] * 6 + ["no-cache"] * 4


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("explorer.css", "text/css; charset=utf-8"),
        ("refresh.js", "text/javascript; charset=utf-8"),
        ("check.js", "text/javascript; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    ],
)
def test_files_of_the_page(site: Api, name: str, media_type: str) -> None:
    answer = site.get(f"/static/{name}")
    assert (answer.status, answer.headers["Content-Type"]) == (200, media_type)
    assert len(answer.body) > 200
    again = site.get(f"/static/{name}", If_None_Match=answer.headers["ETag"])
    assert (again.status, again.body) == (304, b"")
    head = site.get(f"/static/{name}", method="HEAD")
    assert (head.status, head.body, head.headers["ETag"]) == (200, b"", answer.headers["ETag"])


@pytest.mark.parametrize("name", ["nothing.js", "..%2Fpages.py", "../pages.py", "%2e%2e/pages.py", ""])
def test_no_other_file_is_served(site: Api, name: str) -> None:
    assert site.get(f"/static/{name}").status == 404


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (3600, "1 h"),
        (172_799, "47 h"),
        (172_800, "2 days"),
    ],
)
def test_durations_are_in_the_largest_unit_that_says_enough(seconds: float, text: str) -> None:
    assert duration(seconds) == text
