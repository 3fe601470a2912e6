"""The frozen vectors of format 1, in both directions."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from mycelium_sdk import canonical
from mycelium_sdk.errors import NonCanonical, VerificationError, WrongOwner
from mycelium_sdk.records import Record
from mycelium_sdk.verdicts import Reason, Verdict

_REASONS = {
    "trailing-newline": Reason.TRAILING,
    "bom": Reason.NOT_ASCII,
    "utf16": Reason.NOT_ASCII,
    "raw-utf8": Reason.NOT_ASCII,
    "upper-hex": Reason.ENCODING,
    "escaped-slash": Reason.ENCODING,
    "needless-escape": Reason.ENCODING,
    "records-unsorted": Reason.RECORD_ORDER,
    "tags-unsorted": Reason.TAG_ORDER,
    "lone-surrogate": Reason.NOT_TEXT,
    "wrong-owner": Reason.OWNER,
    "truncated": Reason.TRUNCATED,
    "empty": Reason.TRUNCATED,
}
"""The reasons that the vectors leave open; every other vector is refused for its structure."""


def _records(vector: dict[str, Any]) -> list[Record]:
    return [Record(record["content"], tuple(record["tags"])) for record in vector["records"]]


def _sorted(records: list[Record]) -> list[Record]:
    return sorted(
        (Record(record.content, tuple(sorted(record.tags))) for record in records),
        key=lambda record: (record.content, record.tags),
    )


def test_encoding_gives_the_blob_and_its_root(accepted: dict[str, Any]) -> None:
    blob = canonical.encode(accepted["owner"], _records(accepted))
    assert blob == accepted["blob"].encode("ascii")
    assert canonical.root(blob).hex() == accepted["root"]


def test_the_order_of_writes_does_not_matter(accepted: dict[str, Any]) -> None:
    blob = canonical.encode(accepted["owner"], reversed(_records(accepted)))
    assert blob == accepted["blob"].encode("ascii")


def test_writing_from_ordered_fragments_gives_the_blob(accepted: dict[str, Any]) -> None:
    records = sorted(_records(accepted), key=canonical.order_key)
    pairs = [(canonical.fragment(record), 1) for record in records]
    assert b"".join(canonical.write_blob(accepted["owner"], pairs)) == accepted["blob"].encode("ascii")
    assert canonical.root(canonical.write_blob(accepted["owner"], pairs)).hex() == accepted["root"]


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_parsing_gives_the_records_back(accepted: dict[str, Any], step: int) -> None:
    blob = accepted["blob"].encode("ascii")
    chunks = [blob[start : start + step] for start in range(0, len(blob), step)]
    digest = canonical.BlobDigest()
    records = list(canonical.parse(chunks, accepted["owner"], max_bytes=len(blob), digest=digest))
    assert records == _sorted(_records(accepted))
    assert (digest.root().hex(), digest.size, digest.records) == (accepted["root"], len(blob), len(records))


def test_fragments_are_read_back(accepted: dict[str, Any]) -> None:
    for record in _sorted(_records(accepted)):
        assert canonical.record_from_fragment(canonical.fragment(record)) == record


def test_a_refused_blob_names_verdict_and_reason(rejected: dict[str, Any]) -> None:
    blob = bytes.fromhex(rejected["blob_hex"])
    for source in (blob, io.BytesIO(blob), [blob[start : start + 3] for start in range(0, len(blob), 3)]):
        with pytest.raises(VerificationError) as caught:
            list(canonical.parse(source, rejected["owner"], max_bytes=1 << 30))
        assert isinstance(caught.value, (NonCanonical, WrongOwner))
        assert caught.value.verdict == Verdict(rejected["verdict"])
        assert caught.value.reason is _REASONS.get(rejected["name"], Reason.STRUCTURE)


def test_refusals_are_plain_errors_about_input_too(rejected: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="blob"):
        list(canonical.parse(bytes.fromhex(rejected["blob_hex"]), rejected["owner"], max_bytes=1 << 30))


def test_the_vectors_agree_with_the_json_module(accepted: dict[str, Any]) -> None:
    value = {
        "owner": accepted["owner"],
        "records": [
            {"content": record.content, "tags": list(record.tags)} for record in _sorted(_records(accepted))
        ],
    }
    assert json.dumps(value, sort_keys=True, separators=(",", ":")) == accepted["blob"]
