"""What several sites and their coordinator agree on beforehand, and the keys by which they know each other."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.core.errors import DataError, ParameterError, TaciturnError
from taciturn.core.validation import IntArray

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_KEY_DAYS = 1096
_MOST_FILE = 1 << 22

COORDINATED = (
    "the coordinator of the sites is trusted with totals: it knows every exact sum over all sites before noise is "
    "added, asks for no other sums than the fit needs, and passes none of them on"
)
"""The trust model of a fit to several sites, as certificates state it."""

ONE_SITE = "all rows of a person are at one site"


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """One site of a plan: its name, its public numbers of rows and of persons, and the public halves of its keys."""

    name: str
    rows: int
    key: bytes
    certificate: bytes
    persons: int | None = None


@dataclass(frozen=True)
class SitePlan:
    """The plan of a study at several sites; all parties hold the same file.

    Parameters
    ----------
    study : str
        Its name.
    methods : tuple of str
        What may be fitted, by the names of classes; ``private_score`` for scores.
    bounds : str
        The SHA-256 of the bounds file, in hexadecimal digits.
    invalid : {"raise", "null"}
        What becomes of cells that cannot be used.
    rounds : int
        The number of requests that a site answers, over all sessions, before somebody there starts it again.
    address : str
        Where the coordinator listens, as ``host:port``.
    certificate : bytes
        The coordinator's TLS certificate.
    sites : tuple of SiteFacts
        The sites, whose rows follow each other in this order.
    """

    study: str
    methods: tuple[str, ...]
    bounds: str
    invalid: str
    rounds: int
    address: str
    certificate: bytes
    sites: tuple[SiteFacts, ...]

    @classmethod
    def from_toml(cls, text: str) -> SitePlan:
        """The plan that a file states; ParameterError for what it lacks."""
        import tomllib

        try:
            content = tomllib.loads(text)
        except ValueError:
            content = None
        if content is None:
            raise ParameterError("plan", "", "a file in TOML", "write it as docs/sites.md shows")
        return _plan(content)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> SitePlan:
        """The plan of a file."""
        return cls.from_toml(_read(Path(path), "plan"))

    @cached_property
    def digest(self) -> bytes:
        """The hash of everything that the plan states, by which all parties know that they hold the same one."""
        stated = {
            "study": self.study,
            "methods": list(self.methods),
            "bounds": self.bounds,
            "invalid": self.invalid,
            "rounds": self.rounds,
            "address": self.address,
            "certificate": self.certificate.decode(),
            "sites": [
                [each.name, each.rows, each.persons, each.key.hex(), each.certificate.decode()] for each in self.sites
            ],
        }
        return hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).digest()

    @cached_property
    def lengths(self) -> IntArray:
        """The public number of rows of each site."""
        return np.array([each.rows for each in self.sites], dtype=np.int64)

    @cached_property
    def person_counts(self) -> IntArray | None:
        """The public number of persons of each site, if the plan states them."""
        counts = [each.persons for each in self.sites if each.persons is not None]
        return np.array(counts, dtype=np.int64) if counts else None

    @property
    def pinned(self) -> Mapping[str, bytes]:
        """The public keys of the sites by name, in the order of the plan."""
        return {each.name: each.key for each in self.sites}

    def site(self, name: str) -> SiteFacts:
        """The facts of a site."""
        for each in self.sites:
            if each.name == name:
                return each
        listed = ", ".join(each.name for each in self.sites)
        raise ParameterError("site", name, f"one of {listed}, which the plan lists", "use the keys of such a site")


_MEMBERS = {
    "plan": ("study", "coordinator", "sites"),
    "study": ("name", "methods", "bounds", "invalid", "rounds"),
    "coordinator": ("address", "certificate"),
    "sites": ("name", "rows", "persons", "key", "certificate"),
}
_DEFAULT_ROUNDS = 20_000
_MOST_ROWS = 1 << 40


def _plan(content: Mapping[str, Any]) -> SitePlan:
    _check_keys("plan", content)
    study, coordinator = _section(content, "study"), _section(content, "coordinator")
    sites = content.get("sites")
    if not isinstance(sites, list) or len(sites) < 2:
        raise ParameterError(
            "sites", "", "at least two [[sites]], since the sums of one are masked by nobody", "add one"
        )
    facts = tuple(_site(each) for each in sites)
    names, keys = [each.name for each in facts], [each.key for each in facts]
    for what, values in (("names", names), ("keys", keys), ("certificates", [each.certificate for each in facts])):
        if len(set(values)) < len(values):
            raise ParameterError("sites", "", f"different {what}", "let every site create keys of its own")
    if len({each.persons is None for each in facts}) > 1:
        raise ParameterError("persons", "", "a number for every site, or for none", "state the missing ones")
    methods = study.get("methods")
    if not isinstance(methods, list) or not methods or not all(isinstance(each, str) for each in methods):
        raise ParameterError("methods", "", 'a list such as ["SparseClassifier"]', "list what may be fitted")
    bounds = _text("bounds", study.get("bounds"))
    if re.fullmatch("[0-9a-f]{64}", bounds) is None:
        raise ParameterError("bounds", bounds, "the SHA-256 of the bounds file, 64 hexadecimal digits", "sha256sum it")
    invalid = study.get("invalid", "raise")
    if invalid not in ("raise", "null"):
        raise ParameterError("invalid", invalid, "'raise' or 'null'", "choose one")
    address = _text("address", coordinator.get("address"))
    if re.fullmatch(r"\S+:\d{1,5}", address) is None:
        raise ParameterError("address", address, "host:port", "write it as 10.0.0.5:8815")
    certificate = _certificate("coordinator", coordinator.get("certificate"))
    rounds = _count("rounds", study.get("rounds", _DEFAULT_ROUNDS))
    return SitePlan(
        _text("name", study.get("name")), tuple(methods), bounds, invalid, rounds, address, certificate, facts
    )


def _site(content: Any) -> SiteFacts:
    _check_keys("sites", content)
    name = _text("name", content.get("name"))
    if _NAME.fullmatch(name) is None or name == COORDINATOR:
        raise ParameterError("name", name, "small letters, digits and hyphens, and not coordinator", "rename the site")
    key = _text("key", content.get("key"))
    if re.fullmatch("[0-9a-f]{64}", key) is None:
        raise ParameterError("key", name, "a public key of 64 hexadecimal digits", "copy what the site sent")
    persons = None if content.get("persons") is None else _count("persons", content["persons"])
    certificate = _certificate(name, content.get("certificate"))
    return SiteFacts(name, _count("rows", content.get("rows")), bytes.fromhex(key), certificate, persons)


def _section(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    _check_keys(name, content.get(name))
    section: Mapping[str, Any] = content[name]
    return section


def _check_keys(place: str, content: Any) -> None:
    if not isinstance(content, dict):
        raise ParameterError(place, "", "a section with keys and values", "write it as docs/sites.md shows")
    for key in content:
        if key not in _MEMBERS[place]:
            raise ParameterError(place, key, f"no key but {', '.join(_MEMBERS[place])}", "check the spelling")


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ParameterError(name, "", "a text that is not empty", "write it as docs/sites.md shows")
    return value


def _count(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < _MOST_ROWS:
        raise ParameterError(name, value, "a whole number > 0", "state the public number")
    return value


# ---- Keys: a TLS certificate that its owner signs, and for sites a key with which pads are derived.

COORDINATOR = "coordinator"
"""The name of the coordinator in its certificate."""


@dataclass(frozen=True)
class PartyKeys:
    """The private keys of a site, or of the coordinator, whose pads have no key."""

    name: str
    certificate: bytes
    tls: bytes
    pads: bytes | None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> PartyKeys:
        """The keys of a file that :func:`create_keys` wrote."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        path, found = Path(path), dict[str, bytes]()
        for block in re.findall(r"-----BEGIN [A-Z ]+-----[^-]+-----END [A-Z ]+-----\n?", _read(path, "keys")):
            with suppress(ValueError):
                if "CERTIFICATE" in block:
                    found["certificate"] = block.encode()
                else:
                    private = load_pem_private_key(block.encode(), None)
                    if isinstance(private, X25519PrivateKey):
                        found["pads"] = private.private_bytes_raw()
                    else:
                        found["tls"] = block.encode()
        if not {"certificate", "tls"} <= found.keys():
            raise DataError(f"keys {path.name!r}: expected a file of keys, got another; taciturn site --create-keys.")
        return cls(_certificate_name(found["certificate"]), found["certificate"], found["tls"], found.get("pads"))

    def check(self, name: str, certificate: bytes, key: bytes | None) -> None:
        """Raise unless these are the keys whose public halves the plan pins."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        public = None if self.pads is None else X25519PrivateKey.from_private_bytes(self.pads).public_key()
        same = public is None if key is None else public is not None and public.public_bytes_raw() == key
        if not same or _fingerprint(self.certificate) != _fingerprint(certificate):
            raise ParameterError("keys", name, "the keys that the plan pins", "use those, or agree on a new plan")


def create_keys(name: str, folder: str | os.PathLike[str] = ".") -> tuple[Path, Path]:
    """Create the keys of a site, or of the coordinator, and the entry of its public halves for the plan.

    Returns the paths of ``NAME.keys``, which stays where it is and is readable by its owner alone, and of
    ``NAME.toml``, which goes to whoever writes the plan.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    if _NAME.fullmatch(name) is None:
        raise ParameterError("name", name, "small letters, digits and hyphens", "rename the site")
    private_path, public_path = Path(folder) / f"{name}.keys", Path(folder) / f"{name}.toml"
    tls = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(tls.public_key())
        .serial_number(x509.random_serial_number())
        # Clocks of hospitals differ.
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=_KEY_DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        # It vouches for itself and for nobody else.
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(tls, hashes.SHA256())
        .public_bytes(Encoding.PEM)
    )
    blocks = [tls.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), certificate]
    entry = f'certificate = """\n{certificate.decode()}"""\n'
    if name == COORDINATOR:
        entry = f'[coordinator]\naddress = ""  # host:port\n{entry}'
    else:
        pads = X25519PrivateKey.generate()
        blocks.append(pads.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        key = pads.public_key().public_bytes_raw().hex()
        entry = f'[[sites]]\nname = "{name}"\nrows = 0  # the public number\nkey = "{key}"\n{entry}'
    try:
        descriptor = os.open(private_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        descriptor = -1
    if descriptor < 0:
        expected = "a file that is not there yet, in a folder that can be written to"
        raise ParameterError("keys", str(private_path), expected, "choose another name or folder")
    with os.fdopen(descriptor, "wb") as file:
        file.write(b"".join(blocks))
    public_path.write_text(entry, encoding="utf-8")
    return private_path, public_path


def bounds_digest(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a bounds file, as plans state it."""
    path = Path(path)
    _read(path, "bounds")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _certificate(name: str, value: Any) -> bytes:
    text = _text("certificate", value)
    try:
        stated: str | None = _certificate_name(text.encode())
    except TaciturnError:
        stated = None
    if stated != name:
        # The other side of a connection is known by this name.
        raise ParameterError("certificate", stated, f"that of {name!r}", "copy what its owner sent")
    return text.strip().encode() + b"\n"


def _certificate_name(pem: bytes) -> str:
    """The name in a certificate that :func:`create_keys` made."""
    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate(pem)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        found = names.get_values_for_type(x509.DNSName)
        subject = [str(each.value) for each in certificate.subject]
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        if len(names) == 1 and found == subject and not constraints.ca:
            return found[0]
    except (ValueError, x509.ExtensionNotFound):
        pass
    raise DataError("certificate: expected one that taciturn site --create-keys made, got another; create it anew.")


def _fingerprint(pem: bytes) -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    return x509.load_pem_x509_certificate(pem).fingerprint(hashes.SHA256())


def _read(path: Path, what: str) -> str:
    try:
        if path.stat().st_size <= _MOST_FILE:
            return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        pass
    raise DataError(f"{what} {path.name!r}: expected a text file that can be read, got none; check its name.")
