"""`memory import` and `export`, as a person uses them."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mycelium_sdk import canonical
from mycelium_sdk.context import AgentContext
from mycelium_sdk.memory.agent_memory import AgentMemory
from mycelium_sdk.records import Record

if TYPE_CHECKING:
    from mycelium_sdk.wallet import Wallet

    from .conftest import Cli, Process

pytestmark = pytest.mark.usefixtures("wallet")

NOTES = b"# Likes\n\n- tea\n  with milk\n- concise answers\n"


def stored() -> list[tuple[str, list[str], str | None]]:
    """What the memory holds, in the order of arrival."""
    with AgentContext() as context, AgentMemory(context) as memory:
        found = sorted(memory.backend.all_records(), key=lambda one: one.sequence)
        return [(kept.record.content, list(kept.record.tags), kept.session) for kept in found]


def test_import_says_what_it_took_the_file_for_and_what_was_new(cli: Cli) -> None:
    Path("notes.md").write_bytes(NOTES)
    first = cli("memory", "import", "notes.md", "--tag", "notes", "--session", "monday")
    assert (first.code, first.out) == (0, "imported 2 memories\n")
    assert first.err == "note: read as Markdown, since its name ends in .md\n"
    assert stored() == [("tea\nwith milk", ["notes"], "monday"), ("concise answers", ["notes"], "monday")]
    again = cli(
        "memory", "import", "-", "--tag", "notes", "--format", "markdown", stdin=NOTES + b"- tea\n- tea"
    )
    assert (again.code, again.err) == (0, "")
    assert again.out == "imported 1 memory (2 were there already, 1 repeated)\n"


def test_the_result_as_json(cli: Cli) -> None:
    chat = json.dumps([{"role": "user", "content": "x"}, {"role": "user", "content": ""}]).encode()
    outcome = cli("memory", "import", "-", "--json", stdin=chat)
    assert outcome.json == {
        "format": "chat", "imported": 1, "present": 0, "repeated": 0, "skipped": 1, "dropped": 0,
        "dry_run": False,
    }  # fmt: skip
    assert outcome.err == "note: read as a chat, since it is JSON with messages\n"
    assert stored() == [("x", ["user"], None)]


def test_headings_of_a_file_that_is_called_text_are_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "notes.TXT").write_text("# H\n\nc\n")
    outcome = cli("memory", "import", str(tmp_path / "notes.TXT"), "--headings")
    assert outcome.code == 2
    assert "--headings goes with --format markdown, and this is text" in outcome.err
    assert "or say --format markdown" in outcome.err


def test_options_name_the_format_they_go_with(cli: Cli) -> None:
    assert cli("memory", "import", "-", "--lines", stdin=b"a\nb").out == "imported 2 memories\n"
    assert cli("memory", "import", "-", "--headings", stdin=b"# H\nc").code == 0
    assert stored() == [("a", [], None), ("b", [], None), ("c", ["H"], None)]
    for options in (
        ("--lines", "--format", "jsonl"),
        ("--headings", "--format", "text"),
        ("--lines", "--headings"),
        ("--replace", "--format", "jsonl"),
        ("--tag", "x", "--format", "blob"),
        ("--tag", ""),
        ("--session", ""),
    ):
        outcome = cli("memory", "import", "-", *options, stdin=b'{"content":"x"}')
        assert outcome.code == 2, options
    assert len(stored()) == 3


def test_a_dry_run_makes_nothing_not_even_a_wallet(cli: Cli, wallet: Wallet, own_home: Path) -> None:
    outcome = cli("memory", "import", "-", "--dry-run", stdin=b"one\n\ntwo")
    assert (outcome.code, outcome.out) == (0, "would import 2 memories\n")
    assert stored() == []
    Path(".mycelium/wallet.json").unlink()
    assert cli("memory", "import", "-", "--dry-run", stdin=b"one").code == 4
    blob = canonical.encode(wallet.address, [])
    assert cli("memory", "import", "-", stdin=blob).code == 4, "its owner cannot be a new one"
    assert not Path(".mycelium/wallet.json").exists()


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (b'{"content":"a"}\n{"content":"secret"', (), "line 2: it is not valid JSON; nothing was imported"),
        (b"fine\n\ncaf\xe9 secret", (), "line 3: it is not valid UTF-8; nothing was imported"),
        (b"[" * 100_000, (), "the format cannot be told"),
        (b"[" * 100_000, ("--format", "chat"), "nested too deeply; nothing was imported"),
        (bytes(range(128, 256)), (), "not valid UTF-8"),
        (b"\0\0\0\0", (), "line 1: it holds a zero byte"),
        (b"x" * (1024 * 1024 + 1), (), "line 1: the record has 1048577 bytes"),
        (b'{"owner":"secret"}', (), "the blob does not begin with its owner"),
    ],
)
def test_bad_input_is_refused_whole_and_never_quoted(
    cli: Cli, data: bytes, options: tuple[str, ...], message: str
) -> None:
    outcome = cli("memory", "import", "-", *options, stdin=data)
    assert outcome.code == (7 if data.startswith(b'{"owner"') else 2)
    assert outcome.out == ""
    assert message in outcome.err
    assert "secret" not in outcome.err
    assert stored() == []


def test_files_that_cannot_be_read(cli: Cli) -> None:
    assert "cannot read missing: it does not exist" in cli("memory", "import", "missing").err
    Path("folder").mkdir()
    assert cli("memory", "import", "folder").code == 2
    assert cli("memory", "import", "-", stdin=b"").out == "imported 0 memories\n"


def test_export_and_import_give_the_same_memory(
    cli: Cli, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text, session in (("zwei\nZeilen \0", "s"), ("a 😀", None)):
        cli(
            "memory",
            "import",
            "-",
            stdin=json.dumps({"content": text, "tags": ["t"], "session": session}).encode(),
        )
    exported = cli("memory", "export")
    assert (exported.code, exported.err) == (0, "")
    outcome = cli("memory", "export", "out.jsonl")
    assert outcome.out == "exported 2 memories to out.jsonl (jsonl)\n"
    assert Path("out.jsonl").read_text() == exported.out
    assert stat.S_IMODE(Path("out.jsonl").stat().st_mode) == 0o600
    blob = cli("memory", "export", "--format", "blob").out
    monkeypatch.setenv("MYCELIUM_HOME", str(own_home.with_name("second")))
    assert cli("memory", "import", "out.jsonl").out == "imported 2 memories\n"
    assert cli("memory", "export").out == exported.out
    assert cli("memory", "export", "--format", "blob").out == blob
    assert stored() == [("zwei\nZeilen \0", ["t"], "s"), ("a 😀", ["t"], None)]


def test_a_blob_is_added_or_replaces(cli: Cli, wallet: Wallet) -> None:
    blob = canonical.encode(wallet.address, [Record("a", ("t",)), Record("b"), Record("b")])
    cli("memory", "remember", "b")
    cli("memory", "remember", "only here")
    assert cli("memory", "import", "-", stdin=blob).out == "imported 1 memory (1 was there already)\n"
    assert len(stored()) == 3
    replaced = cli("memory", "import", "-", "--replace", stdin=blob)
    assert replaced.out == "imported 0 memories (2 were there already, 1 dropped)\n"
    assert cli("memory", "export", "--format", "blob").out.encode() == blob
    foreign = canonical.encode("GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ", [Record("x")])
    outcome = cli("memory", "import", "-", "--json", stdin=foreign)
    assert (outcome.code, outcome.json["error"]["verdict"]) == (7, "WRONG_OWNER")


def test_an_export_never_overwrites_without_being_told(cli: Cli) -> None:
    cli("memory", "remember", "x")
    Path("mine.md").write_text("precious")
    outcome = cli("memory", "export", "mine.md")
    assert (outcome.code, outcome.out) == (2, "")
    assert "hint: choose another name, or replace it: --force" in outcome.err
    assert Path("mine.md").read_text() == "precious"
    assert cli("memory", "export", "mine.md", "--force").code == 0
    assert Path("mine.md").read_text() == "- x\n"
    assert stat.S_IMODE(Path("mine.md").stat().st_mode) == 0o600
    Path("link").symlink_to("nowhere")
    for name in ("link", ".", "/dev/null", "missing/x.jsonl"):
        assert cli("memory", "export", name).code == 2, name
    assert cli("memory", "export", "/dev/null", "--force").code == 2
    assert sorted(path.name for path in Path().iterdir()) == [".mycelium", "link", "mine.md"]


def test_export_to_a_file_as_json_and_to_stdout_not(cli: Cli) -> None:
    cli("memory", "remember", "x")
    assert cli("memory", "export", "x.json", "--format", "blob", "--json").json == {
        "path": "x.json",
        "format": "blob",
        "records": 1,
    }
    assert cli("memory", "export", "--json").json["error"]["exit_code"] == 2


def test_markdown_says_what_it_cannot_keep(cli: Cli) -> None:
    cli("memory", "remember", "fine", "--tag", "t")
    cli("memory", "import", "-", stdin=b'{"content":" odd\\u001b "}')
    outcome = cli("memory", "export", "--format", "markdown")
    assert outcome.out == '- fine\n  <!-- tags: ["t"] -->\n-  odd\ufffd \n'
    assert outcome.err.startswith("warning: Markdown cannot keep 1 memory exactly")


def test_a_changed_memory_is_not_exported(cli: Cli, own_home: Path) -> None:
    import sqlite3

    cli("memory", "remember", "genuine")
    (path,) = (own_home / "memory").glob("*.db")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE memories SET fragment = replace(fragment, 'genuine', 'altered')")
    connection.close()
    for arguments in ((), ("out.jsonl",), ("--format", "blob")):
        outcome = cli("memory", "export", *arguments)
        assert (outcome.code, outcome.out) == (7, "")
    assert not Path("out.jsonl").exists()


def test_a_reader_that_goes_away_ends_the_export_quietly(cli: Cli, process: Process) -> None:
    cli("memory", "import", "-", "--lines", stdin=b"".join(b"memory %d\n" % number for number in range(5000)))
    with process("memory", "export") as started:
        assert started.stdout is not None
        assert json.loads(started.stdout.readline())["content"] == "memory 0"
        started.stdout.close()
        _, err = started.communicate(timeout=60)
    assert (started.returncode, err) == (0, b"")


def test_a_disk_that_is_full_leaves_no_file(cli: Cli, ended: Any) -> None:
    cli("memory", "remember", "x")
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        outcome = ended("memory", "export", stdout=full)
    assert outcome.code == 1
    assert "error: the result cannot be written" in outcome.err


def test_memories_go_from_process_to_process(cli: Cli, process: Process, own_home: Path) -> None:
    cli("memory", "remember", "carried over", "--session", "s")
    second = {"MYCELIUM_HOME": str(own_home.with_name("second"))}
    with (
        process("memory", "export") as giving,
        process(
            "memory", "import", "-", env=second, stdin=giving.stdout, stderr=subprocess.DEVNULL
        ) as taking,
    ):
        assert giving.stdout is not None
        giving.stdout.close()
        out, _ = taking.communicate(timeout=60)
        giving.wait(timeout=60)
    assert (giving.returncode, taking.returncode, out) == (0, 0, b"imported 1 memory\n")


def test_an_export_replaces_no_file_of_the_memory(cli: Cli, own_home: Path) -> None:
    cli("memory", "import", "-", stdin=b"one")
    (database,) = (own_home / "memory").glob("*.db")
    for file in (Path(".mycelium/wallet.json"), database):
        before = file.read_bytes()
        outcome = cli("memory", "export", str(file), "--force")
        assert (outcome.code, outcome.out) == (2, "")
        assert "belongs to the memory itself" in outcome.err
        assert file.read_bytes() == before
    assert stored() == [("one", [], None)]


def test_what_is_genuine_is_rescued_from_a_memory_that_was_edited(
    cli: Cli, wallet: Wallet, own_home: Path
) -> None:
    for text in ("genuine one", "edited one", "genuine two"):
        cli("memory", "remember", text)
    file = own_home / "memory" / f"{wallet.address}.db"
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as editor:
        editor.execute("UPDATE memories SET fragment = replace(fragment, 'edited', 'forged')")
    refused = cli("memory", "export", "all.jsonl")
    assert refused.code == 7
    assert "`mycelium memory export rescued.jsonl --genuine`" in refused.err
    done = cli("memory", "export", "rescued.jsonl", "--genuine")
    assert (done.code, done.out) == (0, "exported 2 memories to rescued.jsonl (jsonl)\n")
    assert done.err == "warning: left out 1 memory, changed behind the memory's back\n"
    lines = Path("rescued.jsonl").read_text().splitlines()
    assert [json.loads(line)["content"] for line in lines] == ["genuine one", "genuine two"]
    assert cli("memory", "export", "x.json", "--genuine", "--format", "blob").code == 2


def test_a_lost_memory_does_not_replace_its_backup(cli: Cli, own_home: Path) -> None:
    for text in ("one", "two"):
        cli("memory", "remember", text)
    assert cli("memory", "anchor").code == 0
    fine = cli("memory", "export", "backup.jsonl")
    assert (fine.code, fine.err) == (0, "")
    backup = Path("backup.jsonl").read_bytes()
    for file in (own_home / "memory").glob("*.db*"):
        file.unlink()
    for kind in ("jsonl", "blob"):
        refused = cli("memory", "export", "backup.jsonl", "--force", "--format", kind)
        assert (refused.code, refused.out) == (2, "")
        assert "warning: the memory is older than its anchor: its file was lost" in refused.err
        assert "error: there are no memories to export, so backup.jsonl was not replaced" in refused.err
        assert "`mycelium memory rehydrate`" in refused.err
        assert Path("backup.jsonl").read_bytes() == backup
    assert sorted(path.name for path in Path().iterdir()) == [".mycelium", "backup.jsonl"]
    elsewhere = cli("memory", "export", "empty.jsonl")
    assert (elsewhere.code, elsewhere.out) == (0, "exported 0 memories to empty.jsonl (jsonl)\n")
    assert "older than its anchor" in elsewhere.err
    assert cli("memory", "export", "empty.jsonl", "--force").code == 0, "nothing is lost"
    assert cli("memory", "rehydrate").code == 0
    again = cli("memory", "export", "backup.jsonl", "--force")
    assert (again.code, again.err) == (0, "")


def test_a_memory_that_was_emptied_may_replace_its_backup(cli: Cli) -> None:
    cli("memory", "remember", "one")
    assert cli("memory", "anchor").code == 0
    cli("memory", "export", "backup.jsonl")
    assert cli("memory", "forget", "1", "--yes").code == 0
    outcome = cli("memory", "export", "backup.jsonl", "--force")
    assert (outcome.code, outcome.err, Path("backup.jsonl").read_bytes()) == (0, "", b"")


def test_what_is_not_genuine_leaves_the_backup(cli: Cli, own_home: Path) -> None:
    cli("memory", "remember", "genuine")
    cli("memory", "export", "backup.jsonl")
    backup = Path("backup.jsonl").read_bytes()
    (path,) = (own_home / "memory").glob("*.db")
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE memories SET fragment = replace(fragment, 'genuine', 'altered')")
    outcome = cli("memory", "export", "backup.jsonl", "--force", "--genuine")
    assert (outcome.code, Path("backup.jsonl").read_bytes()) == (2, backup)
