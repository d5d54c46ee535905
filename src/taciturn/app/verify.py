"""Verification of a folder of results: files, signatures, certificates and ledgers."""

from __future__ import annotations

import hashlib
import html
import json
import math
import os
import re
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from taciturn._version import __version__
from taciturn.app.model_file import SPLIT_RECORDS, Model, ScoreFile, model_digest, public_facts
from taciturn.charts import round_safely
from taciturn.core.errors import AccountError, CertificateError, DataError, ParameterError, TaciturnError
from taciturn.core.sklearn_base import is_classifier
from taciturn.core.validation import parse_strictly
from taciturn.privacy.account import person_column_of
from taciturn.privacy.calibration import best_bound, proves
from taciturn.privacy.certificate import Certificate
from taciturn.privacy.claim import Release, event_of_releases, facts_of_parts, in_pairs
from taciturn.privacy.events import for_group
from taciturn.privacy.gdp import gaussian_cost
from taciturn.privacy.ledger import DISTANCE_UNITS, GAUSSIAN_UNITS, LedgerEntry, check_entries
from taciturn.tables.columns import quoted
from taciturn.tables.formats import check_readable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


HOLDS, FAILS, NOT_CHECKED = "holds", "refused", "not checked"


@dataclass(frozen=True, slots=True)
class CheckedItem:
    """One thing that was looked at, its outcome ("holds", "refused" or "not checked"), and what was found, in words."""

    name: str
    outcome: str
    words: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked of a folder or a file, and what was not.

    The ``certificate`` is None unless it holds. ``signed_by`` is the owner's public key in hexadecimal digits, if it
    was given and signed these files. ``certificates`` are all that hold, by the name of their file: that of the fit or
    the selection, and that of a score beside it. ``model`` is the one of ``model.json``, if there is one.
    """

    items: tuple[CheckedItem, ...]
    certificate: Certificate | None
    signed_by: str | None
    certificates: Mapping[str, Certificate]
    model: Model | None

    @property
    def holds(self) -> bool:
        """Whether nothing was refused."""
        return all(item.outcome != FAILS for item in self.items)


class VerificationError(CertificateError):
    """Files contradict themselves, one another or their signature; ``verification`` has all that was looked at."""

    verification: Verification | None = None


# --- The files of a folder that may come from anybody: read once, in bounded memory, and never through a link.

SIGNATURE_NAME = "signature.json"
"""Name of the signature of a folder."""

KNOWN: Mapping[str, int] = {
    "certificate.json": 1 << 26,
    "model.json": 1 << 30,
    "report.html": 1 << 28,
    "selection.json": 1 << 26,
    "score.json": 1 << 26,
    SIGNATURE_NAME: 1 << 20,
}
"""Files that are read, and the largest size of each in bytes."""

_MOST_FILES = 1000
_MOST_OTHER = 1 << 32
_BLOCK = 1 << 20


@dataclass(frozen=True)
class StudyFiles:
    """The files of a folder (``whole``), or one file: the contents of those that are read, by name.

    ``digests`` are SHA-256 of every file in hexadecimal digits; other files are there without their contents.
    """

    contents: Mapping[str, bytes]
    digests: Mapping[str, str]
    whole: bool

    @property
    def others(self) -> tuple[str, ...]:
        """Names of files that are not read."""
        return tuple(sorted(self.digests.keys() - self.contents.keys()))

    def text(self, name: str) -> str:
        """The content of a file as text."""
        try:
            return self.contents[name].decode("utf-8")
        except UnicodeDecodeError:
            raise DataError(f"{quoted(name)}: expected UTF-8, got another encoding; ask for a fresh copy.") from None


def read_study_files(path: Path) -> StudyFiles:
    """Read a folder, or a file with the signature beside it, if there is one."""
    path = Path(os.path.realpath(path))
    contents: dict[str, bytes] = {}
    digests: dict[str, str] = {}
    try:
        whole = path.is_dir()
        if whole:
            for name in _listed(path):
                if name in KNOWN:
                    contents[name] = read_bounded(path / name, KNOWN[name])
                else:
                    digests[name] = _digest(path / name)
        else:
            contents[path.name] = read_bounded(path, KNOWN.get(path.name, KNOWN["model.json"]))
            # A signature of its own, or the one of the folder that it is in.
            for beside in (signature_beside(path), path.with_name(SIGNATURE_NAME)):
                if os.path.lexists(beside) and beside != path:
                    contents[SIGNATURE_NAME] = read_bounded(beside, KNOWN[SIGNATURE_NAME])
                    break
    except OSError as error:
        reason = (error.strerror or "an error").lower()
        raise DataError(
            f"{quoted(path.name)}: expected a file or a folder of files that can be read ({reason}); check the name."
        ) from None
    digests |= {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    return StudyFiles(contents, digests, whole)


def signature_beside(path: Path) -> Path:
    """Where the signature of a single file stands: ``score.signature.json`` beside ``score.json``."""
    return path.with_name(f"{path.stem}.signature.json")


def read_bounded(path: Path, most: int) -> bytes:
    """Read a regular file of at most so many bytes; a link, a pipe, a device or a larger file is refused."""
    with _opened(path, most) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise DataError(_too_large(path, most))
    return content


def _listed(folder: Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            if count >= _MOST_FILES:
                raise DataError(
                    f"{quoted(folder.name)}: expected a folder that a command wrote, got one with more than "
                    f"{_MOST_FILES:,} files; name the folder itself."
                )
            if entry.is_symlink() or not entry.is_file(follow_symlinks=False):
                raise DataError(
                    f"{quoted(entry.name)}: expected files alone in the folder, got a link, a folder or a device; "
                    "remove it, or ask for a fresh copy."
                )
            yield entry.name


@contextmanager
def _opened(path: Path, most: int) -> Iterator[BinaryIO]:
    """Open a regular file of a bounded size."""
    # A pipe would block when it is opened, and a link may have been put there since the folder was listed.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise DataError(
                f"{quoted(path.name)}: expected a file on a disk, got something else; ask for a fresh copy."
            )
        if found.st_size > most:
            raise DataError(_too_large(path, most))
        yield file


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with _opened(path, _MOST_OTHER) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _too_large(path: Path, most: int) -> str:
    return f"{quoted(path.name)}: expected a file of at most {most:,} bytes, got a larger one; ask for a fresh copy."


# --- Ed25519 keys in PEM files, as ``openssl genpkey -algorithm ed25519`` writes them.

_MOST_KEY = 1 << 16
_MAKE_ONE = "make one with openssl genpkey -algorithm ed25519 -out key.pem"


class NeedsPasswordError(ParameterError):
    """A private key is encrypted, and no password was given."""


def read_private_key(path: str | os.PathLike[str], password: bytes | None = None) -> Ed25519PrivateKey:
    """Read an Ed25519 private key from a PEM file, which the ``password`` decrypts."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    text, shown = _read("key", path), str(path)
    encrypted = b"ENCRYPTED" in text
    if password is None and encrypted:
        raise NeedsPasswordError("key", shown, "a password for a key that is encrypted", "give its password")
    expected, remedy = "a private Ed25519 key in a PEM file", _MAKE_ONE
    if encrypted:
        expected, remedy = "an Ed25519 key and its own password", "check the password and the file"
    try:
        key = load_pem_private_key(text, password if encrypted else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ParameterError("key", shown, expected, remedy) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ParameterError("key", shown, "an Ed25519 key, got one of another kind", _MAKE_ONE)
    return key


def read_public_key(path: str | os.PathLike[str]) -> Ed25519PublicKey:
    """Read a public key from a PEM file."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    text, shown = _read("public_key", path), str(path)
    remedy = "ask its owner for what openssl pkey -in key.pem -pubout wrote"
    if b"PRIVATE" in text:
        raise ParameterError("public_key", shown, "a public key, got a private one", remedy)
    try:
        key = load_pem_public_key(text)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ParameterError("public_key", shown, "a public Ed25519 key in a PEM file", remedy) from None
    if not isinstance(key, Ed25519PublicKey):
        raise ParameterError("public_key", shown, "an Ed25519 key, got one of another kind", remedy)
    return key


def _read(parameter: str, path: str | os.PathLike[str]) -> bytes:
    check_readable(parameter, Path(path))
    # Keys are often links; what they hold is checked, and they are not part of a folder that somebody else wrote.
    return read_bounded(Path(os.path.realpath(path)), _MOST_KEY)


# --- A manifest of files with the SHA-256 of each, signed with Ed25519.
#
# ``signature.json`` names its public key for information. Anybody can make a key and sign with it, so that a signature
# says something only to a reader who has the owner's key from elsewhere.

_FORMAT = "taciturn signature"
_VERSION = 1
_KEYS = ("format", "version", "algorithm", "files", "public_key", "signature")
_LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a signature says: the digests of files by name, the key that it names, and the signature itself."""

    files: Mapping[str, str]
    public_key: str
    signature: str


def sign_files(files: Mapping[str, bytes], key: Ed25519PrivateKey) -> str:
    """The text of ``signature.json`` for files, contents by name, and an Ed25519 private key."""
    return sign_digests({name: hashlib.sha256(content).hexdigest() for name, content in files.items()}, key)


def sign_digests(digests: Mapping[str, str], key: Ed25519PrivateKey) -> str:
    """Sign files by the SHA-256 of each."""
    digests = {name: digests[name] for name in sorted(digests)}
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "algorithm": "Ed25519",
        "files": digests,
        "public_key": key_digits(key.public_key()),
        "signature": key.sign(_message(digests)).hex(),
    }
    return json.dumps(content, indent=2) + "\n"


