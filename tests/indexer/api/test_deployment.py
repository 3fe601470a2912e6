"""The files in `deploy/` fit the program: its commands, its variables, its packages."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from mycelium_cli.root import cli
from mycelium_sdk.config import ConfigWarning, load_configuration

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
UNIT = (DEPLOY / "mycelium-indexer.service").read_text()
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
CONTRACT = "CAC27VKJEPDJJNI36NP7D7VH6WCHT6N5EITKSKPZIQNWA2VPEPBIXJSB"


def parsed(arguments: list[str]) -> click.Context:
    """The command that a command line names, its options understood. Raises UsageError."""
    context = cli.make_context("mycelium", list(arguments))
    while isinstance(context.command, click.Group):
        name, command, rest = context.command.resolve_command(
            context, [*context._protected_args, *context.args]
        )
        assert command is not None
        context = command.make_context(name, rest, parent=context)
    return context


def from_dockerfile(instruction: str) -> list[str]:
    (found,) = re.findall(rf"^{instruction} (\[.*\])$", DOCKERFILE, re.MULTILINE)
    words = yaml.safe_load(found)
    assert isinstance(words, list)
    return words


def command_lines() -> dict[str, list[str]]:
    """Every command line in the files."""
    (started,) = re.findall(r"^ExecStart=(.*)$", UNIT, re.MULTILINE)
    entry = from_dockerfile("ENTRYPOINT")
    lines = {"unit": shlex.split(started), "image": entry + from_dockerfile("CMD")}
    for name in ("api", "ingester"):
        lines[name] = entry + COMPOSE["services"][name]["command"]
    return lines


@pytest.mark.parametrize(("name", "words"), command_lines().items(), ids=command_lines())
def test_every_command_line_is_one(name: str, words: list[str]) -> None:
    assert words[0].endswith("mycelium")
    context = parsed(words[1:])
    assert context.info_name == ("run" if name == "ingester" else "serve")
    assert context.params["log_format"] == "json"


def test_every_variable_is_known_and_valid() -> None:
    """As a user fills them in; an unknown one would be a warning."""
    given = {"POSTGRES_PASSWORD": "p", "MYCELIUM_ANCHOR_ADDRESS": CONTRACT}

    def filled(text: str) -> str:
        return re.sub(r"\$\{(\w+):?[-?]?([^}]*)\}", lambda found: given.get(found[1]) or found[2], text)

    for name in ("api", "ingester"):
        environment = {
            key: filled(str(value)) for key, value in COMPOSE["services"][name]["environment"].items()
        }
        image = dict(re.findall(r"(MYCELIUM_\w+)=(\S+)", DOCKERFILE))
        configuration = load_configuration(start=DEPLOY, env={**image, **environment})
        assert configuration.onchain.network == "testnet"
        assert configuration.memory.anchor_address == CONTRACT
        assert configuration.indexer.database_url == "postgresql://mycelium@database/mycelium"
        assert (configuration.indexer.host, configuration.indexer.port) == ("0.0.0.0", 8080)  # noqa: S104
        assert configuration.indexer.rate_limit is None


def test_an_unknown_variable_would_be_noticed() -> None:
    with pytest.warns(ConfigWarning):
        load_configuration(start=DEPLOY, env={"MYCELIUM_INDEXER_PORTS": "1"})


def test_the_example_has_what_the_composition_asks_for() -> None:
    asked = set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text()))
    offered = set(re.findall(r"^(\w+)=", (DEPLOY / "example.env").read_text(), re.MULTILINE))
    assert asked == offered


def test_the_image_holds_every_package() -> None:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][
        "wheel"
    ]
    folders = {package.partition("/")[0] for package in packages["packages"]}
    copied = set(re.findall(r"^COPY (\w+) \w+$", DOCKERFILE, re.MULTILINE))
    kept = set(re.findall(r"^!(\w+)$", (DEPLOY / "Dockerfile.dockerignore").read_text(), re.MULTILINE))
    assert folders == copied
    assert folders <= kept
