"""The configuration: `mycelium.toml`, then environment variables, then options, each overriding the one
before.

The file is looked for in the starting folder and then in each folder above it. Environment variables are
named after their key, `MYCELIUM_NETWORK`, with the section for `indexer` and `fetch`, `MYCELIUM_INDEXER_URL`;
the wallet's path is `MYCELIUM_WALLET`, and an empty variable counts as missing. Relative paths are relative
to the folder of the file, else to the starting folder (formats.md section 8).

The passphrase, `MYCELIUM_DECRYPT_KEY`, is no part of the configuration: `wallet.find_passphrase` reads it at
the moment of use.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mycelium_sdk import config_values as values
from mycelium_sdk.config_values import BadValue, Parser, nearest
from mycelium_sdk.errors import ConfigError, UsageError
from mycelium_sdk.home import HOME_VARIABLE, Home

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FILE_NAME = "mycelium.toml"
DECRYPT_KEY_VARIABLE = "MYCELIUM_DECRYPT_KEY"
NETWORKS = ("local", "standalone", "testnet", "mainnet")
BACKENDS = ("auto", "local", "supermemory", "postgres", "tiered")
EMBEDDERS = ("none", "minilm")

_MOST_STROOPS = 2**32 - 1
"""No transaction can hold a higher fee (an unsigned 32-bit number)."""

_PREFIX = "MYCELIUM_"


class ConfigWarning(UserWarning):
    """Something in the configuration has no effect, most likely by mistake."""


@dataclass(frozen=True, slots=True)
class Project:
    """`[project]`: the user's own project."""

    name: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Onchain:
    """`[onchain]`: which chain. URLs may hold an access key, so they are not shown.

    `cross_check`: further RPC servers of the same network, which must agree with `rpc_url`. `max_fee`: the
    most that one transaction may cost, in stroops; None leaves the SDK's own limit (`chain.fees`).
    """

    network: str = "local"
    rpc_url: str | None = field(default=None, repr=False)
    cross_check: tuple[str, ...] = field(default=(), repr=False)
    network_passphrase: str | None = None
    chain_file: Path | None = None
    max_fee: int | None = None


@dataclass(frozen=True, slots=True)
class WalletSettings:
    """`[wallet]`: an absolute path."""

    path: Path


@dataclass(frozen=True, slots=True)
class Tiered:
    """`[memory.tiered]`: names of backends."""

    primary: str | None = None
    secondary: str | None = None


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """`[memory]`. `dsn` may hold a password, so it is not shown. `embedder`: whose vectors recall uses."""

    anchor_address: str | None = None
    backend: str = "auto"
    publish: str | None = None
    dsn: str | None = field(default=None, repr=False)
    embedder: str = "none"
    tiered: Tiered = field(default_factory=Tiered)


@dataclass(frozen=True, slots=True)
class Indexer:
    """`[indexer]`: `url` is for clients, the rest for the one who runs it; None leaves the choice to the
    indexer.

    `rate_limit` is in requests per minute from one client, 0 for none.
    """

    url: str | None = field(default=None, repr=False)
    database_url: str | None = field(default=None, repr=False)
    host: str | None = None
    port: int | None = None
    rate_limit: int | None = None
    trusted_proxies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fetch:
    """`[fetch]`: limits of fetching a blob.

    Times are in seconds; None leaves the default, which depends on whose blob it is.
    """

    max_bytes: int | None = None
    connect_timeout: float = 5.0
    read_timeout: float = 10.0
    total_timeout: float | None = None
    max_redirects: int = 3
    ports: tuple[int, ...] | None = None
    allow_networks: tuple[str, ...] = ()
    ca_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything that was configured, validated.

    `folder` is the one that relative paths are relative to; `file` is the `mycelium.toml` in it, if any.
    """

    project: Project
    onchain: Onchain
    wallet: WalletSettings
    memory: MemorySettings
    indexer: Indexer
    fetch: Fetch
    folder: Path
    file: Path | None
    home: Home

    def resolve(self, path: str | os.PathLike[str]) -> Path:
        """A path as the user wrote it, made absolute: `~` is the user's home folder, else below `folder`."""
        return self.folder / Path(path).expanduser()


@dataclass(frozen=True, slots=True)
class _Setting:
    section: str
    key: str
    parse: Parser

    @property
    def name(self) -> str:
        return f"{self.section}.{self.key}"

    @property
    def variable(self) -> str:
        if self.name == "wallet.path":
            return _PREFIX + "WALLET"
        section = f"{self.section}_" if self.section in {"indexer", "fetch"} else ""
        return _PREFIX + (section + self.key).upper()


