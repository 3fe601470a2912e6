"""The canonical form of a memory, format 1: records to bytes, bytes to a root, and back.

The only place that knows the format. Backends keep what `fragment` and `order_key` give and hand fragments
back in order; whatever is published is written by `write_blob`, whatever is loaded is read by `parse`.

The parser is imported when it is first used: its patterns take longer to compile than a memory to remember.
"""

from typing import TYPE_CHECKING

from mycelium_sdk._lazy import lazy_exports
from mycelium_sdk.canonical.encoding import encode, fragment, order_key, order_keys, root, write_blob

if TYPE_CHECKING:
    from mycelium_sdk.canonical.batches import Batch
    from mycelium_sdk.canonical.parsing import (
        BlobDigest,
        Fragments,
        Source,
        check,
        parse,
        parse_fragments,
        record_from_fragment,
    )

__all__ = [
    "Batch",
    "BlobDigest",
    "Fragments",
    "Source",
    "check",
    "encode",
    "fragment",
    "order_key",
    "order_keys",
    "parse",
    "parse_fragments",
    "record_from_fragment",
    "root",
    "write_blob",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    dict.fromkeys(
        (
            "Batch",
            "BlobDigest",
            "Fragments",
            "Source",
            "check",
            "parse",
            "parse_fragments",
            "record_from_fragment",
        ),
        "mycelium_sdk.canonical.parsing",
    ),
)
