"""Whether the files of a fit hold together: offline, from the files alone.

Everything that can be recomputed is: what a certificate claims from its events, what a report says from its model.
What cannot be recomputed (that these coefficients were released with this noise) is the word of whoever signed.
"""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taciturn._version import __version__
from taciturn.accounts.chain import LedgerEntry
from taciturn.accounts.contents import check_entries
from taciturn.certificate import Certificate
from taciturn.core.errors import AccountError, CertificateError, DataError, ParameterError, TaciturnError
from taciturn.core.strict_json import parse_strictly
from taciturn.modelfile import Model, ScoreFile, model_digest
from taciturn.study.agreement import (
    check_model_facts,
    check_no_release_missing,
    check_releases_listed,
    check_same_certificate,
    check_selection_facts,
    check_unit_facts,
)
from taciturn.study.files import SIGNATURE_NAME, StudyFiles, read_study_files
from taciturn.study.findings import FAILS, HOLDS, NOT_CHECKED, CheckedItem, Verification, VerificationError
from taciturn.study.ledgers import check_head
from taciturn.study.signature import check_signature, sign_digests
from taciturn.tables.words import quoted

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

__all__ = ["sign_folder", "verify_folder"]

_CERTIFICATE, _MODEL, _REPORT = "certificate.json", "model.json", "report.html"
_KINDS = {
    "taciturn-certificate": _CERTIFICATE,
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
    """Check what ``taciturn fit``, ``select`` or ``score`` wrote, without any data.

    Parameters
    ----------
    path : str or path-like
        The folder, or one of its JSON files by itself.
    public_key : Ed25519PublicKey, default=None
        The key of the owner (:func:`read_public_key`), from a source that is trusted. Then files without a valid
        signature by this key are refused. None: a signature shows only that the files belong together.
    write_report : callable, default=None
        Writes the report of a model, and with its score if there is one, :func:`taciturn.report.model_report`. Then
        every number of ``report.html`` is compared, if this version of taciturn wrote it.
    ledger : iterable of LedgerEntry, default=None
        The entries of the account that paid, :meth:`taciturn.Account.entries`. Then the whole chain is checked, and
        files for which no entry of it paid are refused.

    Returns
    -------
    Verification
        What was checked and what was not.

    Raises
    ------
    VerificationError
        If something is refused.
    """
    entries = None if ledger is None else check_entries(ledger)
    return _examine(read_study_files(Path(path)), public_key, write_report, entries)


def sign_folder(
    path: str | os.PathLike[str], key: Ed25519PrivateKey, *, write_report: Callable[..., str] | None = None
) -> str:
    """Sign a folder whose files hold together, after its owner has read them.

    Parameters
    ----------
    path : str or path-like
        A folder without a signature.
    key : Ed25519PrivateKey
        See :func:`read_private_key`.
    write_report : callable, default=None
        See :func:`verify_folder`.

    Returns
    -------
    str
        The text of ``signature.json``: a signature of the very bytes that were checked.
    """
    files = read_study_files(Path(path))
    if not files.whole or SIGNATURE_NAME in files.contents:
        remedy = f"name a folder, and move its {SIGNATURE_NAME} away to sign it again"
        raise ParameterError("folder", str(path), "a folder without a signature", remedy)
    _examine(files, None, write_report)
    return sign_digests(files.digests, key)


def _examine(
    files: StudyFiles,
    public_key: Ed25519PublicKey | None,
    write_report: Callable[..., str] | None,
    entries: list[LedgerEntry] | None = None,
) -> Verification:
    found = _Examination(files, public_key, write_report, entries).run()
    refused = sorted((item for item in found.items if item.outcome == FAILS), key=lambda item: item.name != "signature")
    if refused:
        # A file that is not the signed one explains the contradictions.
        error = VerificationError(refused[0].words)
        error.verification = found
        raise error
    return found


class _Examination:
    """One look at all files; what one of them holds is kept for the next."""

    def __init__(
        self,
        files: StudyFiles,
        key: Ed25519PublicKey | None,
        write_report: Callable[..., str] | None,
        entries: list[LedgerEntry] | None,
    ) -> None:
        self._files, self._key, self._write_report, self._entries = files, key, write_report, entries
        self._certificate: Certificate | None = None
        self._content: Any = None
        self._model: Model | None = None
        self._score: ScoreFile | None = None
        self._signed_by: str | None = None
        self._writer = ""
        self._partly = False

    def run(self) -> Verification:
        return Verification(tuple(self._items()), self._certificate, self._signed_by)

    def _items(self) -> Iterator[CheckedItem]:
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
        if self._model is not None and _REPORT not in files and self._files.whole:
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
        if kind is None and isinstance(content, dict) and content.get("format") == "taciturn spending":
            kind = _CERTIFICATE
        if kind is None:
            raise DataError(
                f"{quoted(name)}: expected a certificate, a model, a selection or a score in JSON, got something else; "
                "name a file that taciturn wrote."
            )
        return {kind: name}

    # ------------------------------------------------------------------ files

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
        certificate = Certificate.from_json(self._files.text(name))
        check_no_release_missing(certificate, self._content["taciturn"])
        check_unit_facts(certificate)
        self._certificate = certificate
        return _describe_claim(certificate)

    def _check_inside(self, name: str, content: Any, *, own: bool = False) -> Certificate:
        """The certificate inside another file: the one beside it, if there is one, or its own."""
        inside = content.get("certificate")
        certificate = Certificate.from_json(json.dumps(inside))
        check_no_release_missing(certificate, inside["taciturn"])
        check_unit_facts(certificate)
        if self._content is not None and not own:
            check_same_certificate(name, inside, self._content)
        if not self._files.whole:
            self._certificate = certificate
        return certificate

    def _check_model(self, name: str) -> str:
        content = self._parsed(name)
        certificate = self._check_inside(name, content)
        self._writer = str(content.get("taciturn"))
        model = Model.from_json(self._files.text(name))
        check_model_facts(model, content["certificate"]["taciturn"])
        self._model = model
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
        if self._model is not None and score.model != model_digest(self._model):
            raise CertificateError(
                f"{quoted(name)}: expected a score of the model in model.json, got that of another; ask for a fresh "
                "copy of the folder."
            )
        self._score = score
        return f"{_describe_claim(certificate)}; its measures follow from the released counts"

    def _check_report(self, name: str) -> str:
        text = self._files.text(name)
        if self._content is not None and self._content not in _code_blocks(text):
            raise CertificateError(_other_report("the certificate in certificate.json"))
        if _MODEL not in self._files.contents:
            raise CertificateError(_other_report("a model.json beside it"))
        if self._model is None:
            self._partly = True
            return "of a model that was refused"
        if f"This page was written by taciturn {self._writer} with" not in text:
            raise CertificateError(_other_report("the version of taciturn that wrote model.json"))
        if self._writer.startswith("0.1."):
            # Its reports did not state the digest of the model.
            self._partly = True
            return "has the certificate; its other numbers were not compared"
        if hashlib.sha256(self._files.contents[_MODEL]).hexdigest() not in text:
            raise CertificateError(_other_report("the digest of model.json"))
        same = "has the certificate and the digest of model.json"
        if self._write_report is None or self._writer != __version__:
            self._partly = True
            return f"{same}; its other numbers were not compared"
        pages = [self._write_report(self._model)]
        if self._score is not None:
            pages.append(self._write_report(self._model, self._score))
        if _MADE_WITH.sub("", text) not in [_MADE_WITH.sub("", page) for page in pages]:
            beside = "model.json" if self._score is None else "model.json and score.json"
            raise CertificateError(_other_report(f"what follows from {beside}"))
        return f"{same}, and every other number of the model"

    # ------------------------------------------------------------------ around them

    def _account(self) -> CheckedItem:
        head = None if self._certificate is None else self._certificate.account_head
        if self._entries is not None and self._certificate is not None:
            try:
                paid = check_head(self._certificate, self._entries)
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
        self._signed_by = digits
        return f"by the key that was given, {digits[:16]}..."


def _describe_claim(certificate: Certificate) -> str:
    """What was recomputed of a certificate, in words."""
    if certificate.status == "not private":
        return "no guarantee, and it says so"
    stated = f"epsilon {certificate.epsilon:g} at delta {certificate.delta:g}, {certificate.relation}"
    releases = f"its {len(certificate.events):,} kinds of release" if len(certificate.events) != 1 else "its release"
    if certificate.status == "as published":
        return f"a published claim of {stated}; what is proved beside it follows from {releases}"
    seeded = "; SEEDED, for reproduction only" if certificate.seeded else ""
    return f"{stated}: follows from {releases}{seeded}"


def _code_blocks(page: str) -> Iterator[Any]:
    """What stands in a report to be copied, where it is JSON."""
    for block in _CODE.findall(page):
        yield parse_strictly(html.unescape(block))


def _other_report(missing: str) -> str:
    return (
        f"report.html: expected {missing}, got something else; the report is not of this model, ask for a fresh copy "
        "of the folder."
    )
