"""People's formats of memories: told apart, read and written. Pure: knows no store and no chain."""

from __future__ import annotations

from mycelium_sdk.interchange.detection import Detected, detect
from mycelium_sdk.interchange.entries import Entry, Intake
from mycelium_sdk.interchange.jsonl import json_line
from mycelium_sdk.interchange.reading import IMPORT_FORMATS, read_entries

__all__ = ["IMPORT_FORMATS", "Detected", "Entry", "Intake", "detect", "json_line", "read_entries"]