def key_digits(key: Ed25519PublicKey) -> str:
    """A public key as 64 hexadecimal digits."""
    return key.public_bytes_raw().hex()


def check_signature(files: StudyFiles, trusted: Ed25519PublicKey | None) -> str:
    """Raise unless the signature is one of these very files; return the digits of the key that made it.

    ``trusted`` is the Ed25519 public key of the owner. None: the key that the signature names, which shows only that
    the files have not changed since somebody signed them.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    manifest = _signature_read(files.text(SIGNATURE_NAME))
    if trusted is not None and manifest.public_key != key_digits(trusted):
        raise CertificateError(
            f"{SIGNATURE_NAME}: expected a signature by the key that was given, got one by another key; do not rely on "
            "these files, and ask their owner."
        )
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(manifest.public_key)) if trusted is None else trusted
    try:
        key.verify(bytes.fromhex(manifest.signature), _message(manifest.files))
    except InvalidSignature:
        raise CertificateError(
            f"{SIGNATURE_NAME}: expected a signature of the files that it lists, got one of something else; do not "
            "rely on these files, and ask their owner."
        ) from None
    found = {name: digest for name, digest in files.digests.items() if name != SIGNATURE_NAME}
    for name, digest in found.items():
        if name not in manifest.files:
            raise CertificateError(
                f"{quoted(name)}: expected a file that the signature covers, got one that it does not; remove it, and "
                "do not rely on it."
            )
        if manifest.files[name] != digest:
            raise CertificateError(
                f"{quoted(name)}: expected the file that was signed, got another; do not rely on it, and ask its owner "
                "for a fresh copy."
            )
    missing = sorted(manifest.files.keys() - found.keys())
    if files.whole and missing:
        raise CertificateError(
            f"{quoted(missing[0])}: expected every file that was signed, and it is missing; ask the owner for a fresh "
            "copy."
        )
    return manifest.public_key


def _message(files: Mapping[str, str]) -> bytes:
    """Format and version are part of it, so that nothing else that the key signs can be taken for it."""
    content = {"format": _FORMAT, "version": _VERSION, "files": dict(files)}
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode("ascii")


def _signature_read(text: str) -> Manifest:
    content = parse_strictly(text)
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise _damaged(f"JSON with format {_FORMAT!r}")
    if content.get("version") != _VERSION or isinstance(content["version"], bool):
        raise _damaged(f"version {_VERSION}")
    if sorted(content) != sorted(_KEYS) or content["algorithm"] != "Ed25519":
        raise _damaged("the fields of an Ed25519 signature")
    files = content["files"]
    if not isinstance(files, dict) or not 0 < len(files) <= _MOST_FILES:
        raise _damaged("the names and digests of files")
    for name, digest in files.items():
        if not 0 < len(name) <= _LONGEST_NAME or name == SIGNATURE_NAME or not _has_digits(digest, 64):
            raise _damaged("a SHA-256 digest for each name")
    if not _has_digits(content["public_key"], 64) or not _has_digits(content["signature"], 128):
        raise _damaged("a key and a signature in hexadecimal digits")
    return Manifest(files, content["public_key"], content["signature"])


def _has_digits(value: Any, count: int) -> bool:
    return isinstance(value, str) and re.fullmatch(f"[0-9a-f]{{{count}}}", value) is not None


def _damaged(expected: str) -> CertificateError:
    return CertificateError(f"{SIGNATURE_NAME}: expected {expected}, got something else; ask for a fresh copy.")


# --- Whether a result and its certificate speak of the same fit: public facts that both state are equal.
#
# These are contradictions that need no signature to be seen. Two files that were changed alike do not contradict each
# other; of coefficients, say, a certificate states nothing.

# Parameters that a certificate states as they are; where a fit chose a value, it states that.
_STATED = ("x_bound", "n_nonzero", "invalid")
# A budget is stated where what was accounted for is at least this share of it, and a millionth for other machines. No
# model leaves more of its budget unspent: fits of every class over many budgets, relations and shapes spend all of it.
LEAST_SHARE = 0.999 * (1.0 - 1e-6)
# Facts that every fit and every score about records or persons states.
_OF_RECORDS = frozenset({"invalid", "metric", "estimand"})
# Budgets are split with one multiplication.
_ROUNDING = 1e-9


def check_same_certificate(name: str, inside: Any, beside: Any) -> None:
    """Raise unless the certificate inside a file is the one in ``certificate.json``."""
    if inside != beside:
        raise CertificateError(
            f"{name}: expected the certificate that certificate.json holds, got another; one of the two files is not "
            "of this fit, ask for a fresh copy of the folder."
        )


def check_no_release_missing(certificate: Certificate) -> None:
    """Raise if a certificate states clearly more than its events prove: then it lists too few releases.

    A fit states what was accounted for, or its budget where that is larger by less than a thousandth. So does a sum of
    parts, which is stated where the parts together do not cost clearly less.
    """
    needed = certificate.epsilon * LEAST_SHARE
    if certificate.is_proved and needed > _cost(certificate, certificate.delta, certificate.group_size):
        raise CertificateError(
            f"epsilon={certificate.epsilon!r}: expected what its events prove, got more, so that releases are missing "
            "or stated with too much noise; do not rely on this certificate, and ask for the one of the fit."
        )


def check_unit_facts(certificate: Certificate) -> None:
    """Raise unless persons and halves are stated by a fit that has them.

    A fit about persons states what it estimates, and the mean over rows of single records has no such fact. Records are
    split in halves for standard errors alone, once for each fit with ``inference=True``: halves that no fit made would
    divide the cost of its releases between them.
    """
    persons = certificate.unit == "person"
    parts = list(facts_of_parts(certificate.public))
    # Parts that release nothing are about persons and records alike.
    stated = ["estimand" in facts for facts in parts if not _OF_RECORDS.isdisjoint(facts)]
    if (persons and not stated) or any(found != persons for found in stated):
        raise CertificateError(
            f"unit={certificate.unit!r}: expected an estimand in the public facts of fits about persons, and of those "
            "alone; do not rely on this certificate, and ask for the one of the fit."
        )
    if not persons and any(True for _ in public_facts("person column", certificate.public)):
        raise CertificateError(
            f"unit={certificate.unit!r}: expected 'person', since the certificate names a column of persons; do not "
            "rely on this certificate, and ask for the one of the fit."
        )
    pairs = sum(
        any(release.half is not None for run in runs for release in run) for runs in in_pairs(certificate.events)
    )
    if pairs > sum(fact == SPLIT_RECORDS for fact in public_facts("inference", certificate.public)):
        raise CertificateError(
            "events: expected releases about halves of the records only from fits with standard errors, which state "
            "inference as a public fact; do not rely on this certificate, and ask for the one of the fit."
        )


def check_releases_listed(file: str, certificate: Certificate) -> None:
    """Raise if the certificate of a model or a score lists no release: each is made of some."""
    if not certificate.events:
        raise CertificateError(
            f"{file}: expected a certificate that lists what was released, got one without a release; do not rely on "
            "this file, and ask for that of the fit."
        )


def check_model_facts(model: Model) -> None:
    """Raise if a model contradicts its certificate in what both state."""
    certificate, estimator = model.certificate, model.estimator
    check_releases_listed("model.json", certificate)
    if certificate.status == "as published":
        # Only taciturn.published issues such certificates, and its models have no files.
        raise _contradiction("model.json", "status")
    _check_fact(certificate, "features", estimator.n_features_in_)
    for name in _STATED:
        _check_fact(certificate, name, getattr(estimator, name, None))
    if is_classifier(estimator):
        _check_fact(certificate, "classes", estimator.classes_.tolist())
    elif model.task == "survive":
        _check_fact(certificate, "cuts", estimator.cuts_.tolist())
    else:
        target = model.bounds.target
        for name in ("weight_bound", "exposure_bound"):
            _check_fact(certificate, name, getattr(estimator, name, None))
        stated = None if target.lower is None else [target.lower, target.upper]
        for ends in (list(estimator.y_bounds_), stated):
            _check_fact(certificate, "y_bounds", ends)
    if certificate.relation == "add-remove":
        _check_fact(certificate, "records", estimator.n_public)
    most = [fact for fact in public_facts("n_nonzero", certificate.public) if type(fact) is int]
    if most and int(np.sum(estimator.support_)) > max(most):
        raise _contradiction("model.json", "n_nonzero")
    _check_budget(certificate, estimator)
    column, columns = model.bounds.person, public_facts("person column", certificate.public)
    if (certificate.unit == "person") != (column is not None) or any(fact != column for fact in columns):
        raise _contradiction("model.json", "person column")
    _check_seed(certificate, model.command)


def check_selection_facts(certificate: Certificate, features: Any) -> None:
    """Raise if a list of selected features contradicts its certificate."""
    if not isinstance(features, list) or not all(isinstance(name, str) for name in features):
        raise CertificateError("selection.json: expected a list of names, got something else; ask for a fresh copy.")
    if len(set(features)) < len(features):
        raise CertificateError("selection.json: expected every name once, got one twice; ask for a fresh copy.")
    if len(features) not in public_facts("features", certificate.public):
        # A selector that keeps every feature releases nothing, and leaves its whole budget.
        check_releases_listed("selection.json", certificate)
    if certificate.unit == "person" and not any(True for _ in public_facts("person column", certificate.public)):
        raise _contradiction("selection.json", "person column")
    stated = [fact for fact in public_facts("selected", certificate.public) if type(fact) is int]
    if stated and len(features) not in stated:
        raise _contradiction("selection.json", "selected")


def _check_fact(certificate: Certificate, name: str, value: Any) -> None:
    """A composed certificate states facts of several fits, and one of them is that of the model."""
    stated = list(public_facts(name, certificate.public))
    if value is None or value == "auto" or not stated or "auto" in stated:
        return
    if not any(_equal(fact, value) for fact in stated):
        raise _contradiction("model.json", name)


def _equal(fact: Any, value: Any) -> bool:
    # True equals 1 in Python, but is another label.
    if isinstance(fact, list) and isinstance(value, list):
        return len(fact) == len(value) and all(map(_equal, fact, value))
    return bool(fact == value) and isinstance(fact, bool) == isinstance(value, bool)


def _check_budget(certificate: Certificate, estimator: Any) -> None:
    """A fit never states more than its budget, which several releases share, and it spends all of it."""
    if not certificate.is_proved:
        return
    if "part 1" not in certificate.public and certificate.group_size == 1:
        for name in ("epsilon", "delta"):
            if getattr(certificate, name) > getattr(estimator, name) * (1.0 + _ROUNDING):
                raise _contradiction("model.json", name)
    # Releases besides those of the model can only cost more at the same delta.
    if _cost(certificate, estimator.delta) >= estimator.epsilon * LEAST_SHARE:
        return
    raise CertificateError(
        f"model.json: expected releases that cost its budget of epsilon={estimator.epsilon:g} at "
        f"delta={estimator.delta:g}, got fewer, or with more noise; do not rely on this file, and ask for that of the "
        "fit."
    )


def _cost(certificate: Certificate, delta: float, group_size: int = 1) -> float:
    """What the events of a certificate cost at a delta, for a group of records."""
    event = for_group(certificate.event, group_size)
    return best_bound(event, delta, ordered=certificate.ordered).epsilon


def _check_seed(certificate: Certificate, command: str) -> None:
    """A command with a seed makes a seeded fit; a model that was made in Python may have any command."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if "--seed" in words and not certificate.seeded:
        raise _contradiction("model.json", "seeded")


