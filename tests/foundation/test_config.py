"""The configuration: where it is found, what overrides what, and how mistakes are named."""

from __future__ import annotations

import dataclasses
import operator
import warnings
from pathlib import Path
from typing import Any

import pytest

from mycelium_sdk import config
from mycelium_sdk.config import (
    ConfigWarning,
    Fetch,
    Indexer,
    MemorySettings,
    Onchain,
    Tiered,
    load_configuration,
)
from mycelium_sdk.errors import ConfigError, UsageError

CONTRACT = "CDFXP42NITRLDGYUMJ5OT63EVWBROJTCXQR64GUSDWHY2LH3AQM2TXYP"
ACCOUNT = "GBRPYHIL2CI3FNQ4BXLFMNDLFJUNPU2HY3ZMFSHONUCEOASW7QC7OX2H"


def _write(folder: Path, text: str) -> Path:
    file = folder / "mycelium.toml"
    file.write_text(text, "utf-8")
    return file


def test_without_anything_the_defaults_hold(tmp_path: Path) -> None:
    found = load_configuration(tmp_path, {"HOME": "x"})
    assert (found.onchain, found.memory, found.indexer, found.fetch) == (
        Onchain(),
        MemorySettings(),
        Indexer(),
        Fetch(),
    )
    assert (found.onchain.network, found.memory.backend) == ("local", "auto")
    assert (found.folder, found.file) == (tmp_path, None)
    assert found.wallet.path == tmp_path / ".mycelium" / "wallet.json"


def test_every_key_of_the_file(tmp_path: Path) -> None:
    _write(
        tmp_path,
        f"""
        [project]
        name = "bot"
        version = "1.0"
        [onchain]
        network = "standalone"
        rpc_url = "http://127.0.0.1:8000/rpc"
        cross_check = ["https://a.org", "https://b.org"]
        network_passphrase = "Our Network ; 2026"
        chain_file = "chain.db"
        max_fee = 5000000
        [wallet]
        path = "keys/wallet.json"
        [memory]
        anchor_address = "{CONTRACT}"
        backend = "tiered"
        publish = "blobs/"
        dsn = "postgresql://localhost/memory"
        embedder = "minilm"
        [memory.tiered]
        primary = "local"
        secondary = "supermemory"
        [indexer]
        url = "https://indexer.example.org"
        database_url = "sqlite:///index.db"
        host = "::1"
        port = 8080
        rate_limit = 60
        trusted_proxies = ["10.0.0.0/8", "::1"]
        [fetch]
        max_bytes = 1024
        connect_timeout = 1
        read_timeout = 2.5
        total_timeout = 30
        max_redirects = 0
        ports = [443, 8443]
        allow_networks = ["192.168.0.0/16"]
        ca_file = "ca.pem"
        """,
    )
    found = load_configuration(tmp_path, {})
    assert (found.project.name, found.project.version) == ("bot", "1.0")
    assert found.onchain == Onchain(
        "standalone",
        "http://127.0.0.1:8000/rpc",
        ("https://a.org", "https://b.org"),
        "Our Network ; 2026",
        tmp_path / "chain.db",
        5_000_000,
    )
    assert found.wallet.path == tmp_path / "keys" / "wallet.json"
    assert found.memory == MemorySettings(
        CONTRACT,
        "tiered",
        "blobs/",
        "postgresql://localhost/memory",
        "minilm",
        Tiered("local", "supermemory"),
    )
    assert found.indexer == Indexer(
        "https://indexer.example.org", "sqlite:///index.db", "::1", 8080, 60, ("10.0.0.0/8", "::1/128")
    )
    assert found.fetch == Fetch(
        1024, 1.0, 2.5, 30.0, 0, (443, 8443), ("192.168.0.0/16",), tmp_path / "ca.pem"
    )


