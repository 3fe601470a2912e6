"""The nine edits of the package `agent-memory-integrity`, made to a memory anchored on the local chain.

Its adapter interface is implemented over the public API; the edits are raw SQL on the memory file, by one
who can read and write every byte of it and has neither the home folder nor the chain. For each edit the
table says which checks notice it: `recall` while the agent works, `check` of the file's own seals, and
`verify` against the anchor.
"""

# ruff: noqa: S608 - edits are SQL put together

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from agmi.adapters.base import MemoryAdapter  # type: ignore[import-untyped]
from agmi.adapters.base import Record as RawRecord
from agmi.attacks.at_rest import AT_REST_ATTACKS_WITH_SNAPSHOT  # type: ignore[import-untyped]

from mycelium_sdk.config import load_configuration
from mycelium_sdk.context import AgentContext
from mycelium_sdk.errors import VerificationError
from mycelium_sdk.memory import AgentMemory
from mycelium_sdk.wallet import Wallet

if TYPE_CHECKING:
    from pathlib import Path

PASSPHRASE = "correct horse"
COLUMNS = ("id", "key", "identity", "copies", "session", "time", "mac", "fragment")

NOTICED = {
    "tamper": {"recall", "check", "verify"},
    "truncate": {"check", "verify"},
    "delete_middle": {"check", "verify"},
    "reorder": {"recall", "check"},
    "forge": {"recall", "check", "verify"},
    "cross_replay": {"recall", "check", "verify"},
    "rollback_replay": {"recall", "check", "verify"},
    "metadata_tamper": {"recall", "check"},
    "snapshot_rollback": {"verify"},
}
"""What notices each edit. A row that is gone is not there to be recalled; the set of texts, which is what the
anchor commits to, is the same after a swap and says nothing of times; an old copy of the whole file is as
genuine as it was then."""


