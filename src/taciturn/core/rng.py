"""Randomness: one interface, an AES-256-CTR keystream below it.

A :class:`Stream` is keyed by the operating system unless a seed is given; a seeded stream is the
same construction with a key derived from the seed, for reproduction only, and says so (``seeded``).

Three rules make noise safe to use once and only once:

* every fit opens a stream of its own and every stage of a plan spawns one (:meth:`Stream.spawn`), with
  fresh entropy of the system in its key unless the stream is seeded;
* a copy never repeats its original: unpickled, deep-copied or forked (by Python or behind its back), a
  secure stream takes a fresh key (the key itself is never written anywhere), and a seeded one refuses,
  because no copy could be both reproducible and different;
* no sample is built from fewer random bits than its floating-point result can resolve: 64-bit words
  are extended by further words wherever the leading one is small, so that both tails are complete
  and ``log(0)`` cannot occur.
"""

from __future__ import annotations

import hashlib
import math
import numbers
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from taciturn.core.errors import ParameterError, StreamError
from taciturn.core.validation import FloatArray, IndexArray, IntArray, WordArray, check_integer

_KEY_BYTES = 32
# Values per pass. The buffers of a pass stay in the second-level cache.
_PASS = 1 << 13
_ZEROS = bytes(8 * _PASS)
# Leading bits below this fill less than a double's fraction and are extended.
_SHORT = 1 << 53
_TO_UNIT = math.ldexp(1.0, -63)
_ONE = np.uint64(1)

# A process is known by its number and by how many of Python's forks lie behind it. A library that forks by
# itself calls no hook of Python, so that only the number tells; across namespaces numbers repeat, and the count tells.
_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


# What is called at every draw of a context, for audits.
_NOTICE: ContextVar[Callable[[], None] | None] = ContextVar("notice of draws", default=None)


@contextmanager
def draws_noticed(notice: Callable[[], None] | None) -> Iterator[None]:
    """Call ``notice`` whenever a stream draws in this context, or do not, for None."""
    token = _NOTICE.set(notice)
    try:
        yield
    finally:
        _NOTICE.reset(token)