def _contradiction(file: str, name: str) -> CertificateError:
    return CertificateError(
        f"{file}: expected the same {name} as its certificate states, got another; one of the two is not of this fit, "
        "ask for a fresh copy of the folder."
    )


# --- Certificates against the ledger of an account: whether an entry paid for what a certificate lists.
#
# A certificate names the entry that reserved its price. The entry is looked up in the chain, and the releases of the
# certificate are priced again: by :func:`taciturn.privacy.gdp.gaussian_cost` for the Gaussian budget of the account,
# and by what can be proved at the reserved (epsilon, delta) for its (epsilon, delta) budget. A composed certificate
# names an entry for each of its parts but does not say where the releases of one part end, so that its releases are
# divided among the entries in order, as many to each as its price covers.
#
# What this cannot tell: whether a file belongs to the result beside it. A certificate that was copied to another result
# of the same plan looks the same; a signature over both helps.


def check_head(certificate: Certificate, entries: Sequence[LedgerEntry]) -> list[LedgerEntry]:
    """Check that entries of an account, from ``check_entries``, paid for everything that a certificate lists.

    Returns the reservations that paid, in the order of the certificate. Raises AccountError if the certificate names no
    entry, one that is not in the chain or was given back, or one that paid for less or for more; if relation, unit,
    number of records, epsilon or delta differ.
    """
    if certificate.seeded:
        raise _wrong("seeded=True", "noise that cannot be replayed, which alone an account pays for")
    parts = list(_parts(certificate))
    if all(head is None for _, head in parts):
        raise AccountError(
            "account_head=None: expected a certificate of a fit that an account paid for; this one counts beside every "
            "account, fit with one."
        )
    paid = [None if head is None else _find(head, entries) for _, head in parts]
    _check_terms(certificate, entries)
    for (facts, _), entry in zip(parts, paid, strict=True):
        if entry is not None:
            _check_count(facts, entry, entries[0])
    found = [entry for entry in paid if entry is not None]
    if len({entry.sequence for entry in found}) < len(found):
        raise _wrong("account_head", "an entry for each part, and not the same one twice")
    numbers = ", ".join(str(entry.sequence) for entry in found)
    shares: list[tuple[Sequence[Release], LedgerEntry, bool]]
    if certificate.account_head is not None:
        shares = [(certificate.events, found[0], certificate.ordered)]
    else:
        shares = list(_shares(certificate.events, paid))
    if sum(len(releases) for releases, _, _ in shares) < len(certificate.events) or not all(
        _is_covered(releases, entry, ordered=ordered) for releases, entry, ordered in shares
    ):
        raise _wrong("events", f"releases that the price reserved by entry {numbers} covers")
    if not all(_is_used(releases, entry, ordered=ordered) for releases, entry, ordered in shares):
        raise _wrong("events", f"all releases that the price reserved by entry {numbers} paid for, found fewer")
    _check_reserved(certificate, found, numbers)
    return found


