"""Compiles a contract written in Python to WebAssembly; the same source always gives the same bytes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mycelium_sdk.errors import ConfigError, InputError
from mycelium_sdk.installing import install_command

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["COMPILER", "BuiltContract", "build_contract"]

COMPILER = "0.19.0a2"
"""The one release of pysoroban-compiler whose output is compared byte for byte."""


@dataclass(frozen=True, slots=True)
class BuiltContract:
    """A compiled contract: its WebAssembly and the SHA-256 of it (32 bytes)."""

    wasm: bytes
    sha256: bytes


def build_contract(source: Path) -> BuiltContract:
    """Compile the contract in `source`.

    Raises:
        ConfigError: the compiler is not installed, or another release of it is.
        InputError: the file cannot be read, or the compiler refuses it (the message has line and column).
    """
    try:
        import pysoroban  # type: ignore[import-untyped]
    except ImportError as error:
        raise _compiler_missing("the contract compiler is not installed") from error
    if pysoroban.__version__ != COMPILER:
        raise _compiler_missing(f"the contract compiler is release {pysoroban.__version__}, not {COMPILER}")
    from pysoroban.errors import CompileError  # type: ignore[import-untyped]

    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{source} cannot be read as a contract's source",
            hint="give the path of the contract's Python file with --source",
        ) from error
    try:
        wasm = pysoroban.compile_source(text, source.name).wasm
        pysoroban.validate_wasm(wasm)
    except (CompileError, pysoroban.ArtifactError) as error:
        raise InputError(f"{source} does not compile: {error}") from error
    return BuiltContract(wasm=wasm, sha256=hashlib.sha256(wasm).digest())


def _compiler_missing(what: str) -> ConfigError:
    return ConfigError(what, hint=f"install it: {install_command('contract')}")
