"""Publishing by PUT: nothing is anchored that cannot be read where the anchor will say."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from mycelium_sdk.blobs import https_put
from mycelium_sdk.blobs.https_put import HttpsPut
from mycelium_sdk.errors import InputError, MyceliumError, PublishFailed
from mycelium_sdk.memory import read_memory
from tests.chain.sockets import Listening, Visit, http_answer

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from pathlib import Path

    from mycelium_sdk.fetching import FetchPolicy
    from tests.memory.conftest import World

SECRET = "X-Amz-Signature=topsecret"


class Bucket:
    """A server that keeps what is put, and can be told to misbehave."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self.objects: dict[str, bytes] = {}
        self.puts: list[str] = []
        self.status = "200 OK"
        self.failing_gets = 0
        self.replaced: bytes | None = None
        self.server = Listening(self._serve, tls)

    def url(self, path: str) -> str:
        return self.server.url.replace("/rpc", path)

    def _serve(self, visit: Visit) -> None:
        request = visit.request()
        if request is None:
            return
        head, _, body = request.partition(b"\r\n\r\n")
        method, target = head.decode().split(" ")[:2]
        path = target.partition("?")[0]
        if method == "PUT":
            self.puts.append(head.decode())
            if self.status.startswith("2"):
                self.objects[path] = body if self.replaced is None else self.replaced
            visit.send(http_answer(b"", self.status))
        elif self.failing_gets or path not in self.objects:
            self.failing_gets -= 1
            visit.send(http_answer(b"", "404 Not Found"))
        else:
            visit.send(http_answer(self.objects[path]))


@pytest.fixture
def bucket(certificate: tuple[ssl.SSLContext, Path]) -> Iterator[Bucket]:
    made = Bucket(certificate[0])
    yield made
    made.server.close()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(https_put, "_FIRST_PAUSE", 0.0)


def _put(bucket: Bucket, policy: FetchPolicy, path: str = "/{root}.json") -> HttpsPut:
    return HttpsPut(
        bucket.url(path) + f"?{SECRET}", bucket.url("/{root}.json"), headers={"X-Key": "k"}, policy=policy
    )


def test_what_is_put_is_anchored_and_read_by_others(
    world: World, bucket: Bucket, policy: FetchPolicy
) -> None:
    memory = world.machine("a")
    memory.remember("one")
    publish = _put(bucket, policy)
    memory.anchor(publish=publish)
    root = memory.memory_root().hex()
    assert (memory.get_anchor() or {})["uri"] == bucket.url(f"/{root}.json")
    assert SECRET in bucket.puts[0]
    assert "X-Key: k" in bucket.puts[0]
    assert "topsecret" not in repr(publish)
    assert read_memory(memory.owner, context=memory.context, policy=policy).records == 1
    memory.remember("two")
    assert memory.on_job_complete(publish=publish) == 2
    assert len(bucket.objects) == 2


def test_a_presigned_address_is_asked_for_by_root(bucket: Bucket, policy: FetchPolicy) -> None:
    put = HttpsPut(
        lambda root: bucket.url(f"/{root.hex()}.json?{SECRET}"), bucket.url("/{root}.json"), policy=policy
    )
    assert put(b"{}").endswith(".json")
    assert len(bucket.puts) == 1


@pytest.mark.parametrize("status", ["403 Forbidden", "500 Oops", "302 Found"])
def test_a_refused_put_anchors_nothing(
    world: World, bucket: Bucket, policy: FetchPolicy, status: str
) -> None:
    bucket.status = status
    memory = world.machine("a")
    memory.remember("one")
    with pytest.raises(MyceliumError) as caught:
        memory.anchor(publish=_put(bucket, policy))
    assert "topsecret" not in repr(caught.value) + str(caught.value) + repr(caught.value.__cause__)
    assert memory.get_anchor() is None


def test_an_unreachable_server_says_no_secret(policy: FetchPolicy) -> None:
    put = HttpsPut(f"https://localhost:1/?{SECRET}", "https://localhost:1/{root}", policy=policy)
    with pytest.raises(PublishFailed) as caught:
        put(b"{}")
    assert "topsecret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_certificate_that_is_not_trusted_is_said(world: World, bucket: Bucket, policy: FetchPolicy) -> None:
    memory = world.machine("a")
    memory.remember("one")
    with pytest.raises(PublishFailed, match="certificate") as caught:
        memory.anchor(publish=_put(bucket, dataclasses.replace(policy, ca_file=None)))
    assert "ca_file" in (caught.value.hint or "")
    assert caught.value.__cause__ is None, "it is the one that says what is wrong, and it quotes no address"
    assert "topsecret" not in str(caught.value) + repr(caught.value)
    assert bucket.puts == []
    assert memory.get_anchor() is None


def test_what_is_not_yet_readable_is_waited_for(bucket: Bucket, policy: FetchPolicy) -> None:
    bucket.failing_gets = 3
    assert _put(bucket, policy)(b"{}")
    bucket.failing_gets = 100
    with pytest.raises(PublishFailed, match="cannot be read"):
        _put(bucket, policy)(b"{}")


def test_what_reads_back_differently_is_refused(bucket: Bucket, policy: FetchPolicy) -> None:
    bucket.replaced = b"something else"
    with pytest.raises(PublishFailed, match="not what was put"):
        _put(bucket, policy)(b"{}")


def test_an_address_that_nobody_may_fetch_from_is_refused(bucket: Bucket, policy: FetchPolicy) -> None:
    strict = dataclasses.replace(policy, allow_networks=())
    with pytest.raises(PublishFailed, match="not public"):
        _put(bucket, strict)(b"{}")


@pytest.mark.parametrize(
    ("put", "public"),
    [
        ("https://a/{root}", "https://a/fixed.json"),
        ("http://a/{root}", "https://a/{root}"),
        ("https://a/{root}", "http://a/{root}"),
        ("https://a/{root}", "https://user@a/{root}"),
        ("https://a/{root}", "https://a/{root}?X-Amz-Signature=1"),
        ("https://a/{root}", "https://a/{root}/" + "x" * 1000),
    ],
)
def test_addresses_that_make_no_sense(put: str, public: str) -> None:
    with pytest.raises(InputError):
        HttpsPut(put, public)
