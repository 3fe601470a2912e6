"""The compiled contract in the package: what its source gives, byte for byte, and nothing else."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path
from typing import TypeVar

import pytest
from stellar_sdk.sep.contract_spec import ContractSpec

from mycelium_sdk.chain.artifact import memory_anchor_sha256, memory_anchor_wasm
from mycelium_sdk.chain.build import build_contract
from mycelium_sdk.errors import InputError

SOURCE = Path(__file__).parents[2] / "contracts" / "memory_anchor.py"
CHECK = "if version != expected_version:\n    fail(AnchorError.VERSION_CONFLICT)"

Node = TypeVar("Node", bound=ast.AST)


def nodes_of(kind: type[Node]) -> list[Node]:
    """All nodes of a kind in the contract's source."""
    return [node for node in ast.walk(ast.parse(SOURCE.read_text())) if isinstance(node, kind)]


def test_the_source_gives_exactly_the_committed_bytes() -> None:
    built = build_contract(SOURCE)
    assert built.wasm == memory_anchor_wasm(), "rebuild with `mycelium contract build`"
    assert built.sha256 == memory_anchor_sha256() == hashlib.sha256(built.wasm).digest()


def test_size_and_hash_are_pinned() -> None:
    assert len(memory_anchor_wasm()) == 2762
    assert memory_anchor_sha256().hex() == "bdcbadb83b7069e07c7b46bd5ead4e3874590d46255fd059e39f885fe01c8705"


def test_the_interface_is_the_promised_one() -> None:
    spec = ContractSpec.from_wasm(memory_anchor_wasm())
    functions = {
        function.name.sc_symbol.decode(): [parameter.name.decode() for parameter in function.inputs]
        for function in spec.functions
    }
    assert functions == {
        "set_anchor": ["owner", "memory_root", "uri", "acl"],
        "set_anchor_if": ["owner", "expected_version", "memory_root", "uri", "acl"],
        "get_anchor": ["owner"],
        "get_version": ["owner"],
        "is_anchored": ["owner"],
    }
    (errors,) = [entry.udt_error_enum_v0 for entry in spec.entries if entry.udt_error_enum_v0 is not None]
    assert {case.name.decode(): case.value.uint32 for case in errors.cases} == {
        "NOT_ANCHORED": 1,
        "VERSION_CONFLICT": 2,
        "BAD_ROOT": 3,
        "URI_TOO_LONG": 4,
        "ACL_TOO_LONG": 5,
    }
    (event,) = [entry.event_v0 for entry in spec.entries if entry.event_v0 is not None]
    assert [topic.sc_symbol for topic in event.prefix_topics] == [b"memory_anchored"]


def test_set_anchor_if_is_set_anchor_with_one_check_more() -> None:
    """The compiler has no helper functions, so the two repeat their body: it must stay the same body."""
    functions = {
        node.name: node
        for node in ast.walk(ast.parse(SOURCE.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    plain, conditional = functions["set_anchor"], functions["set_anchor_if"]
    check = ast.dump(
        ast.parse("if version != expected_version:\n    fail(AnchorError.VERSION_CONFLICT)").body[0]
    )
    body = [ast.dump(statement) for statement in conditional.body]
    assert body.count(check) == 1
    position = body.index(check)
    assert ast.unparse(conditional.body[position + 1]) == "version = version + u64(1)"
    body.pop(position)
    assert body == [ast.dump(statement) for statement in plain.body]
    parameters = [argument.arg for argument in conditional.args.args]
    parameters.remove("expected_version")
    assert parameters == [argument.arg for argument in plain.args.args]


def test_the_contract_touches_nothing_but_the_owners_entry() -> None:
    """No administrator, no upgrade, no other storage: what could change a promise would show here."""
    calls = {
        ast.unparse(node.func)
        for node in ast.walk(ast.parse(SOURCE.read_text()))
        if isinstance(node, ast.Call)
    }
    storage = {call for call in calls if call.startswith(("storage", "deploy", "auth", "env"))}
    assert storage == {f"storage.persistent.{name}" for name in ("has", "get", "set", "extend_ttl")}
    keys = {
        ast.unparse(node.args[0])
        for node in nodes_of(ast.Call)
        if ast.unparse(node.func).startswith("storage")
    }
    assert keys == {"owner"}


def test_a_source_that_does_not_compile_is_named_with_its_line(tmp_path: Path) -> None:
    source = tmp_path / "broken.py"
    source.write_text("from pysoroban import contract, public\n\n@contract\nclass Broken:\n    x = (\n")
    with pytest.raises(InputError, match=r"broken\.py.*E0001"):
        build_contract(source)


def test_a_source_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        build_contract(tmp_path / "missing.py")
    binary = tmp_path / "binary.py"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="cannot be read"):
        build_contract(binary)
