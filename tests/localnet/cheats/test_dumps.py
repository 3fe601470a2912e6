"""The whole chain as one file: complete, the same for the same chain, and refused when anything is wrong."""

from __future__ import annotations

import json
import lzma
import stat
import subprocess
import sys
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stellar_sdk import scval

from mycelium_localnet import IN_PROCESS_URL, Chain, Dispatcher, InProcessClient, errors
from mycelium_localnet.cheats.dumps import _TABLES, VERSION
from mycelium_localnet.rpc.limits import MAXIMUM_BODY, MAXIMUM_LOAD, fits
from mycelium_localnet.schema import pack_list
from tests.localnet.cheats.conftest import live, seen
from tests.localnet.ledger.lab import Lab, create, keypair
from tests.localnet.ledger.test_headers import check_chained
from tests.localnet.server.process import serving

if TYPE_CHECKING:
    from pathlib import Path


def pages(chain: Chain, method: str, params: dict[str, Any], items: str) -> list[Any]:
    """All pages of a method, followed by their cursors."""
    dispatcher = Dispatcher(chain)
    found: list[Any] = []
    while True:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        result = json.loads(dispatcher.handle(json.dumps(body).encode()) or b"")["result"]
        if not result[items]:
            return found
        found += result[items]
        params = {"pagination": {"cursor": result["cursor"], "limit": 3}}


def test_every_table_is_in_it_or_left_out_on_purpose(lab: Lab) -> None:
    with lab.chain._storage.read() as connection:
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        tables = {name for (name,) in connection.execute(query)}
        for table, (select, insert) in _TABLES.items():
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            assert all(column in select and column in insert for column in columns if column != "position")
    assert tables == set(_TABLES) | {"snapshots", "faults"}


_LOADER = """
import sys
from mycelium_localnet import Chain

with Chain.open(sys.argv[1]) as chain:
    chain.load(sys.argv[2])
    chain.fund(sys.argv[3])
    with chain.read() as view:
        print(view.latest().hash.hex())
"""


def test_another_process_goes_on_where_this_one_stood(lab: Lab, tmp_path: Path) -> None:
    live(lab)
    lab.chain.set_time(lab.chain.freeze_time() + 1234)
    file = tmp_path / "chain.dump"
    later, whole = keypair("later").public_key, lab.chain.dump(file)
    assert file.read_bytes() == whole
    done = subprocess.run(
        [sys.executable, "-c", _LOADER, str(tmp_path / "other.db"), str(file), later],
        capture_output=True, check=True, text=True,
    )  # fmt: skip
    lab.chain.fund(later)
    assert done.stdout.strip() == lab.latest().hash.hex()


def test_everything_is_in_it(lab: Lab, wasm: bytes) -> None:
    live(lab)
    lab.chain.set_interval(closing="manual")
    pending = lab.build(keypair("alice"), create("late"))
    lab.submit(pending)
    filters = {"startLedger": 2, "pagination": {"limit": 3}}
    with Chain.open(":memory:", passphrase="Another one", closing="instant") as chain:
        assert chain.load(lab.chain.dump()) == lab.latest().sequence
        for name in ("passphrase", "network_id", "chain_id", "profile", "friendbot"):
            assert getattr(chain, name) == getattr(lab.chain, name)
        assert chain.settings.max_entry_ttl == 40
        assert seen(chain) == seen(lab.chain)
        assert chain.freeze_time() == lab.chain.freeze_time()
        for method, items in (
            ("getEvents", "events"),
            ("getTransactions", "transactions"),
            ("getLedgers", "ledgers"),
        ):
            assert pages(chain, method, filters, items) == pages(lab.chain, method, filters, items) != []
        other = Lab(chain, wasm, lab.contract_id)
        with chain.read() as view:
            assert view.is_pending(pending.hash())
        for one in (lab, other):
            one.chain.close_ledger()
            one.chain.set_interval()
            live(one, 3)
        assert other.latest().hash == lab.latest().hash
        assert chain.dump() == lab.chain.dump()
        check_chained(other.ledgers())


def test_the_same_calls_give_the_same_dump(wasm: bytes) -> None:
    dumps = []
    for _ in range(2):
        with Chain.open(":memory:", seed=b"same", clock="frozen", profile="short-ttl") as chain:
            lab = Lab(chain, wasm)
            lab.deploy(lab.account("alice"))
            live(lab)
            dumps.append(chain.dump())
    assert dumps[0] == dumps[1]