def test_the_nearest_file_counts(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    _write(tmp_path, '[onchain]\nnetwork = "testnet"\n[wallet]\npath = "w.json"')
    file = _write(tmp_path / "a", '[memory]\nbackend = "local"')
    found = load_configuration(deep, {})
    assert (found.file, found.folder) == (file, tmp_path / "a")
    assert (found.memory.backend, found.onchain.network) == ("local", "local")
    assert found.wallet.path == tmp_path / "a" / ".mycelium" / "wallet.json"
    (tmp_path / "a" / "b" / "mycelium.toml").mkdir()  # a folder of that name is not the file
    with pytest.warns(ConfigWarning, match=r"b/mycelium\.toml is a folder, so that it configures nothing"):
        assert load_configuration(deep, {}).file == file


def test_the_search_begins_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _write(tmp_path, "")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    monkeypatch.setenv("MYCELIUM_NETWORK", "testnet")
    assert load_configuration().file == file
    assert load_configuration().onchain.network == "testnet"
    assert load_configuration(Path("..")).file is not None


def test_a_vanished_working_folder_is_an_error_with_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigError, match="working folder"):
        load_configuration(env={})


def test_options_override_variables_override_the_file(tmp_path: Path) -> None:
    _write(tmp_path, '[memory]\nbackend = "local"\npublish = "file"\n[indexer]\nport = 1')
    env = {"MYCELIUM_BACKEND": "postgres", "MYCELIUM_INDEXER_PORT": "2"}
    assert load_configuration(tmp_path, {}).memory.backend == "local"
    assert load_configuration(tmp_path, env).memory.backend == "postgres"
    found = load_configuration(tmp_path, env, {"memory.backend": "supermemory", "memory.publish": None})
    assert (found.memory.backend, found.memory.publish, found.indexer.port) == ("supermemory", "file", 2)


@pytest.mark.parametrize(
    ("variable", "text", "key", "value"),
    [
        ("MYCELIUM_NAME", "bot", "project.name", "bot"),
        ("MYCELIUM_NETWORK", "testnet", "onchain.network", "testnet"),
        ("MYCELIUM_RPC_URL", "https://a.org", "onchain.rpc_url", "https://a.org"),
        ("MYCELIUM_NETWORK_PASSPHRASE", "Our ; 2026", "onchain.network_passphrase", "Our ; 2026"),
        ("MYCELIUM_CHAIN_FILE", "/x/chain.db", "onchain.chain_file", Path("/x/chain.db")),
        ("MYCELIUM_WALLET", "/x/wallet.json", "wallet.path", Path("/x/wallet.json")),
        ("MYCELIUM_ANCHOR_ADDRESS", CONTRACT, "memory.anchor_address", CONTRACT),
        ("MYCELIUM_DSN", "postgresql://a", "memory.dsn", "postgresql://a"),
        ("MYCELIUM_PUBLISH", "mem.json", "memory.publish", "mem.json"),
        ("MYCELIUM_PRIMARY", "local", "memory.tiered", Tiered(primary="local")),
        ("MYCELIUM_INDEXER_URL", "http://localhost:1", "indexer.url", "http://localhost:1"),
        ("MYCELIUM_INDEXER_RATE_LIMIT", "0", "indexer.rate_limit", 0),
        ("MYCELIUM_MAX_FEE", "5000000", "onchain.max_fee", 5_000_000),
        (
            "MYCELIUM_INDEXER_TRUSTED_PROXIES",
            "::1, 10.0.0.1",
            "indexer.trusted_proxies",
            ("::1/128", "10.0.0.1/32"),
        ),
        ("MYCELIUM_FETCH_MAX_BYTES", " 7 ", "fetch.max_bytes", 7),
        ("MYCELIUM_FETCH_READ_TIMEOUT", "0.5", "fetch.read_timeout", 0.5),
        ("MYCELIUM_FETCH_PORTS", "443,8443", "fetch.ports", (443, 8443)),
    ],
)
def test_variables_are_named_after_their_keys(
    tmp_path: Path, variable: str, text: str, key: str, value: object
) -> None:
    assert operator.attrgetter(key)(load_configuration(tmp_path, {variable: text})) == value
    unset = load_configuration(tmp_path, {variable: "  "})
    assert unset == load_configuration(tmp_path, {})