def check_heads(
    certificates: Mapping[str, Certificate], entries: Sequence[LedgerEntry]
) -> dict[str, list[LedgerEntry] | AccountError]:
    """Check certificates, by the name of their file, also against one another: an entry pays for one fit.

    Returns by the same names the reservations that paid, or what is wrong.
    """
    seen: dict[str, Any] = {}
    verdicts: dict[str, list[LedgerEntry] | AccountError] = {}
    for name, certificate in certificates.items():
        try:
            paid = check_head(certificate, entries)
            for head, facts in _facts_by_head(certificate).items():
                if seen.setdefault(head, facts) != facts:
                    raise _wrong("account_head", "an entry of its own, found that of another fit among these files")
            verdicts[name] = paid
        except AccountError as error:
            verdicts[name] = error
    return verdicts


def _facts_by_head(certificate: Certificate) -> dict[str, dict[str, Any]]:
    """The entries that a certificate names, with the public facts of what each of them paid for."""
    return {
        head: {name: fact for name, fact in facts.items() if name != "account_head"}
        for facts, head in _parts(certificate)
        if head is not None
    }


def _parts(certificate: Certificate) -> Iterator[tuple[Mapping[str, Any], str | None]]:
    """The facts of each part of a certificate, with the entry that it names."""
    if certificate.account_head is not None:
        yield certificate.public, certificate.account_head
        return
    for facts in facts_of_parts(certificate.public):
        head = facts.get("account_head") if facts is not certificate.public else None
        yield facts, head if isinstance(head, str) else None