def test_a_dump_changes_nothing_and_its_load_neither(lab: Lab) -> None:
    live(lab)
    first = lab.chain.dump()
    assert lab.chain.dump() == first
    lab.chain.load(first)
    assert lab.chain.dump() == first


def test_an_interval_is_in_it_and_begins_anew() -> None:
    with Chain.open(":memory:", interval=3600) as chain, Chain.open(":memory:") as other:
        other.load(chain.dump())
        wait = other.close_due_ledger()
        assert wait is not None
        assert 3590 < wait <= 3600
        assert other.dump() == chain.dump()


def test_snapshots_and_faults_are_gone_after_a_load(lab: Lab) -> None:
    whole = lab.chain.dump()
    snapshot = lab.chain.snapshot()
    lab.chain.fault("drop")
    lab.chain.load(whole)
    assert lab.chain.faults() == ()
    with pytest.raises(errors.InvalidRequestError):
        lab.chain.revert(snapshot)


def test_the_older_states_are_in_it(lab: Lab) -> None:
    lab.put(keypair("alice"), 1, 5)
    lab.put(keypair("alice"), 1, 6)
    with Chain.open(":memory:") as chain:
        chain.load(lab.chain.dump())
        chain.fault("stale", ledgers=1, count=1)
        with chain.serving("getLedgerEntries").read() as view:
            old = view.entry(lab.data_key(1).to_xdr_bytes())
        with lab.chain.read() as view:
            new = view.entry(lab.data_key(1).to_xdr_bytes())
    assert old is not None
    assert new is not None
    assert scval.to_uint64(5).to_xdr_bytes() in old[0]
    assert scval.to_uint64(6).to_xdr_bytes() in new[0]


def test_the_file_is_private_and_replaced_as_a_whole(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "chain.dump"
    file.write_text("what was there")
    file.chmod(0o644)
    lab.chain.dump(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]
    with pytest.raises(errors.DumpError, match="cannot be written"):
        lab.chain.dump(tmp_path / "missing" / "chain.dump")
    with pytest.raises(errors.DumpError, match="cannot be read"):
        lab.chain.load(tmp_path / "missing.dump")


def refused(chain: Chain, data: bytes, match: str) -> None:
    """The dump is refused with a hint, and nothing changes, not even what no dump holds."""
    snapshot = chain.snapshot()
    chain.fault("slow")
    before, faults = chain.dump(), chain.faults()
    with pytest.raises(errors.DumpError, match=match) as caught:
        chain.load(data)
    assert caught.value.hint
    assert (chain.dump(), chain.faults()) == (before, faults)
    chain.clear_faults()
    chain.revert(snapshot)
    assert chain.dump() == before


def forge(content: bytes) -> bytes:
    """A dump whose head fits its content."""
    name = sha256(content).hexdigest().encode()
    return b"mycelium-localnet dump %d\n%s\n" % (VERSION, name) + lzma.compress(content)


def content_of(data: bytes) -> bytes:
    return lzma.decompress(data.split(b"\n", 2)[2])


def row(*values: bytes) -> bytes:
    packed = pack_list(values)
    return len(packed).to_bytes(4, "big") + packed


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "not a dump"),
        (b"SQLite format 3\0", "not a dump"),
        (b'{"accounts": {}}', "not a dump"),
        (b"mycelium-localnet dump one\n", "not a dump"),
        (b"mycelium-localnet dump %d\n" % (VERSION + 1), "later version"),
        (b"mycelium-localnet dump %d\n" % VERSION, "head"),
        (b"mycelium-localnet dump 0\n", "head"),
        (b"mycelium-localnet dump %d\n%s\n" % (VERSION, b"0" * 64), "cannot be read"),
        (b"mycelium-localnet dump %d\n%s\nnonsense" % (VERSION, b"0" * 64), "cannot be read"),
    ],
)
def test_what_is_no_dump_of_ours_is_refused(lab: Lab, data: bytes, match: str) -> None:
    refused(lab.chain, data, match)


