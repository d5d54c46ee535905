"""Where accounts are, and what is shown of it."""

import os
import pickle
from pathlib import Path

import pytest

from taciturn import Account, AccountError, ParameterError, SparseRegressor
from taciturn.privacy.account import open_account
from taciturn.privacy.databases import _file_system
from taciturn.privacy.ledger import hide_password

TERMS = {"epsilon": 1.0, "delta": 1e-6, "n": 100}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://clerk:secret@host/study", "postgresql://clerk:***@host/study"),
        ("postgresql://clerk:se@cret@host:5432/study", "postgresql://clerk:***@host:5432/study"),
        ("postgresql://host/study?password=secret&user=a", "postgresql://host/study?password=***&user=a"),
        ("postgresql://host/study?user=a&sslpassword=secret", "postgresql://host/study?user=a&sslpassword=***"),
        ("postgresql://clerk@host/study", "postgresql://clerk@host/study"),
        ("sqlite:////data/study.db", "sqlite:////data/study.db"),
    ],
)
def test_passwords_are_not_shown_and_not_taken_as_parameters(url, shown):
    assert hide_password(url) == shown
    assert repr(Account(url, "patients")) == f"Account({shown!r}, 'patients')"
    assert "secret" not in repr(SparseRegressor(account=Account(url, "patients")))
    if url != shown:
        # As a parameter a string is printed and stored wherever the estimator is.
        with pytest.raises(ParameterError, match="without a password") as error:
            open_account(f"{url}#patients")
        assert "cret" not in str(error.value)
    else:
        assert open_account(f"{url}#patients") == Account(url, "patients")


def test_a_number_sign_in_a_password_does_not_end_the_url():
    with pytest.raises(ParameterError, match="without a password") as error:
        open_account("postgresql://clerk:se#cret@host/study#patients")
    assert "cret" not in str(error.value)


@pytest.mark.parametrize("name", ["", " a", "a ", "a\n", "a#b", "x" * 201, "Zu\u0308rich", 7, None])
def test_names_that_could_be_taken_for_others_are_refused(name):
    with pytest.raises(ParameterError, match="^name="):
        Account("sqlite:///study.db", name)


@pytest.mark.parametrize("url", ["a.db", "sqlite://", "sqlite:///", "sqlite:///:memory:", "mysql://host/a", 3, None])
def test_only_databases_that_last_are_accepted(url):
    with pytest.raises(ParameterError, match="^url="):
        Account(url, "patients")


def test_network_file_systems_are_refused_where_the_system_tells(tmp_path, monkeypatch):
    folder = tmp_path / "far"
    folder.mkdir()
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        f"40 22 0:40 / {folder} rw,relatime shared:2 - nfs4 server:/home rw\n"
    )
    assert _file_system(folder / "study.db", mounts) == "nfs4"
    assert _file_system(tmp_path / "study.db", mounts) == "ext4"
    assert _file_system(tmp_path / "study.db", tmp_path / "none") == ""
    monkeypatch.setattr("taciturn.privacy.databases._file_system", lambda path: _file_system(path, mounts))
    Account.create(f"sqlite:///{tmp_path / 'study.db'}", "a", **TERMS)
    with pytest.raises(AccountError, match="network file system 'nfs4'"):
        Account.create(f"sqlite:///{folder / 'study.db'}", "a", **TERMS)
    # A link on a local disk to a file that is not, also when an account is only opened.
    (folder / "study.db").write_bytes((tmp_path / "study.db").read_bytes())
    os.symlink(folder / "study.db", tmp_path / "near.db")
    with pytest.raises(AccountError, match="network file system 'nfs4'"):
        Account.open(f"sqlite:///{tmp_path / 'near.db'}", "a")


def test_files_are_the_owners_and_messages_have_no_paths(tmp_path):
    Account.create(f"sqlite:///{tmp_path / 'study.db'}", "a", **TERMS)
    assert Path(tmp_path / "study.db").stat().st_mode & 0o777 == 0o600
    with pytest.raises(AccountError) as error:
        Account.create(f"sqlite:///{tmp_path / 'no' / 'study.db'}", "a", **TERMS)
    assert str(tmp_path) not in str(error.value)
    with pytest.raises(AccountError, match="a name that is not taken"):
        Account.create(f"sqlite:///{tmp_path / 'study.db'}", "a", **TERMS)


def test_accounts_are_pickled_by_where_they_are(tmp_path):
    account = Account.create(f"sqlite:///{tmp_path / 'study.db'}", "a", **TERMS)
    assert pickle.loads(pickle.dumps(account)) == account
