"""What surrounds one fit: strangers check its files, and their owner signs them."""

from taciturn.study.findings import CheckedItem, Verification, VerificationError
from taciturn.study.keys import read_private_key, read_public_key
from taciturn.study.signature import SIGNATURE_NAME, sign_files
from taciturn.study.verification import sign_folder, verify_folder

__all__ = [
    "SIGNATURE_NAME",
    "CheckedItem",
    "Verification",
    "VerificationError",
    "read_private_key",
    "read_public_key",
    "sign_files",
    "sign_folder",
    "verify_folder",
]
