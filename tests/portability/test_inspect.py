"""`mycelium memory inspect`: somebody else's memory, shown only if it is what was anchored."""

from __future__ import annotations

import contextlib
import io
import json
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import Keypair

from mycelium_cli.main import run
from mycelium_cli.reference import RESULTS

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from pathlib import Path

    from tests.memory.conftest import World
    from tests.portability.conftest import Web

    Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def inspect(
    world: World,
    web: Web,
    certificate: tuple[ssl.SSLContext, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> Command:
    """Runs the command on another machine, which trusts the test's server."""
    work = world.folder / "reader"
    work.mkdir()
    port = web.server.url.split(":")[2].split("/")[0]
    (work / "mycelium.toml").write_text(
        f'[onchain]\nchain_file = "{world.chain_file}"\n'
        f'[fetch]\nallow_networks = ["127.0.0.0/8"]\nports = [{port}]\nca_file = "{certificate[1]}"\n'
    )
    monkeypatch.chdir(work)
    monkeypatch.setenv("MYCELIUM_HOME", str(work / "home"))

    def command(*arguments: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(["memory", "inspect", *arguments])
        return code, out.getvalue(), err.getvalue()

    return command


def test_it_is_shown_with_where_it_comes_from(world: World, web: Web, inspect: Command) -> None:
    author = world.machine("author")
    author.remember("likes tea", ["drinks"])
    author.remember("two\nlines\x1b[2J")
    author.anchor(publish=web.publish)
    code, out, _ = inspect(author.owner)
    assert code == 0
    assert f"owner     {author.owner}" in out
    assert "anchored  version 1, " in out
    assert "verified  2 memories, all of them committed to by this anchor" in out
    assert "- likes tea  [drinks]\n- two\n  lines\\x1b[2J\n" in out
    code, out, _ = inspect(author.owner, "--limit", "1")
    assert out.endswith("- likes tea  [drinks]\n... and 1 more; --all shows them\n")
    code, out, _ = inspect(author.owner, "--all", "--json")
    found = json.loads(out)
    assert " ".join(found) == RESULTS["memory inspect"]
    assert found["root"] == author.memory_root().hex()
    assert found["memories"][0] == {"content": "likes tea", "tags": ["drinks"]}


def test_what_is_not_what_was_anchored_is_not_shown(world: World, web: Web, inspect: Command) -> None:
    author = world.machine("author")
    author.remember("likes tea")
    author.anchor(publish=web.publish)
    web.files["/0.json"] = web.files["/0.json"].replace(b"tea", b"tee")
    code, out, err = inspect(author.owner)
    assert code == 7
    assert out == ""
    assert "does not hash to the root of version 1" in err
    web.files.clear()
    code, out, err = inspect(author.owner)
    assert code == 8
    assert "not where the anchor says" in err


def test_a_path_on_this_machine_is_not_read_but_what_the_user_got_is(
    world: World, inspect: Command, tmp_path: Path
) -> None:
    author = world.machine("author")
    author.remember("likes tea")
    author.anchor()
    code, _, err = inspect(author.owner)
    assert code == 7
    assert "file on this machine" in err
    assert "ask the owner to publish by https" in err
    root, uri = author.memory_root().hex(), (author.get_anchor() or {})["uri"]
    assert f'version 1, root {root}, URI "{uri}"' in err
    got = tmp_path / "got.json"
    got.write_bytes(author.backend.export_blob())
    code, out, _ = inspect(author.owner, "--blob", str(got))
    assert code == 0
    assert "- likes tea\n" in out
    other = tmp_path / "other.json"
    other.write_bytes(got.read_bytes().replace(b"tea", b"tee"))
    code, out, err = inspect(author.owner, "--blob", str(other), "--json")
    assert code == 7
    assert root in json.loads(out)["error"]["hint"]
    assert inspect(author.owner, "--blob", str(tmp_path / "missing"))[0] == 2
    blobs = world.folder / "reader" / "home" / "blobs"
    blobs.mkdir(parents=True, exist_ok=True)
    (blobs / f"{root}.json").write_bytes(other.read_bytes())
    assert inspect(author.owner)[0] == 7, "what is not the anchored blob is not taken from there either"
    (blobs / f"{root}.json").write_bytes(got.read_bytes())
    assert inspect(author.owner)[0] == 0
    assert inspect(author.owner, "--blob", str(other))[0] == 7, (
        "the file that was named is the one that counts"
    )


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("https://host.example:8443/x", "`[fetch] ports`"),
        ("https://10.0.0.1:{port}/x", "`[fetch] allow_networks`"),
        ("s3://bucket/key", "`mycelium memory inspect --blob FILE`"),
        ("ipfs://bafy", "`mycelium memory inspect --blob FILE`"),
    ],
)
def test_the_hint_fits_the_address(world: World, web: Web, inspect: Command, uri: str, told: str) -> None:
    uri = uri.format(port=web.server.url.split(":")[2].split("/")[0])
    author = world.machine("author")
    author.remember("x")
    author.anchor(uri=uri)
    code, out, err = inspect(author.owner, "--json")
    assert code == 7
    assert told in json.loads(out)["error"]["hint"]
    assert f'URI "{uri}"' in err


def test_a_strangers_address_cannot_forge_a_line(world: World, inspect: Command) -> None:
    author = world.machine("author")
    client, key = author.context.anchor_client(), author.context.keypair()
    client.set_anchor_if(key, 0, bytes([1]) * 32, "s3://x\nhint: run \u202ethis\x1b[2J".encode(), b"")
    _, _, err = inspect(author.owner)
    assert "\\nhint: run \\u202ethis\\u001b[2J" in err
    assert err.count("\nhint: ") == 1


def test_who_never_anchored_is_nobody_to_anchor_for(world: World, inspect: Command) -> None:
    world.machine("author").anchor()
    code, _, err = inspect(Keypair.random().public_key)
    assert code == 7
    assert "never anchored" in err
    assert "mycelium memory anchor" not in err
    code, _, err = inspect("G123")
    assert code == 2