def _find(head: str, entries: Sequence[LedgerEntry]) -> LedgerEntry:
    found = next((entry for entry in entries if entry.hash == head), None)
    if found is None:
        raise AccountError(
            f"account_head={head[:12]}...: expected an entry of account={entries[0].account!r}, found none among "
            f"{len(entries)}; the certificate is of another account, or this ledger is an older copy or was rewritten: "
            "do not spend from it, and look for the newest copy."
        )
    if found.kind != "reserved":
        raise _wrong(f"account_head={head[:12]}...", f"a reservation, found an entry that says {found.kind!r}")
    if any(entry.kind == "released" and entry.reservation == found.sequence for entry in entries):
        raise _wrong(f"account_head={head[:12]}...", "a reservation that was not given back before anything was read")
    return found


def _check_terms(certificate: Certificate, entries: Sequence[LedgerEntry]) -> None:
    terms = entries[0].facts
    for name in ("relation", "unit"):
        if getattr(certificate, name) != terms[name]:
            raise _wrong(f"{name}={getattr(certificate, name)!r}", f"{terms[name]!r}, as the account states")
    column = person_column_of(list(entries))
    for stated in public_facts("person column", certificate.public):
        if column is not None and stated != column:
            raise _wrong(f"person column {stated!r}", f"{column!r}, as the account states")


