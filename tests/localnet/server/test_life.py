"""How a server begins and ends: the ready line, signals, ports, chain files, and what a restart finds."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest
from stellar_sdk import Keypair, SorobanServer

from mycelium_localnet import Chain
from mycelium_localnet.__main__ import main
from mycelium_localnet.server.listening import listen
from tests.localnet.ledger.test_headers import check_chained
from tests.localnet.server.process import SECONDS, command, serving, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.localnet.server.process import ServerProcess

SOMEBODY = Keypair.from_raw_ed25519_seed(b"somebody".ljust(32, b"."))


def refused(*options: object) -> tuple[int, str]:
    """Exit code and stderr of a server that cannot begin."""
    done = subprocess.run(command(*options), capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert [line.partition(": ")[0] for line in done.stderr.splitlines()] in (["error"], ["error", "hint"])
    return done.returncode, done.stderr


def sequence(server: ServerProcess, address: str) -> int:
    with SorobanServer(server.url) as client:
        return client.load_account(address).sequence


def latest(server: ServerProcess) -> int:
    found: int = server.call("getHealth")["latestLedger"]
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_answers_when_it_says_so_and_ends_when_told(number: int) -> None:
    with serving() as server:
        assert server.call("getHealth")["status"] == "healthy"
        kept = server.connect()
        kept.request("POST", "/rpc", b"[]", {"Content-Type": "application/json"})
        kept.getresponse().read()
        assert server.end(number) == 0
        assert server.complaints() == ""
        assert server.process.stdout is not None
        assert server.process.stdout.read() == ""
        kept.close()
        with pytest.raises(ConnectionRefusedError):
            server.call("getHealth")


def test_the_ready_line_has_the_url() -> None:
    with serving() as server:
        assert server.url == f"http://127.0.0.1:{server.port}/rpc"


def test_what_is_under_way_is_finished_before_it_ends(tmp_path: Path) -> None:
    """A write that waits for another process when the signal comes is done all the same."""
    path = tmp_path / "chain.db"
    with serving("--state", path) as server, Chain.open(path) as chain:
        statuses: list[int] = []
        asking = threading.Thread(target=lambda: statuses.append(server.fund(SOMEBODY.public_key).status))
        with chain._storage.write():
            asking.start()
            wait_for_request(server)
            server.process.send_signal(signal.SIGTERM)
            # It ends only when nothing is under way, so this answer must come before the end.
            until(lambda: not hears(server.port))
        asking.join()
        assert statuses == [200]
        assert server.wait() == 0


def wait_for_request(server: ServerProcess) -> None:
    """Until the server works on what was sent before: it takes requests in the order in which they come."""
    server.call("getHealth")
    server.call("getHealth")


def hears(port: int) -> bool:
    """Whether anybody takes connections."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=SECONDS):
            return True
    except ConnectionRefusedError:
        return False


def test_a_reader_that_goes_away_does_not_end_it() -> None:
    with subprocess.Popen(["true"], stdin=subprocess.PIPE) as gone:
        gone.wait()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with subprocess.Popen(
            [*command()[:-1], str(port)], stdout=gone.stdin, stderr=subprocess.PIPE
        ) as process:
            try:
                until(lambda: answers(port))
                process.send_signal(signal.SIGTERM)
                _out, complaints = process.communicate(timeout=SECONDS)
                assert (process.returncode, complaints) == (0, b"")
            finally:
                process.kill()