class Adapter(MemoryAdapter):  # type: ignore[misc]  # the package has no types
    """A memory of five records, and another owner's, each in a file of its own."""

    name = "mycelium"
    detection_point = "read"
    supports_replay = True
    supports_metadata = True
    supports_snapshot = True

    def __init__(self, folder: Path, wallet: Wallet, other: Wallet) -> None:
        self._folder = folder
        self._owners = (wallet, other)
        self.noticed: set[str] = set()

    def setup(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(mode=0o700)

    def teardown(self) -> None:
        shutil.rmtree(self._folder)

    # -- through the API

    def _context(self, wallet: Wallet) -> AgentContext:
        configuration = load_configuration(
            start=self._folder,
            env={"MYCELIUM_HOME": str(self._folder / "home")},
            overrides={"wallet.path": str(wallet.path)},
        )
        return AgentContext(configuration=configuration, passphrase=PASSPHRASE)

    def _memory(self, context: AgentContext) -> AgentMemory:
        files = self._folder / "files"
        files.mkdir(mode=0o700, exist_ok=True)
        return AgentMemory(context, backend_kwargs={"path": files / f"{context.address}.db"})

    def _write(self, wallet: Wallet, texts: list[str]) -> None:
        with self._context(wallet) as context, self._memory(context) as memory:
            for text in texts:
                memory.remember(text, tags=["seed"], session="first")
            memory.anchor()

    def seed(self, n: int) -> None:
        self._write(self._owners[0], [f"the user said number {place} first" for place in range(n)])

    def seed_other(self, n: int) -> None:
        self._write(self._owners[1], [f"somebody else said number {place}" for place in range(n)])

    def append_genuine(self) -> None:
        self._write(self._owners[0], ["the newest that the user said"])

    def reload(self) -> None:
        """Nothing is kept open."""

    def verify(self) -> bool:
        self.noticed = set()
        reasons = []
        with self._context(self._owners[0]) as context, self._memory(context) as memory:
            try:
                memory.recall("what the user and somebody else said first, number", k=50)
            except VerificationError as error:
                self.noticed.add("recall")
                reasons.append(f"{type(error).__name__}: {error}")
            report = memory.backend.check()
            if not report:
                self.noticed.add("check")
                reasons.extend(report.findings)
            if not _in_sync(memory):
                self.noticed.add("verify")
        self.verify_detail = "; ".join(reasons)
        return not self.noticed

    # -- behind its back

    def _path(self, wallet: Wallet) -> Path:
        return self._folder / "files" / f"{wallet.address}.db"

    def _rows(self, wallet: Wallet) -> list[RawRecord]:
        with closing(sqlite3.connect(self._path(wallet))) as connection:
            rows = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM memories ORDER BY id").fetchall()
        return [
            RawRecord(place, {**dict(zip(COLUMNS, row, strict=True)), "owner": wallet.address})
            for place, row in enumerate(rows)
        ]

    def _edit(self, sql: str, *parameters: object) -> None:
        with closing(sqlite3.connect(self._path(self._owners[0]), isolation_level=None)) as connection:
            assert connection.execute(sql, parameters).rowcount == 1

    def _ids(self) -> list[int]:
        return [record.fields["id"] for record in self.read_all_raw()]

    def read_all_raw(self) -> list[RawRecord]:
        return self._rows(self._owners[0])

    def read_other_raw(self) -> list[RawRecord]:
        return self._rows(self._owners[1])

    def write_raw(self, record: RawRecord) -> None:
        ids, fields = self._ids(), record.fields
        if record.seq >= len(ids):
            values = [fields[column] for column in COLUMNS]
            self._edit(f"INSERT INTO memories({', '.join(COLUMNS)}) VALUES ({', '.join('?' * 8)})", *values)
        else:
            self._replace(
                ids[record.seq], fields, ("identity", "copies", "session", "time", "mac", "fragment")
            )

    def _replace(self, number: int, fields: dict[str, Any], columns: tuple[str, ...]) -> None:
        settings = ", ".join(f"{column} = ?" for column in columns)
        self._edit(f"UPDATE memories SET {settings} WHERE id = ?", *(fields[c] for c in columns), number)
        # The row goes to the place where its new text belongs, if that is free.
        with closing(sqlite3.connect(self._path(self._owners[0]), isolation_level=None)) as connection:
            connection.execute("UPDATE OR IGNORE memories SET key = ? WHERE id = ?", (fields["key"], number))

    def delete_raw(self, seq: int) -> None:
        self._edit("DELETE FROM memories WHERE id = ?", self._ids()[seq])

    def mutate_payload(self, record: RawRecord) -> RawRecord:
        for column in ("fragment", "key"):
            kind = type(record.fields[column])
            old, new = ("said", "SAID") if kind is str else (b"said", b"SAID")
            record.fields[column] = record.fields[column].replace(old, new)
        return record

    def forge_record(self, template: RawRecord) -> RawRecord:
        fields = {**template.fields, "id": template.fields["id"] + 1}
        return self.mutate_payload(RawRecord(template.seq + 1, fields))

    def replay_onto(self, victim_seq: int, donor: RawRecord) -> None:
        self._replace(self._ids()[victim_seq], donor.fields, ("identity", "copies", "mac", "fragment"))

    def read_meta(self, seq: int) -> dict[str, Any]:
        fields = self.read_all_raw()[seq].fields
        return {"session": fields["session"], "time": fields["time"]}

    def write_meta(self, seq: int, meta: dict[str, Any]) -> None:
        assert meta.pop("agmi_meta_tampered")
        self._edit("UPDATE memories SET session = 'another' WHERE id = ?", self._ids()[seq])

    def snapshot_store(self) -> object:
        return self._copy_store(self._folder / "files")

    def restore_store(self, token: object) -> None:
        self._restore_store(token, self._folder / "files")

    # -- what the harness compares

    def identity_of(self, record: RawRecord) -> str:
        return f"{record.fields['owner']}/{record.fields['id']}"

    def payload_of(self, record: RawRecord) -> str:
        return json.dumps(json.loads(record.fields["fragment"]), sort_keys=True)

    def owner_of(self, record: RawRecord) -> str:
        return str(record.fields["owner"])


def _in_sync(memory: AgentMemory) -> bool:
    try:
        return bool(memory.verify())
    except VerificationError:
        return False


@pytest.fixture(scope="module")
def wallets(tmp_path_factory: pytest.TempPathFactory) -> tuple[Wallet, Wallet]:
    folder = tmp_path_factory.mktemp("wallets")
    one, other = (Wallet.create(folder / name / "wallet.json", PASSPHRASE) for name in ("one", "other"))
    return one, other


@pytest.fixture
def adapter(tmp_path: Path, wallets: tuple[Wallet, Wallet]) -> Adapter:
    return Adapter(tmp_path / "world", *wallets)


@pytest.mark.parametrize("attack", AT_REST_ATTACKS_WITH_SNAPSHOT, ids=lambda attack: attack.name)
def test_every_edit_is_noticed(adapter: Adapter, attack: type[Any]) -> None:
    result = attack().run(adapter)
    assert (result.error, result.guard) == (None, None)
    assert result.status == "safe"
    assert NOTICED[attack.name] <= adapter.noticed


def test_the_table_names_all_nine() -> None:
    assert {attack.name for attack in AT_REST_ATTACKS_WITH_SNAPSHOT} == NOTICED.keys()
    assert len(NOTICED) == 9
