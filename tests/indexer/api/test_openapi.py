"""The API does what its OpenAPI document says, whatever is asked of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema_rs import meta
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from mycelium_indexer.api.openapi import ADDRESS_FORMAT, document
from mycelium_indexer.api.problems import PROBLEMS
from mycelium_indexer.store import open_store

from .ground import CONTRACT, OTHER_CONTRACT, anchors_of, fill, owner_number, serving
from .ground import settings as api_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTILE = (
    b"",
    b"https://example.org/'; DROP TABLE anchors; --",
    b"<script>alert(1)</script>",
    b"\xff\xfe\x00",
)
KNOWN = [owner_number(number) for number in range(6)]

schemathesis.openapi.format(
    ADDRESS_FORMAT, st.sampled_from([*KNOWN, owner_number(99), CONTRACT, OTHER_CONTRACT])
)


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The document as a server gives it that holds owners with every kind of anchor, some with a gap."""
    store = open_store(str(tmp_path_factory.mktemp("openapi") / "index.db"))
    for number, owner in enumerate(KNOWN):
        made = anchors_of(owner, [HOSTILE[number % 4]] * 70, acl=HOSTILE[number % 3])
        fill(store, made[:3] + made[3 + number :])
    fill(store, anchors_of(CONTRACT, [b""]), contract=OTHER_CONTRACT)
    with serving(store, api_settings(access_log=False)) as api:
        yield schemathesis.openapi.from_url(f"http://127.0.0.1:{api.port}/openapi.json")
    store.close()


PATHS = document()["paths"]
ASKED = [
    (path, mode)
    for path in PATHS
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    if mode is GenerationMode.POSITIVE or path.startswith("/memory")  # the others have nothing to get wrong
]


@pytest.mark.parametrize(("path", "mode"), ASKED)
def test_no_request_gets_an_undocumented_answer(
    described: schemathesis.BaseSchema, path: str, mode: GenerationMode
) -> None:
    """No 5xx, no status, header, content type or body that the document does not have; what it does not
    allow is refused.

    Not checked: that whatever fits the document is accepted. It cannot say what a checksum is.
    """
    operation = described[path]["GET"]

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None, database=None)
    def ask(case: schemathesis.Case[Any]) -> None:
        case.call_and_validate(excluded_checks=[positive_data_acceptance])

    ask()


def test_the_extremes_of_every_parameter(described: schemathesis.BaseSchema) -> None:
    """Of each operation: boundary values, missing and repeated parameters, methods that it has not."""
    for path in PATHS:
        seen = set()
        for method in ("GET", "HEAD"):
            cases = described.iter_coverage_cases(
                described[path][method],
                generation_modes=list(GenerationMode),
                generation_config=described.config.generation,
            )
            for case in cases:
                seen.add(case.call_and_validate(excluded_checks=[positive_data_acceptance]).status_code)
        assert seen >= ({405, 422} if path.startswith("/memory") else {200, 405}), path


def test_what_is_there_is_as_described(described: schemathesis.BaseSchema) -> None:
    """So that the tests above do not pass on refusals alone."""
    for path in PATHS:
        owner = {"owner": KNOWN[2]} if "owner" in path else None
        operation = described[path]["GET"]
        found = operation.Case(path_parameters=owner).call_and_validate()
        assert found.status_code == 200
        if "etag" in found.headers:
            again = operation.Case(path_parameters=owner, headers={"If-None-Match": found.headers["etag"][0]})
            assert again.call_and_validate().status_code == 304
        assert ("etag" in found.headers) == (path.startswith("/memory") or path == "/openapi.json")


def test_the_document_is_exact() -> None:
    """Every schema is one, and nothing but what it lists may be in an answer."""
    for name, schema in document()["components"]["schemas"].items():
        meta.validate(schema)
        assert schema.get("additionalProperties") is False or name == "Document"
    assert document()["openapi"] == "3.1.0"
    problems = document()["components"]["schemas"]["Problem"]["properties"]["type"]["enum"]
    assert problems == [f"urn:mycelium:problem:{kind}" for kind in PROBLEMS]
