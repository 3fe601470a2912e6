"""One server for all tests that leave nothing behind that another could mind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.localnet.server.process import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.localnet.server.process import ServerProcess


@pytest.fixture(scope="session")
def shared() -> Iterator[ServerProcess]:
    """A server with the defaults, on a free port. Others use it too."""
    with serving() as server:
        yield server
        # Only what a test of that says on purpose: no traceback, no warning.
        assert set(server.complaints().splitlines()) <= {"Invalid HTTP request received."}
