"""Text for people: what a terminal may be shown, amounts, times."""

from __future__ import annotations

import pytest

from mycelium_cli import output


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("zwei\tWörter\n日本", "zwei\tWörter\n日本"),
        ("\x1b[2J\x07", "\\x1b[2J\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("a\u202eb\u2066c", "a\\u202eb\\u2066c"),
        ("\ufeff\u2028", "\\ufeff\\u2028"),
        ("\udc80", "\\udc80"),
        ("👩\u200d🌾🌿", "👩\u200d🌾🌿"),
        ("\r", "\\x0d"),
    ],
)
def test_a_terminal_is_shown_no_control_characters(text: str, expected: str) -> None:
    assert output.shown(text) == expected


@pytest.mark.parametrize(
    ("stroops", "expected"),
    [
        (0, "0.0000000 XLM (0 stroops)"),
        (123_456, "0.0123456 XLM (123,456 stroops)"),
        (10_000_000_001, "1000.0000001 XLM (10,000,000,001 stroops)"),
    ],
)
def test_amounts_keep_every_stroop(stroops: int, expected: str) -> None:
    assert output.amount(stroops) == expected


def test_durations_moments_and_counts() -> None:
    assert [output.memories(count) for count in (0, 1, 2)] == ["0 memories", "1 memory", "2 memories"]
    assert output.duration(0.0184) == "18 ms"
    assert output.duration(12.34) == "12.3 s"
    assert output.moment(1_772_442_840) == "2026-03-02 09:14:00 UTC"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["memory", "status", "--json"], True),
        (["--json", "memory", "--nonsense"], True),
        (["memory", "remember", "--", "--json"], False),
        (["memory", "status"], False),
    ],
)
def test_json_is_recognised_before_the_rest_is_understood(arguments: list[str], expected: bool) -> None:
    assert output.wants_json(arguments) is expected
