"""Every command has help with an example, and stands in the generated page."""

from __future__ import annotations

import inspect
from pathlib import Path

import click
import pytest

from mycelium_cli import options, reference
from mycelium_cli.groups import Command, LazyGroup
from mycelium_cli.options import SharedOption
from mycelium_sdk import config, errors

ROOT = Path(__file__).parents[2]
CONTEXTS = list(reference.walk())
PATHS = [context.command_path for context in CONTEXTS]


def test_the_commands_are_those_of_the_product() -> None:
    assert PATHS == [
        "mycelium",
        "mycelium memory",
        "mycelium memory remember",
        "mycelium memory recall",
        "mycelium memory import",
        "mycelium memory export",
        "mycelium memory forget",
        "mycelium memory status",
        "mycelium memory anchor",
        "mycelium memory verify",
        "mycelium memory rehydrate",
        "mycelium memory sync",
        "mycelium memory history",
        "mycelium memory diff",
        "mycelium memory purge",
        "mycelium memory keep-alive",
        "mycelium memory inspect",
        "mycelium memory repair",
        "mycelium wallet",
        "mycelium wallet new",
        "mycelium wallet show",
        "mycelium contract",
        "mycelium contract build",
        "mycelium contract deploy",
        "mycelium indexer",
        "mycelium indexer run",
        "mycelium indexer serve",
        "mycelium indexer repair",
        "mycelium localnet",
        "mycelium demo",
        "mycelium doctor",
    ]


@pytest.mark.parametrize("context", CONTEXTS, ids=PATHS)
def test_every_command_has_help_and_an_example_of_itself(context: click.Context) -> None:
    command = context.command
    assert isinstance(command, (Command, LazyGroup))
    assert command.help
    assert context.command_path in command.example
    assert inspect.cleandoc(command.help).splitlines()[0].endswith(".")
    assert "Example:" in context.get_help()


@pytest.mark.parametrize("context", CONTEXTS, ids=PATHS)
def test_every_option_has_help_and_json_is_everywhere(context: click.Context) -> None:
    parameters = context.command.get_params(context)
    for parameter in parameters:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.opts
    assert "--json" in [name for parameter in parameters for name in parameter.opts]
    words = {word for parameter in parameters for name in parameter.opts for word in name.split("-")}
    if context.command_path == "mycelium localnet":
        words.remove("seed")  # of a chain's id, which everybody may know
    assert words.isdisjoint({"passphrase", "password", "key", "seed", "secret"})
    names = [name for parameter in parameters for name in (*parameter.opts, *parameter.secondary_opts)]
    assert len(names) == len(set(names)), "an option is used twice"


@pytest.mark.parametrize("context", CONTEXTS, ids=PATHS)
def test_every_command_stands_in_the_page(context: click.Context) -> None:
    page = reference.reference()
    assert f" {context.command_path}\n" in page
    assert context.get_help() in page


def test_the_page_in_docs_is_up_to_date() -> None:
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == reference.reference()


def test_the_page_is_written_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cli.md"
    assert reference.main([str(path), "--check"]) == 1
    assert reference.main([str(path)]) == 0
    assert reference.main([str(path), "--check"]) == 0
    path.write_text("something else", encoding="utf-8")
    assert reference.main([str(path), "--check"]) == 1
    assert "is not what the commands say" in capsys.readouterr().err
    assert reference.main([]) == errors.UsageError.exit_code


def test_shared_options_name_what_the_configuration_knows() -> None:
    (network,) = [option for option in options.shared_options("--network") if "--network" in option.opts]
    assert isinstance(network, SharedOption)
    assert isinstance(network.type, click.Choice)
    assert tuple(network.type.choices) == config.NETWORKS


def test_every_exit_code_of_the_errors_is_explained() -> None:
    page = reference.reference()
    for kind in errors.MyceliumError.__subclasses__():
        assert f"| {kind.exit_code} | " in page