def test_every_field_of_the_configuration_is_a_key(tmp_path: Path) -> None:
    found = load_configuration(tmp_path, {})
    sections: dict[str, Any] = {
        "project": found.project,
        "onchain": found.onchain,
        "wallet": found.wallet,
        "memory": found.memory,
        "memory.tiered": found.memory.tiered,
        "indexer": found.indexer,
        "fetch": found.fetch,
    }
    fields = {
        name: [field.name for field in dataclasses.fields(section)] for name, section in sections.items()
    }
    fields["memory"].remove("tiered")
    assert {name: list(keys) for name, keys in config._KEYS.items()} == fields


def test_no_two_keys_share_a_variable() -> None:
    assert len({setting.variable for setting in config._SETTINGS}) == len(config._SETTINGS)


def test_paths_are_relative_to_the_files_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    below = tmp_path / "below"
    below.mkdir()
    for variables in ({"MYCELIUM_WALLET": "w.json"}, {}):
        options = {} if variables else {"wallet.path": Path("w.json")}
        assert load_configuration(below, variables, options).wallet.path == below / "w.json"
    _write(tmp_path, "")
    found = load_configuration(below, {"MYCELIUM_WALLET": "w.json", "MYCELIUM_CHAIN_FILE": "~/chain.db"})
    assert found.wallet.path == tmp_path / "w.json"
    assert found.onchain.chain_file == tmp_path / "me" / "chain.db"
    assert found.resolve("x") == tmp_path / "x"
    assert found.resolve("/x") == Path("/x")
    assert found.resolve("~/x") == tmp_path / "me" / "x"


def test_the_home_folder_is_part_of_it(tmp_path: Path) -> None:
    assert load_configuration(tmp_path, {"MYCELIUM_HOME": str(tmp_path / "h")}).home.root == tmp_path / "h"


