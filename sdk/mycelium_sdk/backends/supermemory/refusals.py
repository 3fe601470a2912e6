"""What the service's refusals and failures mean: statuses and exceptions as errors of the one tree.

No body of an answer gets into a message: services repeat what they were sent, and that is memory text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from mycelium_sdk.errors import BackendError, LimitExceeded, StoreUnavailable
from mycelium_sdk.retry import wait_asked_for

if TYPE_CHECKING:
    from collections.abc import Mapping

_FINAL = {
    401: ("does not accept the key", "set SUPERMEMORY_API_KEY (or api_key) to a valid key of this service"),
    402: ("is out of credits (402)", "add credits to the account; what is stored stays readable"),
    403: ("does not allow this key to do that", "use a key that may read and write the namespace"),
    404: ("has no such address (404)", 'check base_url; api="v3" is for self-hosted servers'),
}


class NoSuchAddress(BackendError):  # noqa: N818 - the name says what happened
    """The server does not know what it was asked for (404)."""


class Conflict(StoreUnavailable):
    """The service is busy with the same document (409)."""


def unavailable(message: str, retry_after: float | None = None) -> StoreUnavailable:
    """The error for a service that does not serve now."""
    error = StoreUnavailable(
        f"the memory service {message}",
        hint="try again later; nothing is known of what it holds, and repeating a call doubles nothing",
    )
    error.retry_after = retry_after
    return error


def refuse(status: int, headers: Mapping[str, str] | None) -> NoReturn:
    """Raise what an answer with this status means.

    `BackendError` for what a person must mend, `LimitExceeded` for what is too large, `StoreUnavailable` for
    what time mends.
    """
    if status in _FINAL:
        said, hint = _FINAL[status]
        kind = NoSuchAddress if status == 404 else BackendError
        raise kind(f"the memory service {said}", hint=hint)
    if status == 413:
        raise too_large()
    if status == 409:
        error = Conflict("the memory service is busy with the same document (409)", hint="try again")
        raise error
    if status == 429:
        raise unavailable("asks for fewer requests (429)", wait_asked_for(headers))
    if status == 408 or status >= 500:
        raise unavailable(f"failed ({status})", wait_asked_for(headers))
    if 200 <= status < 300:
        raise unavailable("answered with something that is not an answer of its API")
    raise BackendError(
        f"the memory service refused a request ({status})",
        hint="check base_url and api; a self-hosted server may be of another version",
    )


def too_large() -> LimitExceeded:
    """The one error for a record that the service cannot hold."""
    return LimitExceeded(
        "the record is larger than the memory service holds",
        hint="split the text into several memories, or keep this memory in another backend",
    )


def unshaped() -> StoreUnavailable:
    """The error for JSON that lacks what the API promises."""
    return unavailable("gave an answer without the fields of its API")