_KEYS: dict[str, dict[str, Parser]] = {
    "project": {"name": values.text, "version": values.text},
    "onchain": {
        "network": values.one_of(*NETWORKS),
        "rpc_url": values.http_url,
        "cross_check": values.list_of(values.http_url),
        "network_passphrase": values.text,
        "chain_file": values.path,
        "max_fee": values.integer(1, _MOST_STROOPS),
    },
    "wallet": {"path": values.path},
    "memory": {
        "anchor_address": values.contract_address,
        "backend": values.one_of(*BACKENDS),
        "publish": values.text,
        "dsn": values.text,
        "embedder": values.one_of(*EMBEDDERS),
    },
    "memory.tiered": {
        "primary": values.one_of("local", "supermemory", "postgres"),
        "secondary": values.one_of("local", "supermemory", "postgres"),
    },
    "indexer": {
        "url": values.http_url,
        "database_url": values.text,
        "host": values.text,
        "port": values.integer(0, 65535),
        "rate_limit": values.integer(0),
        "trusted_proxies": values.list_of(values.ip_network),
    },
    "fetch": {
        "max_bytes": values.integer(1),
        "connect_timeout": values.seconds,
        "read_timeout": values.seconds,
        "total_timeout": values.seconds,
        "max_redirects": values.integer(0),
        "ports": values.list_of(values.integer(1, 65535)),
        "allow_networks": values.list_of(values.ip_network),
        "ca_file": values.path,
    },
}
_SETTINGS = tuple(
    _Setting(section, key, parse) for section, keys in _KEYS.items() for key, parse in keys.items()
)
_BY_NAME = {setting.name: setting for setting in _SETTINGS}
_BY_VARIABLE = {setting.variable: setting for setting in _SETTINGS}
_SECTIONS = tuple(_KEYS)
_VARIABLES = (*_BY_VARIABLE, HOME_VARIABLE, DECRYPT_KEY_VARIABLE)


def load_configuration(
    start: Path | None = None,
    env: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
    option_names: Mapping[str, str] | None = None,
) -> Configuration:
    """Read the configuration that holds in a folder.

    `start` is where the search for `mycelium.toml` begins (default: the working folder), `env` the
    environment (default: the process's). `overrides` maps names such as `"onchain.network"` to values, as
    text or typed; None means that the option was not given. `option_names`: what messages call an override,
    for example `--network`.

    Raises `ConfigError`, which names the file and key or the variable, and `UsageError` for a bad override.
    Warns with `ConfigWarning` of an unknown `MYCELIUM_` variable.
    """
    env = os.environ if env is None else env
    start = _working_folder() if start is None else start.absolute()
    file = next((path for folder in (start, *start.parents) if _is_file(path := folder / FILE_NAME)), None)
    from_file = {} if file is None else dict(_read_file(file))
    from_environment, chosen = (
        dict(_read_environment(env)),
        dict(_read_overrides(overrides or {}, option_names or {})),
    )
    if chosen.get("onchain.network") == "local" != from_environment.get("onchain.network", "local"):
        from_environment.pop("onchain.rpc_url", None)  # it is that of the network that the environment names
    given = from_environment | chosen
    network = given.get("onchain.network")
    if network == "local" and "onchain.network" not in from_file:
        from_file.pop("onchain.rpc_url", None)  # for whichever is asked for, of those that have a server
    if network and from_file.get("onchain.network", network) != network:
        # These belong to the network that the file names: its server, its identity, a contract on it.
        for name in (
            "onchain.rpc_url",
            "onchain.cross_check",
            "onchain.network_passphrase",
            "memory.anchor_address",
        ):
            from_file.pop(name, None)
    folder = start if file is None else file.parent
    return _build(from_file | given, folder, file, Home.default(env))


def _build(found: dict[str, Any], folder: Path, file: Path | None, home: Home) -> Configuration:
    def section(name: str) -> dict[str, Any]:
        prefix = name + "."
        return {
            key.removeprefix(prefix): folder / value if isinstance(value, Path) else value
            for key, value in found.items()
            if key.startswith(prefix) and "." not in key.removeprefix(prefix)
        }

    return Configuration(
        project=Project(**section("project")),
        onchain=Onchain(**section("onchain")),
        wallet=WalletSettings(**{"path": folder / ".mycelium" / "wallet.json"} | section("wallet")),
        memory=MemorySettings(**section("memory"), tiered=Tiered(**section("memory.tiered"))),
        indexer=Indexer(**section("indexer")),
        fetch=Fetch(**section("fetch")),
        folder=folder,
        file=file,
        home=home,
    )


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except OSError as cause:
        raise ConfigError("the working folder no longer exists", hint="change to another folder") from cause