def test_settings_of_the_files_network_do_not_follow_to_another(tmp_path: Path) -> None:
    _write(
        tmp_path,
        '[onchain]\nnetwork = "mainnet"\nrpc_url = "https://a.org"\nnetwork_passphrase = "x"\n'
        f'[memory]\nanchor_address = "{CONTRACT}"',
    )
    assert load_configuration(tmp_path, {}).onchain.rpc_url == "https://a.org"
    assert load_configuration(tmp_path, {"MYCELIUM_NETWORK": "mainnet"}).onchain.rpc_url == "https://a.org"
    assert load_configuration(tmp_path, {}).memory.anchor_address == CONTRACT
    other = load_configuration(tmp_path, {}, {"onchain.network": "testnet"})
    assert (other.onchain, other.memory.anchor_address) == (Onchain("testnet"), None)
    both = {"MYCELIUM_NETWORK": "testnet", "MYCELIUM_RPC_URL": "https://b.org"}
    assert load_configuration(tmp_path, both).onchain == Onchain("testnet", "https://b.org")
    _write(tmp_path, '[onchain]\nrpc_url = "https://a.org"')
    assert load_configuration(tmp_path, {"MYCELIUM_NETWORK": "testnet"}).onchain.rpc_url == "https://a.org"


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        ("[onchain]\nnetwrok = 'local'", r"unknown key \[onchain\] netwrok", "did you mean `network`?"),
        ("[onchian]\nnetwork = 'local'", r"no section \[onchian\]", "did you mean [onchain]?"),
        ("[zzz]", r"no section \[zzz\]", "the sections are"),
        (
            "[memory.teired]\nprimary = 'local'",
            r"no section \[memory.teired\]",
            "did you mean [memory.tiered]?",
        ),
        ("network = 'local'", "unknown key network", "it belongs in the section [onchain]"),
        (
            "[memory]\nnetwork = 'local'",
            r"unknown key \[memory\] network",
            "it belongs in the section [onchain]",
        ),
        ("zzz = 1", "unknown key zzz", "every key belongs in a section"),
        ("[wallet]\nzzz = 1", r"unknown key \[wallet\] zzz", "the keys of [wallet] are path"),
        ("[wallet]\npassphrase = 'p4ss'", "unknown key", "MYCELIUM_DECRYPT_KEY"),
        ("decrypt_key = 'p4ss'", "unknown key", "MYCELIUM_DECRYPT_KEY"),
        (
            "[onchain]\nnetwork = 'Testnet'",
            r"\[onchain\] network is 'Testnet', which is none of",
            "'testnet'",
        ),
        ("[onchain]\nnetwork = 'xyz'", "which is none of", "use one of local, standalone, testnet, mainnet"),
        ("[onchain]\nnetwork = 7", r"\[onchain\] network must be a string, not a number", "quotes"),
        ("[onchain]\nrpc_url = ''", "rpc_url is empty", "leave it out"),
        ("[onchain]\nrpc_url = 'rpc.example.org/p4ss'", "is not an http or https URL", "in full"),
        ("[onchain]\nrpc_url = 'ftp://a.org/p4ss'", "is not an http or https URL", "in full"),
        ("[onchain]\nrpc_url = 'http://a.org:99999/p4ss'", "is not an http or https URL", "in full"),
        ("[onchain]\nrpc_url = 'http://[::1/p4ss'", "is not an http or https URL", "in full"),
        ("[onchain]\nrpc_url = 'http://a.org/ p4ss'", "is not an http or https URL", "in full"),
        ('[onchain]\nchain_file = "a\\u0000b"', "holds a NUL", "path of a file"),
        ("[memory]\nanchor_address = 'C'", "is not a contract address", "56|55"),
        (f"[memory]\nanchor_address = '{ACCOUNT}'", "address of an account", "begins with C"),
        ("[memory]\nbackend = 'locl'", "which is none of auto, local", "did you mean 'local'?"),
        ("[memory]\npublish = ['a']", "must be a string, not a list", "quotes"),
        ("[indexer]\nport = '80'", "must be a whole number, not of type str", "without quotes"),
        ("[indexer]\nport = 65536", "is 65536, out of range", "from 0 to 65535"),
        ("[onchain]\nmax_fee = 0", "is 0, out of range", "from 1 to 4294967295"),
        ("[onchain]\nmax_fee = 4294967296", "is 4294967296, out of range", "from 1 to 4294967295"),
        ("[onchain]\nmax_fee = 1.5", "must be a whole number", "digits"),
        ("[indexer]\nport = true", "must be a whole number, not true or false", "digits"),
        ("[indexer]\nrate_limit = -1", "is -1, out of range", "at least 0"),
        ("[indexer]\ntrusted_proxies = '::1'", "must be a list", "square brackets"),
        ("[indexer]\ntrusted_proxies = ['nobody']", "holds 'nobody', which is no IP network", "10.0.0.0/8"),
        ("[fetch]\nread_timeout = 0", "must be above zero", "2.5"),
        ("[fetch]\nread_timeout = nan", "must be above zero", "2.5"),
        ("[fetch]\nread_timeout = '1'", "must be a number of seconds", "without quotes"),
        ("[fetch]\nports = [0]", "is 0, out of range", "from 1 to 65535"),
        ("[onchain\nnetwork = 1", "is not valid TOML: .*line 1", "correct that place"),
        ("[onchain]\nnetwork = 'local'\nnetwork = 'local'", "is not valid TOML", "correct"),
    ],
)
def test_mistakes_in_the_file_are_named_with_their_fix(
    tmp_path: Path, text: str, says: str, hint: str
) -> None:
    file = _write(tmp_path, text)
    with pytest.raises(ConfigError, match=says) as caught:
        load_configuration(tmp_path, {})
    assert str(caught.value).startswith(str(file))
    assert caught.value.exit_code == 3
    assert any(part in (caught.value.hint or "") for part in hint.split("|"))
    assert "p4ss" not in f"{caught.value!r} {caught.value.hint}"


