"""Logs as lines of JSON. They hold names, numbers and routes: no path, no query, nothing out of an anchor."""

from __future__ import annotations

import json
import logging
import time
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["JsonFormatter"]

_FIELDS = "fields"


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `time` (UTC), `level`, `logger`, `event`, and what was logged with
    `extra={"fields": {...}}`.

    Of an exception the class and the places are shown, not the message, which may quote a value.
    """

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        line.update(getattr(record, _FIELDS, {}))
        if record.exc_info is not None and record.exc_info[0] is not None:
            line["exception"] = record.exc_info[0].__name__
            line["raised_at"] = _places(record.exc_info[2])
        return json.dumps(line, default=repr)


def _places(trace: TracebackType | None) -> list[str]:
    """The places of a traceback, the innermost last."""
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(trace)]
