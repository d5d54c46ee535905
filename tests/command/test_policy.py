"""``taciturn verify --policy``: what a steward demands, each key on both sides, and mistakes in a policy file."""

import json
import shutil

import numpy as np
import pytest
from commands import one_sentence, run, sentences, write_patients
from studies import write_key

from taciturn import Account, Certificate, ObjectivePerturbationClassifier, SparseClassifier
from taciturn.app import policy as policies
from taciturn.app.policy import Policy
from taciturn.app.verify import read_public_key, verify_folder
from taciturn.privacy.calibration import best_bound
from taciturn.published import RNMScreen

SENSIBLE = """\
epsilon = 2.0
delta = 1e-5
unit = "record"
relation = "zero-out"
seed = false
account = true
signature = true
status = "proved"
"""
KEYS = ["epsilon", "delta", "unit", "relation", "seed", "account", "signature", "status"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Folders of a careful owner (account, signature, a score) and of a careless one (a seed, epsilon 30)."""
    home = tmp_path_factory.mktemp("policy")
    table, bounds = write_patients(home)
    key = write_key(home / "owner.pem")
    url = f"sqlite:///{home / 'study.db'}"
    Account.create(url, "patients", epsilon=4.0, delta=1e-4, n=400)
    Account.create(url, "others", epsilon=4.0, delta=1e-4, n=400)
    plain = ["--bounds", bounds, "--nonzero", 2]
    done = run("fit", table, *plain, "--epsilon", 1, "--account", f"{url}#patients", "-o", home / "careful")
    assert done.code == 0, done
    shutil.copytree(home / "careful", home / "scored")
    score = ["score", home / "careful", table, "--epsilon", 1, "--delta", 1e-6]
    done = run(*score, "--account", f"{url}#patients", "-o", home / "scored" / "score.json")
    assert done.code == 0, done
    for name in ("careful", "scored"):
        assert run("verify", home / name, "--sign", key).code == 0
    for name in ("patients", "others"):
        assert run("budget", "export", f"{url}#{name}", "--output", home / f"{name}.jsonl").code == 0
    done = run("fit", table, *plain, "--epsilon", 30, "--seed", 1, "-o", home / "careless")
    assert done.code == 0, done
    (home / "policy.toml").write_text(SENSIBLE, encoding="utf-8")
    return home


def write_certificate(folder, certificate):
    folder.mkdir()
    (folder / "certificate.json").write_text(certificate.to_json(), encoding="utf-8")
    return folder


def of_persons(**options):
    rng = np.random.default_rng(0)
    X, persons = rng.uniform(-1, 1, (800, 2)), np.repeat(np.arange(400), 2)
    y = np.where(X[:, 0] > 0, "yes", "no")
    fixed = {"classes": ("no", "yes"), "x_bound": 1.0, "n_nonzero": 1, "random_state": 0}
    return SparseClassifier(**fixed | options).fit(X, y, persons=persons).certificate_


def judge(folder, text, key=None, ledger=None):
    return {point.name: point for point in Policy.from_toml(text).judge(verify_folder(folder, key), ledger)}


# ------------------------------------------------------------------ the command


def test_a_seeded_unsigned_folder_of_epsilon_30_is_consistent_and_misses_the_policy(home):
    assert run("verify", home / "careless").code == 0
    done = run("verify", home / "careless", "--policy", home / "policy.toml")
    (sentence,) = sentences(done)
    assert sentence.startswith("taciturn: policy.toml: ")
    assert "that do not meet epsilon, seed, account, signature;" in sentence
    lines = [line.split()[:3] for line in done.out.splitlines() if line.startswith(("met", "NOT MET"))]
    expected = {"epsilon": False, "delta": True, "unit": True, "relation": True, "seed": False}
    expected |= {"account": False, "signature": False, "status": True}
    assert lines == [["met", name, found[2]] if met else ["NOT", "MET", name]
                     for (name, met), found in zip(expected.items(), lines, strict=True)]  # fmt: skip


def test_a_careful_folder_meets_the_policy_with_one_short_line_for_each_point(home):
    done = run(
        "verify", home / "scored", "--policy", home / "policy.toml",
        "--public-key", home / "owner.pub.pem", "--account", home / "patients.jsonl",
    )  # fmt: skip
    assert done.code == 0, done
    points = [line for line in done.out.splitlines() if line.startswith("met")]
    assert [line.split()[1] for line in points] == KEYS
    assert max(map(len, points)) <= 80
    assert done.out.splitlines()[-1] == "The files meet all 8 points of policy.toml."


def test_forged_files_are_refused_before_any_point(home, tmp_path):
    forged = shutil.copytree(home / "careless", tmp_path / "forged")
    content = json.loads((forged / "certificate.json").read_text())
    (forged / "certificate.json").write_text(json.dumps(content | {"epsilon": 1.0}))
    done = run("verify", forged, "--policy", home / "policy.toml")
    assert done.code == 1
    assert "epsilon=1.0: expected at least" in done.err
    assert "NOT MET" not in done.out


def test_a_folder_is_signed_before_it_is_judged(home):
    done = run("verify", home / "careless", "--policy", home / "policy.toml", "--sign", home / "owner.pem")
    assert "sign first, then verify with --policy" in one_sentence(done)
    assert not (home / "careless" / "signature.json").exists()


# ------------------------------------------------------------------ each key, met and not met


def test_epsilon_is_what_all_releases_of_the_folder_cost_together(home):
    found = verify_folder(home / "scored")
    fit, score = (found.certificates[name] for name in ("certificate.json", "score.json"))
    # From the events alone, by the accountant itself: two Gaussian budgets, whose squares add up.
    together = best_bound(fit.event + score.event, fit.delta + score.delta, ordered=False).epsilon
    assert 1.2 < together < 1.6
    assert judge(home / "scored", f"epsilon = {together * 1.0001}")["epsilon"].is_met
    assert not judge(home / "scored", f"epsilon = {together * 0.9999}")["epsilon"].is_met
    # One of the two alone.
    assert judge(home / "careful", "epsilon = 1.0")["epsilon"].is_met
    assert not judge(home / "careful", "epsilon = 0.99")["epsilon"].is_met


def test_delta_is_the_sum_of_the_certificates(home):
    assert judge(home / "scored", "delta = 2e-6")["delta"].is_met
    assert not judge(home / "scored", "delta = 1.9e-6")["delta"].is_met
    assert judge(home / "careful", "delta = 1e-6")["delta"].is_met


def test_neither_unit_implies_the_other_one(home, tmp_path):
    persons = write_certificate(tmp_path / "persons", of_persons())
    assert judge(persons, 'unit = "person"')["unit"].is_met
    assert not judge(persons, 'unit = "record"')["unit"].is_met
    assert judge(home / "careful", 'unit = "record"')["unit"].is_met
    assert not judge(home / "careful", 'unit = "person"')["unit"].is_met


def test_relation(home, tmp_path):
    replaced = write_certificate(tmp_path / "replaced", of_persons(relation="replace-one"))
    assert judge(replaced, 'relation = "replace-one"')["relation"].is_met
    assert not judge(replaced, 'relation = "zero-out"')["relation"].is_met
    assert not judge(home / "careful", 'relation = "add-remove"')["relation"].is_met


def test_certificates_that_do_not_add_up_meet_no_epsilon(home, tmp_path):
    mixed = shutil.copytree(home / "scored", tmp_path / "mixed")
    (mixed / "signature.json").unlink()
    persons = of_persons()
    (mixed / "certificate.json").write_text(persons.to_json())
    for name in ("model.json", "report.html"):
        (mixed / name).unlink()
    points = judge(mixed, 'epsilon = 1e6\nunit = "person"\ndelta = 0.5')
    assert not points["epsilon"].is_met
    assert "do not add up" in points["epsilon"].words
    assert not points["unit"].is_met
    assert points["delta"].is_met


def test_seed(home):
    assert not judge(home / "careless", "seed = false")["seed"].is_met
    assert judge(home / "careless", "seed = true")["seed"].is_met
    assert judge(home / "careful", "seed = false")["seed"].is_met


def test_account(home):
    patients = Account.open(f"sqlite:///{home / 'study.db'}", "patients").entries()
    demanded = "account = true"
    assert judge(home / "scored", demanded, ledger=patients)["account"].is_met
    assert not judge(home / "scored", demanded)["account"].is_met
    assert judge(home / "scored", "account = false")["account"].is_met


def test_account_pays_for_the_score_too(home, tmp_path):
    folder = shutil.copytree(home / "scored", tmp_path / "unpaid")
    (folder / "signature.json").unlink()
    unpaid = ["score", home / "careful", home / "patients.csv", "--epsilon", 1, "--delta", 1e-6]
    (folder / "score.json").unlink()
    assert run(*unpaid, "-o", folder / "score.json").code == 0
    patients = Account.open(f"sqlite:///{home / 'study.db'}", "patients").entries()
    # Plain verification looks at the certificate of the fit, which is paid for.
    assert verify_folder(folder, ledger=patients).holds
    point = judge(folder, "account = true", ledger=patients)["account"]
    assert not point.is_met
    assert point.words == "patients did not pay for score.json"


def test_signature(home):
    owner = read_public_key(home / "owner.pub.pem")
    assert judge(home / "careful", "signature = true", owner)["signature"].is_met
    # Without the owner's key a signature is only somebody's.
    assert not judge(home / "careful", "signature = true")["signature"].is_met
    assert judge(home / "careless", "signature = false")["signature"].is_met


def test_status_is_the_weakest_that_is_accepted(home, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 2)) / 2.0
    fitted = ObjectivePerturbationClassifier(row_bound=1.0, x_bound=1.0, random_state=0).fit(X, X[:, 0] > 0)
    numerical = write_certificate(tmp_path / "numerical", fitted.certificate_)
    accepted = 'status = "proved under a numerical assumption"'
    assert judge(numerical, accepted)["status"].is_met
    assert judge(home / "careful", accepted)["status"].is_met
    assert not judge(numerical, 'status = "proved"')["status"].is_met


# ------------------------------------------------------------------ claims are not costs


@pytest.fixture(scope="module")
def dear(home, tmp_path_factory):
    """Consistent folders that cost more than an epsilon of 1.1, which nobody reads from one number of one file."""
    folder = tmp_path_factory.mktemp("dear")
    bounds = (home / "bounds.toml").read_text().replace("lower = 0\nupper = 100\n", "")
    (folder / "found.toml").write_text(bounds)
    done = run(
        "fit", home / "patients.csv", "--bounds", folder / "found.toml", "--private-bounds", 0.89,
        "--epsilon", 9, "--nonzero", 2, "--seed", 1, "-o", folder / "found",
    )  # fmt: skip
    assert done.code == 0, done
    # The paper claims 1, and its releases prove several hundred.
    X = np.random.default_rng(0).uniform(-1, 1, (60, 6))
    claimed = RNMScreen(epsilon=1.0, delta=1e-3, random_state=0).fit(X, X[:, 0])
    assert claimed.certificate_.epsilon == 1.0
    published = write_certificate(folder / "published", claimed.certificate_)
    return {"scored": home / "scored", "bounds found": folder / "found", "published": published}


def refused(dear):
    return {name for name, folder in dear.items() if not judge(folder, "epsilon = 1.1")["epsilon"].is_met}


def test_epsilon_is_recomputed(dear):
    assert refused(dear) == dear.keys()


def test_a_policy_that_believes_the_budget_in_model_json_is_rejected(dear, monkeypatch):
    def believe(evidence, most):
        folder = next(each for each in dear.values() if evidence.certificates == verify_folder(each).certificates)
        model = folder / "model.json"
        stated = json.loads(model.read_text())["parameters"]["epsilon"] if model.exists() else 0.0
        return stated <= most, ""

    monkeypatch.setitem(policies._DEMANDS, "epsilon", believe)
    assert refused(dear) == set()


def test_a_policy_that_believes_the_claim_of_a_certificate_is_rejected(dear, monkeypatch):
    def believe(evidence, most):
        return next(iter(evidence.certificates.values())).epsilon <= most, ""

    monkeypatch.setitem(policies._DEMANDS, "epsilon", believe)
    assert refused(dear) == {"bounds found"}


# ------------------------------------------------------------------ policy files


def test_everything_that_is_wrong_with_a_policy_is_told_at_once(home):
    path = home / "wrong.toml"
    path.write_text(
        'epsilom = 1.0\nepsilon = "1"\ndelta = 1\nunit = "persons"\nrelation = ["zero-out"]\nseed = "no"\naccount = 1\n'
        'signature = "owner.pub.pem"\nstatus = "unproved"\n'
    )
    told = sentences(run("verify", home / "careless", "--policy", path))
    assert len(told) == 9
    assert "policy='epsilom': expected no key but epsilon, delta," in told[0]
    assert 'did you mean "epsilon"?' in told[0]
    for key, expected in {
        "epsilon": "a finite number >= 0", "delta": "a number in [0, 1)", "unit": 'one of "record", "person"',
        "relation": "one of", "seed": "true or false", "account": "true or false", "signature": "true or false",
        "status": "one of",
    }.items():  # fmt: skip
        (sentence,) = [each for each in told if f"policy.{key}=" in each]
        assert f": expected {expected}" in sentence


@pytest.mark.parametrize(
    "text",
    ["", "epsilon =", "epsilon = nan", "epsilon = inf", "epsilon = true", "epsilon = -1", "delta = true", "[epsilon]",
     "epsilon = 1\nepsilon = 2", "status = 'Proved'", "seed = 0"],
)  # fmt: skip
def test_a_policy_that_cannot_be_meant_is_refused(home, text):
    path = home / "wrong.toml"
    path.write_text(f"# a policy\n{text}\n")
    assert "policy" in one_sentence(run("verify", home / "careless", "--policy", path))


def test_a_policy_without_an_account_key_leaves_accounts_alone(home):
    assert set(judge(home / "careless", "epsilon = 30")) == {"epsilon"}
    assert isinstance(verify_folder(home / "careless").certificates["certificate.json"], Certificate)
