"""The stories in the documentation are what really happens.

`REWRITE_TRANSCRIPTS=1` writes them as they really are; read the difference before it is committed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .test_transcripts import stage
from .transcripts import replay

if TYPE_CHECKING:
    from .stage import Stage

__all__ = ["stage"]

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(
    page.name for page in DOCS.glob("*.md") if "```transcript\n" in page.read_text(encoding="utf-8")
)
_BLOCK = re.compile(r"(?<=```transcript\n).*?(?=```\n)", re.DOTALL)


@pytest.mark.parametrize("name", PAGES)
def test_the_stories_of_a_page(stage: Stage, name: str) -> None:
    page = (DOCS / name).read_text(encoding="utf-8")
    played = _BLOCK.sub(lambda block: replay(block[0], stage.run, stage.act, stage.placeholders), page)
    if os.environ.get("REWRITE_TRANSCRIPTS"):
        (DOCS / name).write_text(played, encoding="utf-8")
    assert played == page


def test_the_story_of_two_machines_is_one_of_them() -> None:
    assert "portability.md" in PAGES
