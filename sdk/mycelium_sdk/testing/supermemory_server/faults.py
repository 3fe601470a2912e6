"""What can go wrong on the way: a request that is not answered, or answered with something else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["status", "drop", "hang", "cut", "html"]


@dataclass(slots=True)
class Fault:
    """Happens to the next `times` requests whose method and path fit.

    `kind`: "status" answers with `status` and `headers`; "drop" closes the connection without an answer;
    "hang" keeps it open until the client gives up; "cut" breaks the answer off in its middle; "html" answers
    200 with a page. `executed`: the request takes effect all the same. `after`: so many fitting requests are
    served first. `method` and `path` (what the path ends with) are "" for any.
    """

    kind: Kind = "status"
    status: int = 503
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 1
    after: int = 0
    executed: bool = False
    method: str = ""
    path: str = ""

    def takes(self, method: str, path: str) -> bool:
        """Whether it happens to this request; each request that fits is counted once."""
        if self.times <= 0 or self.method not in {"", method} or not path.endswith(self.path):
            return False
        if self.after > 0:
            self.after -= 1
            return False
        self.times -= 1
        return True
