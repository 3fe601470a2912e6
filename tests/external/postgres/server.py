"""A real PostgreSQL server of one's own: made in a temporary folder, on a socket there, gone afterwards.

Runs what Debian's package `postgresql` installs (or what is in PATH), as another account where this one is
root, since `initdb` refuses root.
"""

from __future__ import annotations

import os
import pwd
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEBIAN = Path("/usr/lib/postgresql")
_ACCOUNTS = ("postgres", "nobody")

# Neither is lost by a killed server, only by a power cut.
_QUICK = ("fsync=off", "full_page_writes=off")


class Server:
    """A server that runs. `folder` holds its data and its socket; `role` is no superuser."""

    role = "agent"
    database = "memories"

    def __init__(self, folder: Path, *, durable: bool) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = 50_000 + secrets.randbelow(10_000)
        self.password = secrets.token_urlsafe(12)
        self._settings = ["listen_addresses=", f"unix_socket_directories={folder}", f"port={self.port}"]
        self._settings += [] if durable else _QUICK
        self._account = _account()
        if self._account is not None:
            os.chown(folder, self._account.pw_uid, self._account.pw_gid)
        folder.chmod(0o755)  # others reach the socket; the data folder is the server's own
        (folder / "password").write_text(self.password)
        (folder / "password").chmod(0o644)
        self._run(
            "initdb", "--pgdata", self.data, "--username", "postgres", "--auth", "scram-sha-256", "--pwfile",
            folder / "password", "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync",
        )  # fmt: skip
        (folder / "password").unlink()
        self.start()
        with self.superuser() as connection:
            connection.execute(f"CREATE ROLE {self.role} LOGIN PASSWORD '{self.password}'")
            connection.execute(f"CREATE DATABASE {self.database}")
            connection.execute(f"GRANT CREATE ON DATABASE {self.database} TO {self.role}")

    @property
    def dsn(self) -> str:
        """As the plain role, with its password."""
        return self.dsn_at(self.folder)

    def dsn_at(self, folder: Path) -> str:
        """The same by a socket in another folder."""
        return f"postgresql://{self.role}:{self.password}@/{self.database}?host={folder}&port={self.port}"

    def superuser(self, database: str = "postgres") -> psycopg.Connection[Any]:
        """A connection that may do everything."""
        return psycopg.connect(
            host=str(self.folder), port=self.port, user="postgres", password=self.password, dbname=database,
            autocommit=True,
        )  # fmt: skip

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = " ".join(f"-c {setting}" for setting in self._settings)
        self._run("pg_ctl", "start", "-w", "-D", self.data, "-l", self.folder / "log", "-o", options)

    def stop(self, mode: str = "immediate") -> None:
        """Stop it: "immediate" as by a crash, which the next start recovers from."""
        self._run("pg_ctl", "stop", "-w", "-D", self.data, "-m", mode)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """None of its processes answers within the block."""
        main = int((self.data / "postmaster.pid").read_text().split()[0])
        _signal(main, signal.SIGSTOP)
        try:
            yield
        finally:
            _signal(main, signal.SIGCONT)

    def _run(self, program: str, *arguments: object) -> None:
        account = self._account
        options: dict[str, Any] = {}
        if account is not None:
            options = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        # No pipe: the server would hold it open after pg_ctl is done.
        with tempfile.TemporaryFile("w+") as out:
            done = subprocess.run(
                [_program(program), *map(str, arguments)], cwd="/", stdin=subprocess.DEVNULL, stdout=out,
                stderr=out, check=False, env={"PATH": os.environ["PATH"], "LC_ALL": "C"}, **options,
            )  # fmt: skip
            if done.returncode:
                out.seek(0)
                log = self.folder / "log"
                raise RuntimeError(f"{program}: {out.read()}{log.read_text() if log.exists() else ''}")


@contextmanager
def running_server(*, durable: bool = False) -> Iterator[Server]:
    """A server for the block. `durable`: it synchronises the disk, which tests need not."""
    with tempfile.TemporaryDirectory(prefix="mycelium-pg-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        folder = Path(name, "server")
        folder.mkdir()
        server = Server(folder, durable=durable)
        try:
            yield server
        finally:
            if (server.data / "postmaster.pid").exists():
                server.stop()


def _program(name: str) -> str:
    installed = sorted(
        _DEBIAN.glob(f"*/bin/{name}"), key=lambda path: [int(part) for part in re.findall(r"\d+", str(path))]
    )
    found = str(installed[-1]) if installed else shutil.which(name)
    if found is None:
        raise RuntimeError(
            f"PostgreSQL's {name} is not installed: apt-get install postgresql (it need not run there)"
        )
    return found


def _account() -> pwd.struct_passwd | None:
    """Who runs the server; None for this account itself."""
    if os.geteuid():
        return None
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    return next(known[name] for name in _ACCOUNTS if name in known)


def _signal(main: int, number: signal.Signals) -> None:
    children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
    for process in (main, *map(int, children)):
        os.kill(process, number)