def _check_count(facts: Mapping[str, Any], entry: LedgerEntry, opened: LedgerEntry) -> None:
    stated, reserved, most = facts.get("records"), entry.facts["n"], opened.facts["n"]
    if stated != reserved:
        raise _wrong(f"records={stated!r}", f"{reserved!r}, for which entry {entry.sequence} was reserved")
    if reserved is not None and most is not None and reserved > most:
        raise _wrong(f"records={stated!r}", f"at most {most}, as the account states")


def _shares(
    releases: Sequence[Release], paid: Sequence[LedgerEntry | None]
) -> Iterator[tuple[Sequence[Release], LedgerEntry, bool]]:
    """Releases divided among entries in order; a part without an entry released nothing."""
    # Fewer releases cost no more, so that it is best to give each entry as many as its price covers.
    at = 0
    for entry in paid:
        if entry is not None:
            count = _count_covered(releases[at:], entry)
            yield releases[at : at + count], entry, entry.facts["ordered"]
            at += count


def _count_covered(releases: Sequence[Release], entry: LedgerEntry) -> int:
    ordered = entry.facts["ordered"]
    low, high = 0, len(releases)
    while low < high:
        middle = (low + high + 1) // 2
        if _is_covered(releases[:middle], entry, ordered=ordered):
            low = middle
        else:
            high = middle - 1
    return low


def _is_covered(releases: Sequence[Release], entry: LedgerEntry, *, ordered: bool) -> bool:
    event, price = event_of_releases(releases), entry.price
    if price.epsilon:
        return proves(event, *price.pair, ordered=ordered)
    # Without the factor by which a price is raised, since that is what covers another machine's last digits.
    squared, distance = gaussian_cost(event, ordered=ordered)
    return (
        math.isfinite(squared)
        and Fraction(squared) * GAUSSIAN_UNITS <= price.gaussian
        and Fraction(distance) * DISTANCE_UNITS <= price.distance
    )


def _is_used(releases: Sequence[Release], entry: LedgerEntry, *, ordered: bool) -> bool:
    """Whether releases cost what was paid for them: a fit reserves the price of its plan, and no plan costs less."""
    event, price = event_of_releases(releases), entry.price
    if price.epsilon:
        epsilon, delta = price.pair
        return best_bound(event, delta, ordered=ordered).epsilon >= epsilon * LEAST_SHARE
    squared, _ = gaussian_cost(event, ordered=ordered)
    return Fraction(squared) * GAUSSIAN_UNITS >= price.gaussian * Fraction(LEAST_SHARE)


def _check_reserved(certificate: Certificate, paid: Sequence[LedgerEntry], numbers: str) -> None:
    """The stated epsilon and delta against the budgets of the entries."""
    epsilon, delta = (math.fsum(entry.facts[name] for entry in paid) for name in ("epsilon", "delta"))
    if not math.isclose(certificate.delta, delta, rel_tol=_ROUNDING):
        raise _wrong(f"delta={certificate.delta!r}", f"{delta!r}, for which entry {numbers} was reserved")
    if certificate.group_size > 1:
        # The claim for a group is more than the budget, and follows from the events.
        return
    least = epsilon * LEAST_SHARE if certificate.account_head is not None and certificate.events else 0.0
    if not least <= certificate.epsilon <= epsilon * (1.0 + _ROUNDING):
        raise _wrong(f"epsilon={certificate.epsilon!r}", f"{epsilon!r}, for which entry {numbers} was reserved")


def _wrong(found: str, expected: str) -> AccountError:
    return AccountError(f"{found}: expected {expected}; do not rely on this certificate, ask for the one of the fit.")


# --- Whether the files of a fit hold together: offline, from the files alone.
#
# Everything that can be recomputed is: what a certificate claims from its events, what a report says from its model.
# What cannot be recomputed (that these coefficients were released with this noise) is the word of whoever signed.

_CERTIFICATE, _MODEL, _REPORT = "certificate.json", "model.json", "report.html"
_KINDS = {
    "taciturn-certificate": _CERTIFICATE,
    "taciturn spending": _CERTIFICATE,
    "taciturn model": _MODEL,
    "taciturn selection": "selection.json",
    "taciturn score": "score.json",
}
_CODE = re.compile(r"<code>([^<]*)</code>")
_MADE_WITH = re.compile(r"This page was written by taciturn [^<]*")


def verify_folder(
    path: str | os.PathLike[str],
    public_key: Ed25519PublicKey | None = None,
    *,
    write_report: Callable[..., str] | None = None,
    ledger: Iterable[LedgerEntry] | None = None,
) -> Verification:
    """Check what ``taciturn fit``, ``select`` or ``score`` wrote, without any data; VerificationError refuses it.

    The path is the folder, or one of its JSON files by itself. With the ``public_key`` of the owner
    (:func:`read_public_key`), from a source that is trusted, files without a valid signature by this key are refused;
    without it a signature shows only that the files belong together. With ``write_report``
    (:func:`taciturn.app.report.model.model_report`) every number of ``report.html`` is compared, if this version of
    taciturn wrote it. With ``ledger``, the entries of the account that paid (:meth:`taciturn.Account.entries`), the
    whole chain is checked, and files for which no entry of it paid are refused.
    """
    entries = None if ledger is None else check_entries(ledger)
    return _examine(_Examination(read_study_files(Path(path)), public_key, write_report, entries))