def answers(port: int) -> bool:
    """Whether requests are answered. Accepting connections is not enough: that begins before the ready
    line."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status == 405
    except ConnectionRefusedError:
        return False
    finally:
        connection.close()


def test_a_port_in_use_is_an_error_and_makes_no_file(shared: ServerProcess, tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    code, said = refused("--port", shared.port, "--state", path)
    assert code == 1
    assert said.startswith(f"error: port {shared.port} on 127.0.0.1 is in use by another program\nhint: ")
    assert "--port" in said
    assert not path.exists()


def test_a_port_is_free_again_at_once() -> None:
    with serving() as server:
        port = server.port
        server.call("getHealth")
        server.end()
    with serving("--port", port) as server:
        assert server.port == port


def test_localhost_is_every_address_of_it() -> None:
    addresses = {info[4][0] for info in socket.getaddrinfo("localhost", None, type=socket.SOCK_STREAM)}
    with serving("--host", "localhost") as server:
        assert server.url.startswith("http://localhost:")
        for address in addresses:
            with socket.create_connection((str(address), server.port), timeout=SECONDS):
                pass


def test_answers_are_not_held_back() -> None:
    """asyncio turns Nagle's algorithm off only where sockets name their protocol, and with it every answer
    takes 40 ms."""
    for one in listen("127.0.0.1", 0):
        with one:
            assert one.proto == socket.IPPROTO_TCP


def test_all_interfaces() -> None:
    with serving("--host", "0.0.0.0") as server:  # noqa: S104
        assert server.url == f"http://localhost:{server.port}/rpc"
        assert server.call("getHealth")["status"] == "healthy"


@pytest.mark.parametrize(
    ("options", "code", "part"),
    [
        (("--port", 70_000), 2, "not a port"),
        (("--port", -1), 2, "not a port"),
        (("--host", "nowhere.invalid"), 1, "'nowhere.invalid'"),
        (("--host", "203.0.113.7"), 1, "cannot listen on 203.0.113.7"),
        (("--seed", "abc"), 2, "not hexadecimal"),
        (("--seed", "00" * 65), 2, "1 to 64 bytes"),
        (("--seed", ""), 2, "1 to 64 bytes"),
        (("--interval", 0), 2, "every 0 seconds"),
        (("--interval", -5), 2, "every -5 seconds"),
        (("--interval", "nan"), 2, "every nan seconds"),
        (("--interval", "inf"), 2, "every inf seconds"),
    ],
)
def test_options_that_cannot_be(options: tuple[object, ...], code: int, part: str) -> None:
    found, said = refused(*options)
    assert found == code
    assert part in said


def test_arguments_that_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--profile", "moon"], ["--clock", "cuckoo"], ["--port", "http"], ["more"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
    assert "usage: python -m mycelium_localnet" in capsys.readouterr().err


def test_a_state_file_that_is_none(tmp_path: Path) -> None:
    foreign = tmp_path / "letter.txt"
    foreign.write_text("Dear Sir or Madam, this is no database at all." * 100)
    foreign.chmod(0o600)
    assert refused("--state", foreign)[1].startswith(f"error: {foreign} is not a chain file\nhint: ")
    assert foreign.read_text().startswith("Dear Sir")
    foreign.chmod(0o644)
    assert f"chmod 600 {foreign}" in refused("--state", foreign)[1]
    code, said = refused("--state", tmp_path / "nowhere" / "chain.db")
    assert (code, "mkdir -p" in said) == (1, True)
    assert "not a regular file" in refused("--state", tmp_path)[1]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (("--profile", "mainnet"), "profile"),
        (("--clock", "wall"), "clock"),
        (("--seed", "02"), "seed"),
        (("--interval", "2.5"), "interval"),
    ],
)
def test_options_that_the_chain_was_not_made_with(
    tmp_path: Path, options: tuple[str, ...], name: str
) -> None:
    path = tmp_path / "chain.db"
    with Chain.open(path, profile="short-ttl", clock="frozen", seed=b"\x01", interval=7):
        pass
    code, said = refused("--state", path, *options)
    assert code == 1
    assert f"as its {name}\nhint: leave {name} out" in said


def test_an_interval_for_a_chain_without_one(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    with Chain.open(path):
        pass
    assert (
        "'instant' as its closing\nhint: leave interval out" in refused("--state", path, "--interval", 5)[1]
    )


def test_the_options_make_the_chain(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    options = ("--state", path, "--profile", "short-ttl", "--clock", "frozen", "--seed", "c0ffee")
    with serving(*options) as server:
        identity = server.call("getNetwork")
        assert server.call("getLatestLedger")["closeTime"] == "1767225600"
    with Chain.open(path, profile="short-ttl", clock="frozen", seed=b"\xc0\xff\xee") as chain:
        assert chain.chain_id == identity["chainId"]
        assert (chain.profile, chain.settings.max_entry_ttl) == ("short-ttl", 40)


def test_without_a_state_file_every_chain_is_another(tmp_path: Path) -> None:
    with serving() as first, serving() as second:
        assert first.call("getNetwork")["chainId"] != second.call("getNetwork")["chainId"]


def test_a_restart_keeps_the_chain(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    with serving("--state", path) as server:
        server.fund(SOMEBODY.public_key)
        known = server.call("getNetwork")["chainId"], latest(server), sequence(server, SOMEBODY.public_key)
        transaction = server.call("getTransactions", {"startLedger": 2})["transactions"][0]
        assert server.end() == 0
    # Nothing but the file itself is left when the last process has closed it.
    assert [entry.name for entry in tmp_path.iterdir()] == ["chain.db"]
    with serving("--state", path) as server:
        again = server.call("getNetwork")["chainId"], latest(server), sequence(server, SOMEBODY.public_key)
        assert again == known
        assert server.call("getTransactions", {"startLedger": 2})["transactions"] == [transaction]
        other = Keypair.random().public_key
        answer = server.fund(other)
        assert (answer.status, latest(server)) == (200, known[1] + 1)
        assert sequence(server, other) == latest(server) << 32


@pytest.mark.parametrize("clients", [1, 2, 3, 4, 5])
def test_a_killed_server_leaves_whole_ledgers(tmp_path: Path, clients: int) -> None:
    """Killed while clients keep it closing ledgers: whatever was answered is there, in a chained whole."""
    path = tmp_path / "chain.db"
    answered: list[tuple[str, int]] = []
    with serving("--state", path) as server:

        def fund() -> None:
            while True:
                address = Keypair.random().public_key
                try:
                    answered.append((address, server.fund(address).json["ledger"]))
                except (OSError, ValueError, http.client.HTTPException):  # it may be cut off
                    return

        asking = [threading.Thread(target=fund) for _ in range(clients)]
        for one in asking:
            one.start()
        until(lambda: len(answered) >= 3 * clients)
        os.kill(server.process.pid, signal.SIGKILL)
        for one in asking:
            one.join()
        assert server.wait() == -signal.SIGKILL
    with serving("--state", path) as server:
        tip = latest(server)
        for address, ledger in answered:
            assert ledger <= tip
            assert sequence(server, address) == ledger << 32
        assert max(ledger for _, ledger in answered) <= tip <= 1 + len(answered) + clients
        assert server.fund(Keypair.random().public_key).json["ledger"] == tip + 1
        assert server.end() == 0
    with Chain.open(path) as chain, chain.read() as view:
        check_chained(view.ledgers(1, tip + 1))
        assert len(view.transactions((0, 0), 10_000)) == tip


def test_others_are_answered_while_a_write_waits(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    with serving("--state", path) as server, Chain.open(path) as chain:
        asking = [
            threading.Thread(target=server.fund, args=(Keypair.random().public_key,)) for _ in range(10)
        ]
        with chain._storage.write():
            for one in asking:
                one.start()
            wait_for_request(server)
            assert latest(server) == 1
        for one in asking:
            one.join()
        assert latest(server) == 11
