"""What a failed command says and how it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycelium_cli import failures
from mycelium_cli.session import Session
from mycelium_sdk.errors import ChainUnavailable, InputError, Rollback, WrongPassphrase

if TYPE_CHECKING:
    import pytest

    from .conftest import Cli


def test_an_error_is_two_lines_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    code = failures.report(InputError("the text is too long", hint="shorten it"), as_json=False)
    assert code == 2
    assert capsys.readouterr() == ("", "error: the text is too long\nhint: shorten it\n")


def test_a_verdict_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    code = failures.report(Rollback("version 1 was served", hint="do not accept it"), as_json=False)
    assert code == 7
    assert capsys.readouterr().err == "error: version 1 was served (ROLLBACK)\nhint: do not accept it\n"


def test_json_has_one_error_object_and_the_lines_stay(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Session) -> None:
        raise ChainUnavailable("the server cannot be reached", hint="try again")

    monkeypatch.setattr(Session, "wallet", fail)
    outcome = cli("wallet", "show", "--json")
    assert outcome.code == 6
    assert outcome.json == {
        "error": {
            "type": "ChainUnavailable",
            "message": "the server cannot be reached",
            "hint": "try again",
            "verdict": "UNAVAILABLE",
            "exit_code": 6,
        }
    }
    assert outcome.err == "error: the server cannot be reached (UNAVAILABLE)\nhint: try again\n"


def test_a_usage_error_has_the_same_shape(cli: Cli) -> None:
    outcome = cli("memory", "remember", "--json", "--nonsense")
    assert outcome.code == 2
    error = outcome.json["error"]
    assert list(error) == ["type", "message", "hint", "verdict", "exit_code"]
    assert (error["type"], error["exit_code"], error["verdict"]) == ("UsageError", 2, None)
    assert error["hint"] == "`mycelium memory remember --help` shows how it is used"


def test_anything_else_is_a_bug_with_its_traceback(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Session) -> None:
        raise KeyError("a memory's text")

    monkeypatch.setattr(Session, "wallet", fail)
    outcome = cli("wallet", "show", "--json")
    assert outcome.code == 1
    assert outcome.err.startswith("Traceback (most recent call last):")
    assert outcome.err.splitlines()[-2:] == [
        "error: internal error: KeyError",
        "hint: this is a bug; please report it with the lines above",
    ]
    assert outcome.json["error"]["type"] == "KeyError"
    assert "text" not in outcome.out


def test_the_cause_of_an_expected_error_is_not_shown(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Session) -> None:
        raise WrongPassphrase("the passphrase does not open the wallet") from KeyError("a memory's text")

    monkeypatch.setattr(Session, "wallet", fail)
    outcome = cli("wallet", "show")
    assert (outcome.code, outcome.out) == (4, "")
    assert outcome.err == "error: the passphrase does not open the wallet\n"


def test_no_command_shows_the_help_and_is_a_usage_error(cli: Cli) -> None:
    outcome = cli("memory")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("Usage: mycelium memory")


def test_help_and_version_go_to_stdout(cli: Cli) -> None:
    for arguments in (("--help",), ("memory", "-h"), ("memory", "recall", "--help")):
        outcome = cli(*arguments)
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out.startswith("Usage: mycelium")
    assert cli("--version").out.startswith("mycelium 0.")


def test_ctrl_c_ends_with_130_and_no_traceback(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: Session) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "wallet", interrupt)
    outcome = cli("wallet", "show", "--json")
    assert outcome.code == 130
    assert outcome.err == "\nerror: interrupted\n"


def test_what_the_system_refuses_about_a_file_is_no_bug(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Session) -> None:
        raise PermissionError(13, "Permission denied", "/somewhere/else")

    monkeypatch.setattr(Session, "wallet", fail)
    outcome = cli("wallet", "show", "--json")
    assert outcome.code == 5
    assert outcome.json["error"]["message"] == "cannot use /somewhere/else: permission denied"
    assert "Traceback" not in outcome.err


def test_a_file_that_was_not_looked_for_is_a_bug(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Session) -> None:
        raise FileNotFoundError(2, "No such file or directory", "/somewhere/else")

    monkeypatch.setattr(Session, "wallet", fail)
    assert cli("wallet", "show").code == 1