def sign_folder(
    path: str | os.PathLike[str], key: Ed25519PrivateKey, *, write_report: Callable[..., str] | None = None
) -> str:
    """Sign a folder without a signature whose files hold together, after its owner has read them.

    Returns the text of ``signature.json``, a signature of the very bytes that were checked. ``key`` is that of
    :func:`read_private_key`, and ``write_report`` that of :func:`verify_folder`.
    """
    files = read_study_files(Path(path))
    if not files.whole or SIGNATURE_NAME in files.contents:
        remedy = f"name a folder, and move its {SIGNATURE_NAME} away to sign it again"
        raise ParameterError("folder", str(path), "a folder without a signature", remedy)
    _examine(_Examination(files, None, write_report, None))
    return sign_digests(files.digests, key)


def _examine(examination: _Examination) -> Verification:
    items = tuple(examination.items())
    found = Verification(
        items, examination.certificate, examination.signed_by, examination.certificates, examination.model
    )
    refused = sorted((item for item in found.items if item.outcome == FAILS), key=lambda item: item.name != "signature")
    if refused:
        # A file that is not the signed one explains the contradictions.
        error = VerificationError(refused[0].words)
        error.verification = found
        raise error
    return found


@dataclass
class _Examination:
    """One look at all files; what one of them holds is kept for the next."""

    _files: StudyFiles
    _key: Ed25519PublicKey | None
    _write_report: Callable[..., str] | None
    _entries: list[LedgerEntry] | None
    certificate: Certificate | None = None
    signed_by: str | None = None
    certificates: dict[str, Certificate] = field(default_factory=dict)
    model: Model | None = None
    _content: Any = None
    _score: ScoreFile | None = None
    _writer: str = ""
    _partly: bool = False

    def items(self) -> Iterator[CheckedItem]:
        """What was found about each file, the account and the signature."""
        files = self._by_kind()
        if not files.keys() & {_CERTIFICATE, _MODEL, "selection.json", "score.json"}:
            yield CheckedItem(
                "files",
                FAILS,
                "folder: expected certificate.json or model.json, got neither; name the folder or the file that "
                "taciturn wrote.",
            )
            return
        checks: list[tuple[str, str, Callable[[str], str]]] = [
            (_CERTIFICATE, "certificate", self._check_certificate),
            (_MODEL, "model", self._check_model),
            ("selection.json", "selection", self._check_selection),
            ("score.json", "score", self._check_score),
            (_REPORT, "report", self._check_report),
        ]
        for file, name, check in checks:
            if file in files:
                self._partly = False
                yield self._outcome(name, check, files[file])
            elif file == _CERTIFICATE and self._files.whole and files.keys() & {_MODEL, "selection.json"}:
                yield CheckedItem(
                    name, FAILS, "certificate.json: expected it in the folder, and it is missing; ask for a fresh copy."
                )
        if self.model is not None and _REPORT not in files and self._files.whole:
            yield CheckedItem("report", NOT_CHECKED, "none")
        yield self._account()
        yield self._signature()
        if self._files.others:
            signed = SIGNATURE_NAME in self._files.contents
            named = ", ".join(quoted(name, 30) for name in self._files.others[:5])
            words = f"{named}{' and more' if len(self._files.others) > 5 else ''}"
            yield CheckedItem("other files", NOT_CHECKED, f"{words}: {'signed, ' if signed else ''}not read")

    def _by_kind(self) -> dict[str, str]:
        """Names of the files by what they are: in a folder by name, a single file by its format."""
        if self._files.whole:
            return {name: name for name in self._files.contents}
        (name,) = self._files.contents.keys() - {SIGNATURE_NAME} or {SIGNATURE_NAME}
        content = parse_strictly(self._files.text(name))
        kind = _KINDS.get(str(content.get("format"))) if isinstance(content, dict) else None
        if kind is None:
            raise DataError(
                f"{quoted(name)}: expected a certificate, a model, a selection or a score in JSON, got something else; "
                "name a file that taciturn wrote."
            )
        return {kind: name}

    def _parsed(self, name: str) -> Any:
        content = parse_strictly(self._files.text(name))
        if not isinstance(content, dict):
            raise DataError(
                f"{quoted(name)}: expected a JSON object with every name once, got something else; ask for a fresh "
                "copy."
            )
        return content

    def _check_certificate(self, name: str) -> str:
        self._content = self._parsed(name)
        if self._content.get("format") == "taciturn spending":
            raise CertificateError(
                f"{quoted(name)}: expected a certificate, got the statement of a run that did not finish; count its "
                "whole budget as spent."
            )
        self.certificate = self.certificates[name] = _read_certificate(self._files.text(name))
        return _describe_claim(self.certificate)

    def _check_inside(self, name: str, content: Any, *, own: bool = False) -> Certificate:
        """The certificate inside another file: the one beside it, if there is one, or its own."""
        inside = content.get("certificate")
        certificate = _read_certificate(json.dumps(inside))
        if self._content is not None and not own:
            check_same_certificate(name, inside, self._content)
        if not self._files.whole:
            self.certificate = certificate
        if own or not self._files.whole:
            self.certificates[name] = certificate
        return certificate

    def _check_model(self, name: str) -> str:
        content = self._parsed(name)
        certificate = self._check_inside(name, content)
        self._writer = str(content.get("taciturn"))
        model = Model.from_json(self._files.text(name))
        check_model_facts(model)
        self.model = model
        features = f"{int(model.estimator.support_.sum()):,} of {len(model.feature_names):,} features"
        claim = "" if self._files.whole else f"; {_describe_claim(certificate)}"
        return f"{type(model.estimator).__name__}, {features}; agrees with its certificate{claim}"

    def _check_selection(self, name: str) -> str:
        content = self._parsed(name)
        certificate = self._check_inside(name, content)
        check_selection_facts(certificate, content.get("features"))
        return f"{len(content['features']):,} features; agrees with its certificate"

    def _check_score(self, name: str) -> str:
        content = self._parsed(name)
        certificate = self._check_inside(name, content, own=True)
        check_releases_listed(name, certificate)
        if content.get("version") == 1:
            return _describe_claim(certificate)
        score = ScoreFile.from_json(self._files.text(name))
        if self.model is not None and score.model != model_digest(self.model):
            raise CertificateError(
                f"{quoted(name)}: expected a score of the model in model.json, got that of another; ask for a fresh "
                "copy of the folder."
            )
        self._score = score
        return f"{_describe_claim(certificate)}; its measures follow from the released counts"

    def _check_report(self, name: str) -> str:
        text = self._files.text(name)
        copied = (parse_strictly(html.unescape(block)) for block in _CODE.findall(text))
        if self._content is not None and self._content not in copied:
            raise CertificateError(_other_report("the certificate in certificate.json"))
        if _MODEL not in self._files.contents:
            raise CertificateError(_other_report("a model.json beside it"))
        if self.model is None:
            self._partly = True
            return "of a model that was refused"
        if f"This page was written by taciturn {self._writer} with" not in text:
            raise CertificateError(_other_report("the version of taciturn that wrote model.json"))
        if hashlib.sha256(self._files.contents[_MODEL]).hexdigest() not in text:
            raise CertificateError(_other_report("the digest of model.json"))
        same = "has the certificate and the digest of model.json"
        if self._write_report is None or self._writer != __version__:
            self._partly = True
            return f"{same}; its other numbers were not compared"
        pages = [self._write_report(self.model)]
        if self._score is not None:
            pages.append(self._write_report(self.model, self._score))
        if _MADE_WITH.sub("", text) not in [_MADE_WITH.sub("", page) for page in pages]:
            beside = "model.json" if self._score is None else "model.json and score.json"
            raise CertificateError(_other_report(f"what follows from {beside}"))
        return f"{same}, and every other number of the model"

    def _account(self) -> CheckedItem:
        head = None if self.certificate is None else self.certificate.account_head
        if self._entries is not None and self.certificate is not None:
            try:
                paid = check_head(self.certificate, self._entries)
            except AccountError as error:
                return CheckedItem("account", FAILS, str(error))
            numbers = " and ".join(str(entry.sequence) for entry in paid)
            return CheckedItem("account", HOLDS, f"{self._entries[0].account}: paid for by entry {numbers}")
        if head is None:
            return CheckedItem("account", NOT_CHECKED, "none: nothing shows what else was spent on these data")
        return CheckedItem("account", NOT_CHECKED, f"names the entry {head[:12]}...; the account itself is not here")

    def _signature(self) -> CheckedItem:
        if SIGNATURE_NAME not in self._files.contents:
            if self._key is None:
                return CheckedItem("signature", NOT_CHECKED, "none: anybody could have written these files")
            return CheckedItem(
                "signature",
                FAILS,
                "signature.json: expected a signature by the key that was given, and there is none; ask the owner for "
                "signed files.",
            )
        self._partly = self._key is None
        return self._outcome("signature", self._check_signature, SIGNATURE_NAME)

    def _outcome(self, name: str, check: Callable[[str], str], file: str) -> CheckedItem:
        try:
            words = check(file)
        except TaciturnError as error:
            return CheckedItem(name, FAILS, str(error))
        return CheckedItem(name, NOT_CHECKED if self._partly else HOLDS, words)

    def _check_signature(self, name: str) -> str:
        digits = check_signature(self._files, self._key)
        if self._key is None:
            return f"the files are unchanged since the key {digits[:16]}... signed them; whose key it is, is not known"
        self.signed_by = digits
        return f"by the key that was given, {digits[:16]}..."


def _read_certificate(text: str) -> Certificate:
    """Read a certificate whose claim follows from its events, and whose events are those of a fit."""
    certificate = Certificate.from_json(text)
    check_no_release_missing(certificate)
    check_unit_facts(certificate)
    return certificate


def _describe_claim(certificate: Certificate) -> str:
    """What was recomputed of a certificate, in words."""
    if certificate.status == "not private":
        return "no guarantee, and it says so"
    epsilon = round_safely(certificate.epsilon, up=True, digits=6)
    stated = f"epsilon {epsilon} at delta {certificate.delta:g}, {certificate.relation}"
    releases = f"its {len(certificate.events):,} kinds of release" if len(certificate.events) != 1 else "its release"
    if certificate.status == "as published":
        return f"a published claim of {stated}; what is proved beside it follows from {releases}"
    seeded = "; SEEDED, for reproduction only" if certificate.seeded else ""
    return f"{stated}: follows from {releases}{seeded}"


def _other_report(missing: str) -> str:
    return (
        f"report.html: expected {missing}, got something else; the report is not of this model, ask for a fresh copy "
        "of the folder."
    )
