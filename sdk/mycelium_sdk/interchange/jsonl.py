"""Memories as JSON lines: one object a line, the form that loses nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mycelium_sdk.interchange.entries import Entry, refused, timed
from mycelium_sdk.interchange.lines import json_value, text_lines
from mycelium_sdk.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from mycelium_sdk.interchange.entries import Intake
    from mycelium_sdk.stored import StoredRecord

__all__ = ["json_line", "read_json_lines"]

_KEYS = ("content", "tags", "session", "time", "sequence", "copies")
_JSON_SPACE = " \t"


def json_line(stored: StoredRecord) -> bytes:
    """A memory as a line of ASCII: content and tags as the blob writes them, then what the blob does not say.

    Raises `NonCanonical` if what is stored is no record.
    """
    _ = stored.record  # raises for a fragment that was edited
    context = {
        "session": stored.session,
        "time": stored.time,
        "sequence": stored.sequence,
        "copies": stored.copies,
    }
    rest = json.dumps(context, separators=(",", ":"), allow_nan=False)
    return f"{stored.fragment[:-1]},{rest[1:]}\n".encode("ascii")


def read_json_lines(source: BinaryIO, intake: Intake) -> Iterator[Entry]:
    """One memory for each line that is not blank.

    Keys: `content`, and where wanted `tags`, `session`, `time` (Unix seconds, null for not known) and
    `sequence`. A line with `copies` is one of an export and taken as it is. Raises `InputError`.
    """
    for number, line in text_lines(source):
        if line.strip(_JSON_SPACE):
            place = f"line {number}"
            yield _entry(json_value(line, place), place, intake)


def _entry(value: Any, place: str, intake: Intake) -> Entry:
    if not isinstance(value, dict):
        raise refused(place, "it is no JSON object", 'a line looks like {"content": "...", "tags": ["..."]}')
    if "content" not in value or not value.keys() <= set(_KEYS):
        raise refused(
            place,
            f"its keys are not those of a memory, which are {', '.join(_KEYS)}",
            "content is required, the others may be left out; jq can rename and drop keys",
        )
    session = _session(value.get("session"), place)
    time = intake.now if "time" not in value else timed(value["time"], place)
    sequence = _whole(value["sequence"], "sequence", place, least=0) if "sequence" in value else None
    if "copies" not in value:
        tags = value.get("tags")
        if tags is not None and not isinstance(tags, list):
            raise refused(place, "its tags are no list", 'write "tags": ["one", "two"]')
        plain = intake.entry(place, value["content"], tags or (), session=session, time=time)
        return Entry(plain.record, plain.session, plain.time, sequence)
    copies = _whole(value["copies"], "copies", place, least=1)
    record = _as_it_is(value["content"], value.get("tags", []), place, intake.tags)
    return Entry(
        record, intake.session if session is None else session, time, sequence, copies=copies, exact=True
    )


def _as_it_is(content: Any, tags: Any, place: str, added: tuple[str, ...]) -> Record:
    if not isinstance(content, str) or not isinstance(tags, list):
        raise refused(place, "its content is no text, or its tags are no list")
    if not all(isinstance(tag, str) for tag in tags):
        raise refused(place, "a tag is no text")
    try:
        for text in (content, *tags):
            text.encode("utf-8")
    except UnicodeEncodeError:
        raise refused(place, "it holds a lone surrogate, which is not text") from None
    return Record(content, tuple(sorted([*tags, *(tag for tag in added if tag not in tags)])))


def _session(value: Any, place: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise refused(place, "its session is no name", "leave the session out, or give it a name")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise refused(place, "its session holds a lone surrogate, which is not text") from None
    return value


def _whole(value: Any, name: str, place: str, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 1 << 63:
        raise refused(place, f"its {name} is no whole number of at least {least}")
    return value
