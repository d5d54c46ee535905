r"""One-time pads between pairs of sites, which cancel in the sum over all sites.

Sites i and j hold a secret in common. For every request of a coordinator both derive the same vector
:math:`p_{ij}` of 64-bit words; the site that comes first in the plan adds it to its sum and the other subtracts it,
modulo :math:`2^{64}`. Sums over the table are 64-bit integers, so that the total of the masked sums is the total of the
sums, to the bit (Bonawitz et al. 2017, without their recovery of lost sites: a lost site ends the round).

**The secret.** ``X25519(s_i, s_j) || X25519(e_i, e_j)``: s are the sites' own keys, whose public halves the plan pins;
e are drawn anew by each site for each session, and the coordinator passes their public halves on. Whoever exchanges an
e on the way does not know the first half. Whoever obtains an s later does not know the second half of a past session
whose e were passed on as they were drawn.

**The pad of one request.** AES-256 in counter mode, under the key ``HKDF-SHA256(secret, salt=session, info=request)``:

* ``session`` is the hash of the plan and of the public e of all sites, in the order of the plan;
* ``request`` are the names of the two sites, the number of the request and the hash of its bytes.

**No pad masks two sums.** Let a site send two masked sums, with pads shared with one peer that are equal. HKDF and AES
under distinct inputs give independent keys and streams but with negligible probability, so that secret, session and
request were equal. A site draws e afresh for each session and keeps it nowhere: if the sessions differ, equal hashes
mean that it drew one of 2^252 keys twice. In one session the numbers of the requests that a site answers increase
strictly: it refuses a number that is not larger than the last, whatever the request is and whether or not the last one
was answered. Nothing has to be kept across restarts, since a site that restarts begins a session, and what a
coordinator replays from an earlier one belongs to a key that is gone.

**No split view.** The bytes of a request are hashed into the pad. If a coordinator sends different requests to
different sites, or shows them different keys, then their pads do not cancel, and the total is uniformly random.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taciturn.core.errors import DataError

Words = NDArray[np.uint64]

_LABEL = b"taciturn sites 1"


@dataclass(frozen=True, slots=True)
class SitePads:
    """The pads of one site in one session.

    ``secrets`` are those with each other site, by name; ``order`` are the names of all sites as in the plan.
    """

    name: str
    order: tuple[str, ...]
    secrets: Mapping[str, bytes]
    session: bytes

    def mask(self, sums: Words, number: int, request: bytes) -> Words:
        """Sums with the pads of a request."""
        masked, own = sums.copy(), self.order.index(self.name)
        for place, peer in enumerate(self.order):
            if place == own:
                continue
            pad = self.pad(peer, number, request, sums.size)
            if own < place:
                masked += pad
            else:
                masked -= pad
        return masked

    def pad(self, peer: str, number: int, request: bytes, n_words: int) -> Words:
        """The pad that this site shares with another for one request."""
        # Here and below: reading a plan alone needs none of it.
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        pair = sorted((self.name, peer), key=self.order.index)
        # Names end before the next begins, whatever they are.
        parts = [part for name in pair for part in (len(name.encode()).to_bytes(4, "big"), name.encode())]
        info = b"".join((_LABEL, *parts, number.to_bytes(8, "big"), hashlib.sha256(request).digest()))
        key = HKDF(SHA256(), 32, self.session, info).derive(self.secrets[peer])
        stream = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor().update(bytes(8 * n_words))
        words: Words = np.frombuffer(stream, dtype="<u8").astype(np.uint64)
        return words


class SessionKey:
    """The key that a site draws for one session; it is written nowhere, and gone with the session."""

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        self._private = X25519PrivateKey.generate()
        self.public: bytes = self._private.public_key().public_bytes_raw()

    def pads(
        self,
        name: str,
        own: bytes,
        pinned: Mapping[str, bytes],
        shown: Mapping[str, bytes],
        plan_digest: bytes,
    ) -> SitePads:
        """The pads of this session: ``own`` is the site's private key, ``pinned`` are the public keys of the plan.

        ``shown`` are the public session keys of all sites, as the coordinator passes them on.
        """
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

        hashed = hashlib.sha256(_LABEL + plan_digest)
        for each in pinned:
            hashed.update(shown[each])
        long_term, secrets = X25519PrivateKey.from_private_bytes(own), dict[str, bytes]()
        for peer, key in pinned.items():
            if peer == name:
                continue
            try:
                # Raises for keys of small order, with which every secret is the same.
                secrets[peer] = long_term.exchange(X25519PublicKey.from_public_bytes(key)) + self._private.exchange(
                    X25519PublicKey.from_public_bytes(shown[peer])
                )
            except ValueError:
                refused = peer
            else:
                continue
            raise DataError(f"sites: expected a usable key of site {refused!r}, got none; create its keys anew.")
        return SitePads(name, tuple(pinned), secrets, hashed.digest())
