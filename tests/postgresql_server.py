"""A PostgreSQL server of the tests' own: a temporary folder, a free port of this computer, no password."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

__all__ = ["PostgreSQLServer", "ServerMissingError"]

# Servers refuse to run as root. These users are there for that.
_UNPRIVILEGED = ("postgres", "nobody")


class ServerMissingError(Exception):
    """No server can be started here; the message says why."""


class PostgreSQLServer:
    """A server that was started, until :meth:`stop`."""

    def __init__(self) -> None:
        self._as_user = _unprivileged() if os.geteuid() == 0 else {}
        self._tools = {name: _tool(name) for name in ("initdb", "pg_ctl")}
        self._folder = Path(tempfile.mkdtemp(prefix="taciturn-pg-"))
        if self._as_user:
            os.chown(self._folder, self._as_user["user"], self._as_user["group"])
        try:
            self._call("initdb", "--username=taciturn", "--auth=trust", "--no-sync", "--no-locale", "--encoding=UTF8")
            self._start()
        except BaseException:
            self.stop()
            raise

    @property
    def url(self) -> str:
        """Of a database that is empty at first."""
        return f"postgresql://taciturn@127.0.0.1:{self.port}/postgres"

    @property
    def crash(self) -> dict[str, Any]:
        """What to call ``subprocess.run`` with, from any program: the server crashes, and recovers."""
        return self._order("pg_ctl", "restart", "--wait", "--mode=immediate", f"--log={self._log}")

    def pause(self) -> None:
        """Crash, to be started again by :meth:`resume`."""
        self._call("pg_ctl", "stop", "--wait", "--mode=immediate")

    def resume(self) -> None:
        """Start again, with the same port."""
        self._call("pg_ctl", "start", "--wait", f"--log={self._log}")

    def stop(self) -> None:
        """Stop for good, and remove everything."""
        if (self._folder / "data" / "postmaster.pid").exists():
            self._call("pg_ctl", "stop", "--wait", "--mode=immediate", check=False)
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _log(self) -> Path:
        return self._folder / "log"

    def _start(self) -> None:
        settings = self._folder / "data" / "postgresql.conf"
        given = settings.read_text(encoding="utf-8")
        for attempt in range(3):
            with socket.create_server(("127.0.0.1", 0)) as free:
                self.port = free.getsockname()[1]
            # What a killed server had written is kept by the system; the power does not fail in these tests.
            own = (
                f"port = {self.port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{self._folder}'\n"
                "fsync = off\nmax_connections = 50\nshared_buffers = 16MB\n"
            )
            settings.write_text(given + own, encoding="utf-8")
            try:
                return self.resume()
            except ServerMissingError:
                # Somebody else may have taken the port.
                if attempt == 2:
                    raise

    def _order(self, tool: str, *arguments: str) -> dict[str, Any]:
        return {
            "args": [self._tools[tool], "-D", str(self._folder / "data"), *arguments],
            "cwd": str(self._folder),
            "env": {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
            "timeout": 120,
            **self._as_user,
        }

    def _call(self, tool: str, *arguments: str, check: bool = True) -> None:
        # Into a file: a server keeps what it was started with, and nobody would see the end of a pipe.
        with tempfile.TemporaryFile() as told:
            done = subprocess.run(
                **self._order(tool, *arguments), stdin=subprocess.DEVNULL, stdout=told, stderr=told, check=False
            )
            told.seek(0)
            if check and done.returncode:
                raise ServerMissingError(f"{tool} failed: {told.read().decode(errors='replace')[-300:]!r}")


def _tool(name: str) -> str:
    """A program of the server: on the path, or where Debian keeps it."""
    found = shutil.which(name) or next(
        (str(path) for path in sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)), None
    )
    if found is None:
        raise ServerMissingError(f"{name} is not here; make ci-tools installs PostgreSQL where it can")
    return found


def _unprivileged() -> dict[str, int]:
    for name in _UNPRIVILEGED:
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid}
    raise ServerMissingError("PostgreSQL refuses to run as root, and there is no other user")