def test_a_forged_content_is_refused(lab: Lab) -> None:
    good = content_of(lab.chain.dump())
    other = Chain.open(":memory:")
    others = content_of(other.dump())
    other.close()
    lab.chain.load(forge(good))
    settings_end = good.index(b"entries") - 8  # the first row behind the settings
    for content in (
        b"",
        good[:-1],
        good + b"\0",
        good + row(b"settings", b"tclosing", b"tmanual"),  # twice
        good + row(b"snapshots", b"i1", b"i1", b"t", b"b"),
        good + row(b"settings", b"tname"),
        good + row(b"settings", b"tname", b"x"),
        good + row(b"settings", b"tname", b"nothing"),
        good + row(b"settings", b"tname", b"n"),
        good + row(b"ledgers", b"i%d" % 2**70, b"b", b"i0", b"b", b"n"),
        good + row(b"ledgers", b"i999", b"b", b"i0", b"bshort", b"n"),
        good[settings_end:],
        others[: others.index(b"entries") - 8] + good[settings_end:].replace(b"ledgers", b"faults!"),
        good.replace(b"tshort-ttl", b"tweird-ttl"),
        good[4:],
    ):
        assert content != good
        refused(lab.chain, forge(content), "damaged")


def test_a_content_that_is_another_ones_is_refused(lab: Lab) -> None:
    head, _, rest = lab.chain.dump().split(b"\n", 2)
    refused(lab.chain, b"\n".join((head, sha256(b"").hexdigest().encode(), rest)), "checksum")


def test_more_than_one_stream_and_a_bomb_are_refused(lab: Lab) -> None:
    good = lab.chain.dump()
    refused(lab.chain, good + lzma.compress(b"more"), "cannot be read")
    zeros = bytes(1 << 24)
    refused(lab.chain, forge(zeros), "damaged")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_flipped_bit_or_a_lost_end_is_noticed(
    small_dump: bytes, target: Chain, data: st.DataObject
) -> None:
    before = target.dump()
    at = data.draw(st.integers(0, len(small_dump) - 1))
    if data.draw(st.booleans()):
        broken = bytearray(small_dump)
        broken[at] ^= 1 << data.draw(st.integers(0, 7))
        damaged = bytes(broken)
    else:
        damaged = small_dump[:at]
    with pytest.raises(errors.DumpError):
        target.load(damaged)
    assert target.dump() == before


@pytest.fixture
def target() -> Any:
    with Chain.open(":memory:", seed=b"target") as chain:
        yield chain


@pytest.fixture(scope="module")
def small_dump() -> bytes:
    with Chain.open(":memory:", seed=b"small", clock="frozen") as chain:
        chain.accounts()
        return chain.dump()


def test_a_large_dump_is_loaded_through_every_door(wasm: bytes, tmp_path: Path) -> None:
    with Chain.open(":memory:", clock="frozen", seed=b"large") as large:
        lab, alice = Lab(large, wasm), keypair("alice")
        lab.deploy(lab.account("alice"))
        for number in range(9):
            noise = b"".join(sha256(b"%d %d" % (number, part)).digest() for part in range(1_900))
            lab.invoke(alice, "put_bytes", scval.to_uint32(number), scval.to_bytes(noise))
        chain_id, settings = large.chain_id, large.settings
        client = InProcessClient(large)
        dump = client.post(IN_PROCESS_URL, json_data=call("localnet_dump")).json()["result"]["dump"]
        assert len(dump) > MAXIMUM_BODY
        load = call("localnet_load", dump=dump)
        expected = {"latestLedger": lab.latest().sequence, "chainId": chain_id}
    with Chain.open(tmp_path / "chain.db", profile="mainnet") as chain:
        inside = InProcessClient(chain)
        assert inside.post(IN_PROCESS_URL, json_data=load).json()["result"] == expected
        assert (chain.chain_id, chain.profile) == (chain_id, "testnet")
        assert chain.settings.min_persistent_entry_ttl == settings.min_persistent_entry_ttl
        # Others have no more room than before, whatever they are named.
        other = {**call("getHealth", dump=dump), "id": "localnet_load"}
        assert inside.post(IN_PROCESS_URL, json_data=other).status_code == 413
    with serving() as server:
        assert server.post(load).json["result"] == expected
        assert server.call("getNetwork")["chainId"] == chain_id
        assert server.post(other).status == 413


def call(method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def test_even_a_load_has_an_end() -> None:
    body = json.dumps(call("localnet_load", dump="")).encode()
    assert fits(body.ljust(MAXIMUM_LOAD))
    assert not fits(body.ljust(MAXIMUM_LOAD + 1))
    assert not fits((b"[" + body + b"]").ljust(MAXIMUM_BODY + 1))
    assert not fits(b'"localnet_load"'.ljust(MAXIMUM_BODY + 1))
    assert fits(b"nonsense")
