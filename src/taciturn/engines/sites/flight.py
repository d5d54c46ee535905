"""The way between coordinator and sites: Arrow Flight over TLS in which both sides show a certificate of the plan.

Sites call the coordinator, since hospitals let connections out and none in. Each opens one stream in both directions;
requests come down, answers go up. Arrow carries the bytes of messages and never reads them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, Queue
from threading import Event, Lock, Thread
from typing import Any

from taciturn.core.errors import DataError
from taciturn.engines.sites.plan import COORDINATOR, PartyKeys, SitePlan
from taciturn.engines.sites.session import Channel, LostSiteError, Session, Site, SitesTable

try:
    import pyarrow as pa
    from pyarrow import flight
except ImportError:
    raise ModuleNotFoundError("several sites need pyarrow; run pip install 'taciturn[sites]'.") from None

_COMMAND = b"taciturn sites 1"
_END = b""
_LOOK = 0.2
_RETRY = 1.0
_PATIENCE = 5.0


class FlightChannel:
    """The stream that a site opened, to the coordinator."""

    def __init__(self, reader: Any, writer: Any, timeout: float) -> None:
        self._reader, self._writer, self._timeout = reader, writer, timeout
        self._inbox: Queue[bytes | None] = Queue()
        self._lock, self._open = Lock(), True

    def listen(self) -> None:
        """Take what the site says until it is gone or ends the stream, in the thread of the stream."""
        # An error's text could quote what was sent, so that nothing is made of it.
        with suppress(Exception):
            while True:
                self._inbox.put(self._reader.read_chunk().app_metadata.to_pybytes())
        # What writes to the stream is gone when this thread leaves it.
        with self._lock:
            self._open = False
        self._inbox.put(None)

    def send(self, message: bytes) -> None:
        """Send a message; LostSiteError if the site is gone."""
        with self._lock, suppress(pa.ArrowException, OSError):
            if self._open:
                self._writer.write_metadata(pa.py_buffer(message))
                return
        raise LostSiteError

    def receive(self) -> bytes:
        """The next message of the site; LostSiteError if it is gone, or silent for too long."""
        try:
            message = self._inbox.get(timeout=self._timeout)
        except Empty:
            message = None
        if message is None:
            # Whoever asks again is told the same.
            self._inbox.put(None)
            raise LostSiteError
        return message

    def close(self) -> None:
        """Have the site end the stream."""
        with suppress(LostSiteError):
            self.send(_END)


class Listener(flight.FlightServerBase):
    """Where the sites of a plan arrive. Nobody without a certificate of the plan gets as far as a stream."""

    def __init__(self, plan: SitePlan, keys: PartyKeys, timeout: float) -> None:
        self.plan, self._timeout = plan, timeout
        self._lock, self._changed = Lock(), Event()
        self._arrived: dict[str, FlightChannel] = {}
        super().__init__(
            f"grpc+tls://{plan.address}",
            tls_certificates=[(keys.certificate, keys.tls)],
            verify_client=True,
            root_certificates=b"".join(each.certificate for each in plan.sites),
        )

    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """One stream, for as long as it lasts; the name of the site is that in its certificate."""
        name = context.peer_identity().decode("utf-8", "replace")
        if descriptor.command != _COMMAND or name not in self.plan.pinned:
            raise flight.FlightUnauthenticatedError("not a site of the plan")
        channel = FlightChannel(reader, writer, self._timeout)
        with self._lock:
            if name in self._arrived:
                raise flight.FlightUnavailableError("the site is there already")
            self._arrived[name] = channel
        self._changed.set()
        try:
            channel.listen()
        finally:
            with self._lock:
                del self._arrived[name]

    def channels(self) -> dict[str, Channel]:
        """The channels of all sites, when all have arrived; DataError if one does not."""
        end = time.monotonic() + self._timeout
        while True:
            with self._lock:
                missing = [name for name in self.plan.pinned if name not in self._arrived]
                if not missing:
                    return dict(self._arrived)
            if time.monotonic() > end:
                raise DataError(
                    f"sites: expected all sites of the plan to connect, got none from {', '.join(missing)}; run "
                    "taciturn site there, with keys and certificates of this plan."
                )
            self._changed.wait(_LOOK)
            self._changed.clear()

    def end(self) -> None:
        """Let the sites go, and the address."""
        with self._lock:
            arrived = list(self._arrived.values())
        for channel in arrived:
            channel.close()
        # A site that hangs keeps its stream, and is not waited for.
        ending = Thread(target=self.shutdown, daemon=True)
        ending.start()
        ending.join(_PATIENCE)


def open_sites(
    plan: str | os.PathLike[str] | SitePlan, keys: str | os.PathLike[str], *, timeout: float = 600.0
) -> SitesTable:
    """Wait for the sites of a plan, and open their tables as one for ``fit``.

    **Privacy.** The coordinator knows exact totals over all sites before noise is added, and has to be trusted with
    them; certificates say so. It does not see what a single site adds (:mod:`~taciturn.engines.sites.pads`).

    Parameters
    ----------
    plan : str, path-like or SitePlan
        The agreed plan, or its file.
    keys : str or path-like
        The keys of the coordinator, which ``taciturn site --create-keys coordinator`` wrote.
    timeout : float, default=600.0
        Seconds to wait for the sites, and for the answer of each of them in every round.

    Returns
    -------
    table : SitesTable
        A context manager; sites wait for the next session when it is closed.
    """
    plan = plan if isinstance(plan, SitePlan) else SitePlan.read(plan)
    held = PartyKeys.read(keys)
    held.check(COORDINATOR, plan.certificate, None)
    try:
        listener: Listener | None = Listener(plan, held, timeout)
    except (OSError, ValueError, pa.ArrowException):
        listener = None
    if listener is None:
        raise DataError(f"sites: expected to listen at {plan.address}, and could not; see what else does.")
    Thread(target=listener.serve, daemon=True).start()
    try:
        return SitesTable(Session(plan, listener.channels()), listener.end)
    except BaseException:
        listener.end()
        raise


def serve(site: Site, keys: PartyKeys, told: Callable[[str], None]) -> None:
    """Answer the coordinator of a plan, session after session and without end; ``told`` what happens."""
    address, waiting = site.plan.address, False
    while True:
        client = flight.FlightClient(
            f"grpc+tls://{address}",
            tls_root_certs=site.plan.certificate,
            cert_chain=keys.certificate,
            private_key=keys.tls,
            override_hostname=COORDINATOR,
        )
        try:
            writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(_COMMAND))
            with writer:
                _converse(site, reader, writer, told)
            waiting = False
            told(f"the session has ended, {site.n_requests:,} requests until now; waiting for the next one")
        except (OSError, pa.ArrowException):
            # It is not there, is another one, or does not know this site.
            if not waiting:
                told(f"nobody with the coordinator's certificate answers at {address} and takes this site's; waiting")
            waiting = True
        finally:
            client.close()
        time.sleep(_RETRY)


def _converse(site: Site, reader: Any, writer: Any, told: Callable[[str], None]) -> None:
    writer.write_metadata(pa.py_buffer(site.hello()))
    told("connected to the coordinator; waiting for the other sites")
    while True:
        try:
            message = reader.read_chunk().app_metadata.to_pybytes()
        except StopIteration:
            return
        if message == _END:
            return
        writer.write_metadata(pa.py_buffer(site.answer(message)))