def _is_file(path: Path) -> bool:
    if path.is_dir():
        warnings.warn(f"{path} is a folder, so that it configures nothing", ConfigWarning, stacklevel=4)
    return path.is_file()


def _read_file(file: Path) -> Iterator[tuple[str, object]]:
    import tomllib

    try:
        document = tomllib.loads(file.read_bytes().decode("utf-8"))
    except OSError as cause:
        raise ConfigError(f"cannot read {file}: {cause.strerror}", hint="check who may read it") from cause
    except UnicodeDecodeError as cause:
        raise ConfigError(f"{file} is not UTF-8", hint="save it as UTF-8") from cause
    except tomllib.TOMLDecodeError as cause:
        raise ConfigError(f"{file} is not valid TOML: {cause}", hint="correct that place") from cause
    for section, key, value in _flatten(document, file):
        setting = _BY_NAME.get(f"{section}.{key}")
        if setting is None:
            raise _unknown_key(file, section, key)
        yield setting.name, _parse(setting, value, f"{file}: [{section}] {key}", as_text=False)


def _flatten(table: Mapping[str, Any], file: Path, section: str = "") -> Iterator[tuple[str, str, object]]:
    for key, value in table.items():
        if not isinstance(value, dict):
            yield section, key, value
            continue
        name = f"{section}.{key}" if section else key
        if name not in _SECTIONS:
            close = nearest(name, _SECTIONS)
            raise ConfigError(
                f"{file}: there is no section [{name}]",
                hint=f"did you mean [{close}]?" if close else f"the sections are {', '.join(_SECTIONS)}",
            )
        yield from _flatten(value, file, name)


def _unknown_key(file: Path, section: str, key: str) -> ConfigError:
    where = f"[{section}] {key}" if section else key
    homes = [setting.section for setting in _SETTINGS if setting.key == key]
    keys = tuple(_KEYS.get(section, ()))
    secret = any(word in key.lower() for word in ("passphrase", "decrypt", "secret", "seed"))
    if secret and section in {"", "wallet"}:
        hint = f"secrets do not belong in a file: set the environment variable {DECRYPT_KEY_VARIABLE}"
    elif homes:
        hint = f"it belongs in the section [{homes[0]}]"
    elif close := nearest(key, keys):
        hint = f"did you mean `{close}`?"
    elif keys:
        hint = f"the keys of [{section}] are {', '.join(keys)}"
    else:
        hint = f"every key belongs in a section: {', '.join(_SECTIONS)}"
    return ConfigError(f"{file}: unknown key {where}", hint=hint)


def _read_environment(env: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    for variable, value in env.items():
        if not variable.startswith(_PREFIX):
            continue
        setting = _BY_VARIABLE.get(variable)
        if setting is not None:
            if value.strip():
                yield setting.name, _parse(setting, value, f"environment variable {variable}", as_text=True)
        elif variable not in _VARIABLES:
            known = tuple(name.removeprefix(_PREFIX) for name in _VARIABLES)
            close = nearest(variable.removeprefix(_PREFIX), known)
            guess = f"; did you mean {_PREFIX}{close}?" if close else ""
            warnings.warn(f"unknown environment variable {variable}{guess}", ConfigWarning, stacklevel=3)


def _read_overrides(
    overrides: Mapping[str, object], names: Mapping[str, str]
) -> Iterator[tuple[str, object]]:
    for name, value in overrides.items():
        setting = _BY_NAME.get(name)
        if setting is None:
            close = nearest(name, tuple(_BY_NAME))
            raise UsageError(f"unknown setting {name!r}", hint=f"did you mean {close!r}?" if close else None)
        if value is not None:
            where = names.get(name, f"option for {name}")
            yield name, _parse(setting, value, where, as_text=True, kind=UsageError)


def _parse(
    setting: _Setting,
    value: object,
    where: str,
    *,
    as_text: bool,
    kind: type[ConfigError | UsageError] = ConfigError,
) -> object:
    try:
        return setting.parse(value, as_text)
    except BadValue as problem:
        raise kind(f"{where} {problem}", hint=problem.hint) from None
