"""Servers on real sockets that answer however they like, for the tests of the HTTP client."""

from __future__ import annotations

import contextlib
import datetime
import socket
import ssl
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path

Handler: TypeAlias = Callable[["Visit"], None]


class Visit:
    """One connection, as a handler sees it."""

    def __init__(self, connection: socket.socket, stopped: threading.Event) -> None:
        self.connection = connection
        self.stopped = stopped

    def request(self) -> bytes | None:
        """The head and the body of the next request; None when the client has gone."""
        received = b""
        while b"\r\n\r\n" not in received:
            more = self.connection.recv(65536)
            if not more:
                return None
            received += more
        head, _, body = received.partition(b"\r\n\r\n")
        length = next(
            (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
        )
        while len(body) < length:
            body += self.connection.recv(65536)
        return head + b"\r\n\r\n" + body

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def drip(self, data: bytes) -> None:
        """The same bytes for ever, slowly, so that no single wait of a client is long."""
        while not self.stopped.wait(0.02):
            self.send(data)

    def silence(self) -> None:
        """Nothing, until the test is over."""
        self.stopped.wait()


class Listening:
    """A server on a port of this machine, and how often it was connected to."""

    def __init__(self, handler: Handler, tls: ssl.SSLContext | None = None) -> None:
        self.visits = 0
        self.requests: list[bytes] = []
        self._handler = handler
        self._tls = tls
        self._stopped = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://localhost:{self._socket.getsockname()[1]}/rpc"

    def close(self) -> None:
        self._stopped.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.visits += 1
            self._connections.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            if self._tls is None:
                self._handler(Visit(connection, self._stopped))
                return
            with self._tls.wrap_socket(connection, server_side=True, suppress_ragged_eofs=True) as secured:
                self._handler(Visit(secured, self._stopped))


def http_answer(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def make_certificate(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's context for `localhost`, and the certificate that clients may trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    usage = x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, crl_sign=False,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate_file, key_file = folder / "certificate.pem", folder / "key.pem"
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_file, key_file)
    return context, certificate_file