@pytest.mark.parametrize(
    ("variable", "text", "says"),
    [
        ("MYCELIUM_NETWORK", "testnt", "environment variable MYCELIUM_NETWORK is 'testnt'"),
        ("MYCELIUM_RPC_URL", "p4ss", "environment variable MYCELIUM_RPC_URL is not an http"),
        (
            "MYCELIUM_INDEXER_PORT",
            "eighty",
            "environment variable MYCELIUM_INDEXER_PORT is not a whole number",
        ),
        ("MYCELIUM_FETCH_READ_TIMEOUT", "soon", "is not a number of seconds"),
        ("MYCELIUM_FETCH_PORTS", "443,x", "is not a whole number"),
    ],
)
def test_mistakes_in_variables_are_named(tmp_path: Path, variable: str, text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        load_configuration(tmp_path, {variable: text})
    assert caught.value.hint
    assert "p4ss" not in f"{caught.value!r} {caught.value.hint}"


def test_mistakes_in_options_are_mistakes_of_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"option for onchain.network is 'x'"):
        load_configuration(tmp_path, {}, {"onchain.network": "x"})
    with pytest.raises(UsageError, match=r"unknown setting 'onchain\.netwrk'") as caught:
        load_configuration(tmp_path, {}, {"onchain.netwrk": "x"})
    assert caught.value.hint == "did you mean 'onchain.network'?"
    assert load_configuration(tmp_path, {}, {"indexer.port": 7, "fetch.ports": [1]}).fetch.ports == (1,)


@pytest.mark.parametrize(("content", "says"), [(b"\xff", "not UTF-8"), (b"a = '\x00'", "not valid TOML")])
def test_an_unreadable_file_is_named(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "mycelium.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=says):
        load_configuration(tmp_path, {})


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    _write(tmp_path, "")
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ConfigError, match=r"mycelium\.toml: Permission denied"):
        load_configuration(tmp_path, {})


def test_an_unknown_variable_is_a_warning(tmp_path: Path) -> None:
    with pytest.warns(ConfigWarning, match=r"MYCELIUM_NETWROK; did you mean MYCELIUM_NETWORK\?") as caught:
        load_configuration(tmp_path, {"MYCELIUM_NETWROK": "testnet"})
    assert caught[0].filename == __file__
    with pytest.warns(ConfigWarning, match="unknown environment variable MYCELIUM_QQ$"):
        load_configuration(tmp_path, {"MYCELIUM_QQ": "1"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known = {"MYCELIUM_HOME": "/x", "MYCELIUM_DECRYPT_KEY": "p", "OTHER_NETWORK": "x", "mycelium_x": "1"}
        load_configuration(tmp_path, known)


def _strings(value: Any) -> str:
    slots = [getattr(value, name) for name in getattr(value, "__slots__", ())]
    return " ".join([repr(value), *(_strings(part) for part in slots)])


def test_the_passphrase_is_not_in_it_and_credentials_are_not_shown(tmp_path: Path) -> None:
    env = {
        "MYCELIUM_DECRYPT_KEY": "correct horse",
        "MYCELIUM_RPC_URL": "https://a.org/p4ss",
        "MYCELIUM_DSN": "postgresql://me:p4ss@a.org/m",
        "MYCELIUM_INDEXER_DATABASE_URL": "postgresql://me:p4ss@a.org/m",
        "MYCELIUM_INDEXER_URL": "https://a.org/p4ss",
    }
    found = load_configuration(tmp_path, env)
    assert found.onchain.rpc_url == "https://a.org/p4ss"
    assert "p4ss" not in repr(found)
    assert "correct horse" not in _strings(found)
