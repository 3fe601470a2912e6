"""Bytes as sources of an import, and what is read from them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk.errors import InputError
from mycelium_sdk.interchange import Intake, read_entries

if TYPE_CHECKING:
    from mycelium_sdk.interchange import Entry

OWNER = "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H"
NOW = 1_700_000_000.0


def read(kind: str, data: bytes, **options: Any) -> list[Entry]:
    """What an import of these bytes takes in."""
    given = {key: options.pop(key) for key in ("tags", "session", "max_record_bytes") if key in options}
    return list(read_entries(io.BytesIO(data), kind, Intake(OWNER, NOW, **given), **options))


def texts(kind: str, data: bytes, **options: Any) -> list[str]:
    """Only their contents."""
    return [entry.record.content for entry in read(kind, data, **options)]


def refusal(kind: str, data: bytes, **options: Any) -> str:
    """The message that refuses them."""
    with pytest.raises(InputError) as caught:
        read(kind, data, **options)
    assert caught.value.message.endswith("; nothing was imported")
    assert caught.value.__cause__ is None, "a cause can hold the text"
    return caught.value.message
