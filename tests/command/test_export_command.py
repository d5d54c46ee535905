"""``taciturn export``: every number about privacy is the recomputed cost of the releases, and the rest is marked."""

import json
import math
import re
import shutil
from dataclasses import replace

import pytest
from commands import one_sentence, run, write_patients
from studies import write_key

from taciturn import Account, SparseClassifier
from taciturn.app.answers import OWNER, Answers
from taciturn.app.report.model import model_report
from taciturn.app.verify import verify_folder
from taciturn.core.errors import CertificateError
from taciturn.engines.sites.plan import COORDINATED
from taciturn.privacy.calibration import best_bound
from taciturn.privacy.events import for_group

# What the registry's schema has, as of July 2026: https://github.com/opendp/deployments-registry-data
FIELDS = {
    "basic": "name data_curators intended_use data_product_type data_product_region description publication_date "
    "data_product_sector",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details privacy_parameters privacy_parameters_details",
    "deployment_model": "model_name model_name_details actors release_type release_type_details data_source_type "
    "access_type access_type_details",
    "accounting": "post_processing composition",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms justification",
    "administrative": "sources notes registry_authors",
}
WORDS = {
    ("basic", "data_product_type"): {"Summary statistics", "Machine learning model"},
    ("dp_variant", "variant_name"): {"Pure DP", "Approximate DP"},
    ("deployment_model", "model_name"): {"Central"},
    ("deployment_model", "access_type"): {"Non-interactive"},
}
# A certificate states its budget where what was accounted for is within a thousandth of it.
ROUNDING = 1e-3


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A signed model with a score that one account paid for, and a model with bounds that were found privately."""
    home = tmp_path_factory.mktemp("export")
    table, bounds = write_patients(home)
    key = write_key(home / "owner.pem")
    url = f"sqlite:///{home / 'study.db'}"
    Account.create(url, "patients", epsilon=4.0, delta=1e-4, n=400)
    paid = ["--account", f"{url}#patients"]
    done = run("fit", table, "--bounds", bounds, "--nonzero", 2, "--epsilon", 1, *paid, "-o", home / "model")
    assert done.code == 0, done
    done = run("score", home / "model", table, "--epsilon", 0.5, *paid, "-o", home / "model" / "score.json")
    assert done.code == 0, done
    assert run("verify", home / "model", "--sign", key).code == 0
    assert run("budget", "export", f"{url}#patients", "--output", home / "ledger.jsonl").code == 0
    (home / "found.toml").write_text(bounds.read_text().replace("lower = 0\nupper = 100\n", ""))
    done = run(
        "fit", table, "--bounds", home / "found.toml", "--private-bounds", 0.8, "--epsilon", 5, "--nonzero", 2,
        "--seed", 1, "-o", home / "found",
    )  # fmt: skip
    assert done.code == 0, done
    return home


def costs(folder, ledger=()):
    """Every (epsilon, delta) that may be stated, from the events of the certificates and the total of the account."""
    certificates = list(verify_folder(folder).certificates.values())
    every = [([certificate], certificate.ordered) for certificate in certificates] + [(certificates, False)]
    found = {(entry.facts["epsilon"], entry.facts["delta"]) for entry in ledger[:1]}
    for group, ordered in every:
        event, delta = sum((each.event for each in group[1:]), group[0].event), sum(each.delta for each in group)
        for size in (1, 2):
            together = best_bound(for_group(event, size), delta, ordered=ordered).epsilon
            alone = [best_bound(for_group(each.event, size), each.delta).epsilon for each in group]
            # Budgets also add up by themselves, which is less where one of them is pure.
            found.add((min(together, math.fsum(alone)), delta))
    return found


STATED = re.compile(r"\b(epsilon|delta)(?: = |: | )(\d[\d.]*(?:e[+-]?\d+)?)")


def false_statements(text, folder, ledger=()):
    """Numbers of epsilon and delta in a text that are not what the releases cost."""
    true = dict(zip(("epsilon", "delta"), zip(*costs(folder, ledger), strict=True), strict=True))
    stated = [(name, float(number.rstrip("."))) for name, number in STATED.findall(text)]
    assert {name for name, _ in stated} == {"epsilon", "delta"}
    return [
        (name, number)
        for name, number in stated
        if not any(cost * (1 - 1e-9) <= number <= cost * (1 + ROUNDING) for cost in true[name])
    ]


def answers(home, folder, *, ledger=None):
    return Answers.of(verify_folder(home / folder, write_report=model_report), ledger)


def entries(home):
    return Account.open(f"sqlite:///{home / 'study.db'}", "patients").entries()


# ------------------------------------------------------------------ every statement of privacy loss


@pytest.mark.parametrize("folder", ["model", "found"])
@pytest.mark.parametrize("form", ["registry_record", "nist_answers"])
def test_every_epsilon_and_delta_is_what_the_releases_cost(home, folder, form):
    text = getattr(answers(home, folder), form)()
    assert false_statements(text, home / folder) == []
    paid = entries(home) if folder == "model" else []
    if paid:
        text = getattr(answers(home, folder, ledger=paid), form)()
        assert "epsilon = 4, delta = 0.0001" in text
        assert false_statements(text, home / folder, paid) == []


def test_statements_that_believe_the_budget_in_model_json_are_rejected(home):
    stated = json.loads((home / "found" / "model.json").read_text())["parameters"]["epsilon"]
    assert stated == pytest.approx(1.0)
    true = answers(home, "found")
    text = true.nist_answers().replace(f"epsilon = {true.total.epsilon:g}", f"epsilon = {stated:g}")
    assert {name for name, _ in false_statements(text, home / "found")} == {"epsilon"}


def test_statements_that_leave_out_the_score_are_rejected(home):
    found = verify_folder(home / "model")
    alone = {"certificate.json": found.certificates["certificate.json"]}
    true, false = Answers.of(found), Answers.of(found)
    object.__setattr__(false, "total", alone["certificate.json"])
    assert true._record()["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] > 1.05
    parameters = false._record()["deployment"]["privacy_loss"]["privacy_parameters"]
    assert parameters["epsilon"] == 1.0
    # What is stated of everything is what everything costs.
    together = max(costs(home / "model"))[0]
    assert together > 1.05


def test_the_registry_states_what_all_files_cost_together(home):
    parameters = answers(home, "model")._record()["deployment"]["privacy_loss"]["privacy_parameters"]
    fit, score = verify_folder(home / "model").certificates.values()
    event, delta = fit.event + score.event, fit.delta + score.delta
    together = min(best_bound(event, delta, ordered=False).epsilon, fit.epsilon + score.epsilon)
    assert together * (1 - 1e-9) <= parameters["epsilon"] <= together * (1 + ROUNDING)
    assert parameters["delta"] == delta == 1e-6
    # rho of zero-concentrated differential privacy, from mu of the certificate.
    assert parameters["rho"] == pytest.approx(answers(home, "model").total.mu ** 2 / 2, rel=1e-5)
    assert parameters["rho"] >= answers(home, "model").total.mu ** 2 / 2


def test_a_stated_budget_is_repeated_as_it_was_stated(home):
    whole = answers(home, "model")
    certificates = {name: replace(each, epsilon=0.1, delta=1e-5) for name, each in whole.certificates.items()}
    assert set(replace(whole, certificates=certificates)._files()) == {
        f"{name}: epsilon = 0.1, delta = 1e-05" for name in certificates
    }


# ------------------------------------------------------------------ the two forms


def test_the_record_has_the_fields_of_the_registry_and_marks_what_the_owner_must_say(home):
    yaml = pytest.importorskip("yaml", reason="PyYAML reads the record as the registry does")
    done = run("export", home / "model", "--registry", "-o", home / "record.yaml")
    assert done.code == 0, done
    text = (home / "record.yaml").read_text(encoding="utf-8")
    record = yaml.safe_load(text)
    assert record == answers(home, "model")._record()
    assert (record["status"], record["tier"]) == ("Draft", 3)
    assert set(record) == {"url_slug", "status", "tier", "deployment"}
    deployment = record["deployment"]
    assert {part: set(fields) for part, fields in deployment.items()} == {
        part: set(fields.split()) for part, fields in FIELDS.items()
    }
    for (part, name), words in WORDS.items():
        assert deployment[part][name] in words
    owners = [
        f"{part}.{name}" for part, fields in deployment.items() for name, value in fields.items()
        if str(value[0] if isinstance(value, list) else value).startswith(OWNER)
    ]  # fmt: skip
    assert owners == [
        *(f"basic.{name}" for name in ("name", "data_curators", "intended_use", "data_product_region",
                                       "publication_date", "data_product_sector")),
        *(f"deployment_model.{name}" for name in ("actors", "release_type", "data_source_type")),
        "implementation.preprocessing_and_hyperparameter_tuning", "administrative.sources",
        "administrative.registry_authors",
    ]  # fmt: skip
    assert f"{text.count(OWNER)} places marked OWNER are the owner's to fill in" in done.out


def test_the_answers_have_the_five_parts_and_everything_of_the_certificate(home):
    done = run(
        "export", home / "model", "--nist", "--public-key", home / "owner.pub.pem", "--account", home / "ledger.jsonl"
    )
    assert done.code == 0, done
    assert [line for line in done.out.splitlines() if line.startswith("#")] == [
        "# Answers for a data access body", "## 1. Unit of privacy", "## 2. Parameters", "## 3. Correctness",
        "## 4. Trust model", "## 5. Side channels",
    ]  # fmt: skip
    found = verify_folder(home / "model")
    for certificate in found.certificates.values():
        for release in certificate.events:
            assert str(release).lower() in done.out.lower()
        for text in (*certificate.assumptions, *certificate.unprotected[1:], *certificate.side_channels):
            assert text.lower() in done.out.lower()
    assert "paid for certificate.json and score.json." in done.out
    assert "the public key " + "".join(re.findall("[0-9a-f]{64}", done.out)[-1:]) in done.out
    assert f"{done.out.count(OWNER)} places marked OWNER" in done.err


def test_who_is_trusted_is_what_the_certificates_of_several_sites_say(home):
    whole = answers(home, "model")
    certificates = dict(whole.certificates)
    name, fitted = next((name, each) for name, each in certificates.items() if name != "score.json")
    certificates[name] = replace(fitted, assumptions=(*fitted.assumptions, COORDINATED))
    of_sites = replace(whole, certificates=certificates)
    for form in ("registry_record", "nist_answers"):
        assert "over several sites" not in getattr(whole, form)()
        # The score was made by somebody who holds the records.
        text = getattr(of_sites, form)()
        assert "Central, over several sites: each site holds its own records" in text
        assert "Central: whoever runs the fit holds the records" in text


def test_attack_rates_are_those_of_everything_together(home):
    found = answers(home, "model")
    rates = found.total.attack_rates()
    said = re.search(r"at most ([\d.]+)% at 0.1%, ([\d.]+)% at 1%, ([\d.]+)% at 5%", found.nist_answers())
    for shown, power in zip(said.groups(), rates.tpr, strict=True):
        assert power * 100 <= float(shown) <= power * 100 * 1.01
    assert all(one >= other for one, other in zip(rates.tpr, found.certificates["certificate.json"].attack_rates().tpr,
                                                  strict=True))  # fmt: skip


def test_a_seed_is_said_first_thing(home):
    text = answers(home, "found").nist_answers()
    assert "but seeded and for reproduction only" in text
    assert "Whoever knows the seed" in text
    assert "Everything, from whoever knows the seed of the noise." in text


def test_names_of_columns_cannot_pose_as_answers(home, tmp_path):
    bounds = (home / "bounds.toml").read_text().replace("columns.dose", 'columns."dose\\n- epsilon = 0.01"')
    (tmp_path / "bounds.toml").write_text(bounds)
    table = (home / "patients.csv").read_text().replace("dose,", '"dose\n- epsilon = 0.01",', 1)
    (tmp_path / "patients.csv").write_text(table)
    done = run(
        "fit", tmp_path / "patients.csv", "--bounds", tmp_path / "bounds.toml", "--epsilon", 2, "--seed", 1,
        "-o", tmp_path / "model",
    )  # fmt: skip
    assert done.code == 0, done
    for form in ("registry_record", "nist_answers"):
        text = getattr(answers(tmp_path, "model"), form)()
        assert not [line for line in text.splitlines() if line.strip().startswith("- epsilon")]


# ------------------------------------------------------------------ what is refused


def test_files_that_contradict_themselves_are_not_answered_for(home, tmp_path):
    forged = shutil.copytree(home / "found", tmp_path / "forged")
    content = json.loads((forged / "certificate.json").read_text())
    (forged / "certificate.json").write_text(json.dumps(content | {"epsilon": 0.1}))
    done = run("export", forged, "--nist", "-o", tmp_path / "answers.md")
    assert "epsilon=0.1: expected at least" in one_sentence(done)
    assert not (tmp_path / "answers.md").exists()


def test_one_form_is_named(home):
    for flags in ([], ["--registry", "--nist"]):
        assert "one of --registry and --nist" in one_sentence(run("export", home / "model", *flags))


def test_what_is_not_private_has_no_answers(tmp_path):
    model = SparseClassifier(epsilon=math.inf, x_bound=1.0, classes=(0, 1), n_nonzero=1)
    certificate = model.fit([[0.1], [0.2], [-0.3], [0.4]] * 25, [0, 1, 0, 1] * 25).certificate_
    (tmp_path / "certificate.json").write_text(certificate.to_json())
    with pytest.raises(CertificateError, match="expected a proved guarantee, got status 'not private'"):
        Answers.of(verify_folder(tmp_path))