class Stream:
    """A source of independent random numbers that is never shared.

    Use :meth:`of` to open one. A stream belongs to one thread.

    >>> stream = Stream.of(random_state=7)
    >>> stream.seeded
    True
    >>> stream.gumbels(3).shape
    (3,)
    """

    __slots__ = ("_children", "_encryptor", "_forks", "_key", "_process", "_seeded")

    def __init__(self, key: bytes, *, seeded: bool) -> None:
        self._seeded = seeded
        self._open(key)

    def _open(self, key: bytes) -> None:
        # Here, since most processes that import an estimator to load a model never draw.
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._key = key
        self._children = 0
        self._forks = _forks
        self._process = os.getpid()
        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    @classmethod
    def of(cls, random_state: int | None = None) -> Stream:
        """A stream keyed by the operating system, or by a seed (an integer >= 0)."""
        if random_state is None:
            return cls(secrets.token_bytes(_KEY_BYTES), seeded=False)
        if (
            not isinstance(random_state, numbers.Integral)
            or isinstance(random_state, bool | np.bool_)
            or random_state < 0
        ):
            remedy = "leave it at None for noise that protects, or give an integer to reproduce a run"
            raise ParameterError("random_state", random_state, "None or an integer >= 0", remedy)
        text = f"taciturn seeded stream {int(random_state)}".encode()
        return cls(hashlib.blake2b(text, digest_size=_KEY_BYTES).digest(), seeded=True)

    @property
    def seeded(self) -> bool:
        """Whether the stream can be replayed by whoever knows the seed."""
        return self._seeded

    def spawn(self, label: str) -> Stream:
        """A stream for one stage, independent of this one and of every other child.

        Unless the stream is seeded, the system adds fresh entropy to the child's key: a copy of this stream that
        no process can notice (a snapshot of a machine, resumed twice) repeats no noise from the next stage on.
        """
        self._guard_fork()
        text = f"{self._children}:{label}".encode()
        self._children += 1
        if not self._seeded:
            text += secrets.token_bytes(_KEY_BYTES)
        key = hashlib.blake2b(text, key=self._key, digest_size=_KEY_BYTES).digest()
        return Stream(key, seeded=self._seeded)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._seeded:
            raise StreamError(
                "a seeded stream cannot be copied: two copies would draw the same noise; "
                "pass the seed, or spawn one stream per task where the tasks run."
            )
        return (Stream.of, ())

    def __repr__(self) -> str:
        return f"Stream(seeded={self._seeded})"

    def _guard_fork(self) -> None:
        if self._forks == _forks and self._process == os.getpid():
            return
        if self._seeded:
            raise StreamError(
                "a seeded stream was carried into a forked process: parent and child would draw "
                "the same noise; open a stream in the child."
            )
        self._open(secrets.token_bytes(_KEY_BYTES))

    # ------------------------------------------------------------------ raw bits

    def words(self, size: int) -> WordArray:
        """``size`` uniform 64-bit words."""
        self._guard_fork()
        notice = _NOTICE.get()
        if notice is not None:
            notice()
        out = np.empty(size, dtype=np.uint64)
        view = out.data.cast("B") if size else memoryview(b"")
        for start in range(0, 8 * size, len(_ZEROS)):
            part = view[start : start + len(_ZEROS)]
            self._encryptor.update_into(_ZEROS[: len(part)], part)
        return out

    def below(self, bound: int) -> int:
        """One uniform integer in ``[0, bound)``, of any size, by rejection."""
        n_bits = (check_integer(1, bound=bound) - 1).bit_length()
        n_words = max(1, -(-n_bits // 64))
        while True:
            drawn = int.from_bytes(self.words(n_words).tobytes(), "little") >> (64 * n_words - n_bits)
            if drawn < bound:
                return drawn

    def integers(self, bound: int, size: int) -> IntArray:
        """``size`` uniform integers in ``[0, bound)``, ``bound <= 2**63``, without modulo bias."""
        shift = np.uint64(64 - max(1, (check_integer(1, 1 << 63, bound=bound) - 1).bit_length()))
        out = np.empty(size, dtype=np.int64)
        filled = 0
        while filled < size:
            drawn = (self.words(size - filled + 8) >> shift).view(np.int64)
            kept = drawn[drawn < bound][: size - filled]
            out[filled : filled + kept.size] = kept
            filled += kept.size
        return out

    # ------------------------------------------------------------------ distributions

    def uniforms(self, size: int) -> FloatArray:
        """Uniform on (0, 1], each the rounding of a real number with complete low tail."""
        return self._by_pass(size, lambda words: self._fractions(words)[0])

    def exponentials(self, size: int) -> FloatArray:
        """Exponential with mean 1."""

        def sample(words: WordArray) -> FloatArray:
            fractions, _ = self._fractions(words)
            np.log(fractions, out=fractions)
            return np.negative(fractions, out=fractions)

        return self._by_pass(size, sample)

    def laplaces(self, size: int) -> FloatArray:
        """Laplace with scale 1: the sign is the word's last bit, the size comes from the others."""

        def sample(words: WordArray) -> FloatArray:
            signs = (words & _ONE).view(np.int64) * 2.0
            signs -= 1.0
            fractions, _ = self._fractions(words)
            np.log(fractions, out=fractions)
            fractions *= signs
            return fractions

        return self._by_pass(size, sample)

    def gumbels(self, size: int) -> FloatArray:
        """Standard Gumbel, ``-log(E)`` with E exponential and accurate at *both* ends.

        E is large where a uniform u is near 0 and small where it is near 1. The word's last bit
        chooses the half, the other bits the distance ``p <= 1/2`` to its end: u is p or 1 - p.
        ``-log(1 - p)`` has relative error below ``2**-42`` unless ``p < 2**-11``, where log1p takes over.
        """

        def sample(words: WordArray) -> FloatArray:
            distance, short = self._fractions(words)
            distance *= 0.5
            upper = (words & _ONE).view(np.int64).astype(np.float64)
            np.subtract(upper, distance, out=upper)
            np.abs(upper, out=upper)
            np.log(upper, out=upper)
            small = short[(words[short] & _ONE) == _ONE]
            upper[small] = np.log1p(-distance[small])
            np.negative(upper, out=upper)
            np.log(upper, out=upper)
            return np.negative(upper, out=upper)

        return self._by_pass(size, sample)

    def normals(self, size: int) -> FloatArray:
        """Standard normal in floating point, by Box and Muller's transform.

        For releases that cannot be put on a lattice; see ``mechanisms.RoundedGaussian`` for those that can.
        """
        half = -(-size // 2)
        radius = np.sqrt(2.0 * self.exponentials(half))
        angle = 2.0 * math.pi * self.uniforms(half)
        out = np.concatenate((radius * np.cos(angle), radius * np.sin(angle)))
        return out[:size]

    def _by_pass(self, size: int, sample: Callable[[WordArray], FloatArray]) -> FloatArray:
        out = np.empty(size, dtype=np.float64)
        for start in range(0, size, _PASS):
            stop = min(start + _PASS, size)
            out[start:stop] = sample(self.words(stop - start))
        return out

    def _fractions(self, words: WordArray) -> tuple[FloatArray, IndexArray]:
        """``(w + r) / 2**63`` for the leading 63 bits w of each word, and where w is short.

        r is 1/2 where w alone fills a double. Where it does not (one word in 1024), r is a
        fraction of its own, drawn from the next words. So the result is a real uniform number
        rounded to relative precision 2**-52, in (0, 1].
        """
        leading = (words >> _ONE).view(np.int64)
        fractions = leading.astype(np.float64) + 0.5
        short = np.flatnonzero(leading < _SHORT)
        if short.size:
            rest, _ = self._fractions(self.words(short.size))
            fractions[short] = leading[short] + rest
        fractions *= _TO_UNIT
        return fractions, short
