"""Ways to tamper with the folder of a fit, and whether the folder then contradicts itself.

A forger who knows this library changes every copy of a fact, and writes the report again. What is left then is either
refuted by the events or by another file, or it is a lie that only a signature can show.
"""

from __future__ import annotations

import dataclasses
import hashlib
import html
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from taciturn.accounting import Budget, calibrate
from taciturn.app.model_file import Model
from taciturn.app.report.model import model_report
from taciturn.core.errors import TaciturnError
from taciturn.events import GaussianEvent, event_to_dict
from taciturn.privacy.certificate import Certificate

CERTIFICATE, MODEL, REPORT, SIGNATURE = "certificate.json", "model.json", "report.html", "signature.json"
FILES = (CERTIFICATE, MODEL, REPORT)


@dataclass(frozen=True)
class Tampering:
    """One way.

    Parameters
    ----------
    change : callable
        From the folder, and the folder of another fit by the same owner, to nothing.
    told : str or None
        What contradicts what, so that the folder is refused without a signature; None where nothing does.
    of : {"classify", "regress"}
        The folder that it needs.
    """

    change: Callable[[Path, Path], None]
    told: str | None
    of: str = "classify"


def read(folder: Path, name: str):
    return json.loads((folder / name).read_text(encoding="utf-8"))


def write_model(folder: Path, content) -> None:
    """As :meth:`Model.to_json` does."""
    lines = (f'  "{key}": {json.dumps(value)}' for key, value in content.items())
    (folder / MODEL).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def write_report(folder: Path) -> None:
    """Write the report again where the model can be read, else put certificate and digest into the old one."""
    text = (folder / MODEL).read_text(encoding="utf-8")
    path = folder / REPORT
    try:
        path.write_text(model_report(Model.from_json(text)), encoding="utf-8")
        return
    except TaciturnError:
        page = path.read_text(encoding="utf-8")
    content = html.escape(json.dumps(read(folder, CERTIFICATE), indent=2), quote=False)
    for block in re.findall(r"<code>([^<]*)</code>", page):
        if "taciturn-certificate" in block:
            page = page.replace(block, content)
    digest = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(re.sub("model.json: [0-9a-f]{64}", f"model.json: {digest}", page), encoding="utf-8")


# ------------------------------------------------------------------ what is changed


def certified(change) -> Callable[[Path, Path], None]:
    """A change of the certificate, wherever it stands."""

    def tamper(folder: Path, other: Path) -> None:
        certificate, model = read(folder, CERTIFICATE), read(folder, MODEL)
        change(certificate)
        (folder / CERTIFICATE).write_text(json.dumps(certificate, indent=2) + "\n", encoding="utf-8")
        write_model(folder, model | {"certificate": certificate})
        write_report(folder)

    return tamper


def stated(**fields) -> Callable[[Path, Path], None]:
    """Other values of fields of the certificate, and what follows from them in words."""
    return certified(stated_in(**fields))


def stated_in(**fields) -> Callable[[dict], None]:
    def change(certificate) -> None:
        changed = dataclasses.replace(Certificate.from_json(json.dumps(certificate)), **fields)
        certificate |= fields
        for name in ("unprotected", "side_channels"):
            certificate[name] = list(getattr(changed, name))

    return change


def modelled(change) -> Callable[[Path, Path], None]:
    """A change of the model, with a new report."""

    def tamper(folder: Path, other: Path) -> None:
        content = read(folder, MODEL)
        change(content)
        (folder / CERTIFICATE).write_text(json.dumps(content["certificate"], indent=2) + "\n", encoding="utf-8")
        write_model(folder, content)
        write_report(folder)

    return tamper


def at(*path, value) -> Callable[[dict], None]:
    """A value at a place; a callable is applied to what stands there."""

    def change(content) -> None:
        for key in path[:-1]:
            content = content[key]
        content[path[-1]] = value(content[path[-1]]) if callable(value) else value

    return change


def several(*changes) -> Callable[[dict], None]:
    def change(content) -> None:
        for each in changes:
            each(content)

    return change


def in_text(name: str, old: str, new: str) -> Callable[[Path, Path], None]:
    """Another text in one file."""

    def tamper(folder: Path, other: Path) -> None:
        path = folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text, (name, old)
        path.write_text(text.replace(old, new), encoding="utf-8")

    return tamper


def remove(name: str) -> Callable[[Path, Path], None]:
    return lambda folder, other: (folder / name).unlink()


def swap(*names: str) -> Callable[[Path, Path], None]:
    """Files of another fit by the same owner."""

    def tamper(folder: Path, other: Path) -> None:
        for name in names:
            (folder / name).write_bytes((other / name).read_bytes())

    return tamper


def _more_noise(certificate) -> None:
    """Claim twice the noise of the first release, of which no chain tells what there was before it."""
    event = next(entry for entry in certificate["events"] if entry["noise"] == "Gaussian")
    event["scale"] *= 2.0
    event["event"]["noise_multiplier"] *= 2.0


def _without_event(certificate) -> None:
    del certificate["events"][0]


def _as_sum(certificate) -> None:
    """Nor were sums."""
    certificate["bound"] = "sum"


def _nothing_spent(certificate) -> None:
    """No release and no cost, which do not contradict each other."""
    certificate |= {"events": [], "epsilon": 0.0, "delta": 0.0, "bound": "pure"}


def _one_cheap_release(certificate) -> None:
    """One release in the place of all, with so much noise that a small claim is proved."""
    _replace_releases(certificate, 0.5, [None])


def _halves(certificate) -> None:
    """Every record is charged for one of two halves, and the fit made none."""
    _replace_releases(certificate, certificate["epsilon"], [1, 2])


def _replace_releases(certificate, epsilon, halves) -> None:
    """A release about each of the halves, and the claim that it is calibrated for."""
    scale = calibrate(Budget(epsilon, certificate["delta"]), GaussianEvent)
    described = {"what": "gradients", "noise": "Gaussian", "scale": scale, "count": 1, "remaining": None}
    cost = event_to_dict(GaussianEvent(scale))
    certificate |= {"epsilon": epsilon, "events": [described | {"half": half, "event": cost} for half in halves]}


def _renamed(content) -> None:
    """Another name for a column, wherever it stands."""
    text = json.dumps(content).replace('"age"', '"weight"')
    content |= json.loads(text)


def _other_classes(content) -> None:
    content |= json.loads(json.dumps(content).replace('"yes"', '"zest"'))


def _noise_everywhere(content) -> None:
    """Every coefficient has its noise, if the model states any."""
    if content["noise"] is not None:
        content["noise"] = [[1.0 for _ in row] for row in content["noise"]]


def _swap_classes(content) -> None:
    content["classes"] = content["classes"][::-1]


def _report_of_another_version(folder: Path, other: Path) -> None:
    """The numbers of such a report are not compared."""
    in_text(REPORT, "epsilon = 4", "epsilon = 0.4")(folder, other)
    in_text(REPORT, "This page was written by taciturn ", "This page was written by taciturn 9.")(folder, other)


def _add_file(folder: Path, other: Path) -> None:
    (folder / "notes.txt").write_text("trust me\n", encoding="utf-8")


def _link(folder: Path, other: Path) -> None:
    (folder / "notes.txt").symlink_to(other / MODEL)


WAYS = {
    # The certificate, in every copy.
    "a smaller epsilon": Tampering(certified(at("epsilon", value=1.0)), "the events prove more"),
    "a slightly smaller epsilon": Tampering(certified(at("epsilon", value=3.9)), "the events prove more"),
    "an epsilon beyond the budget": Tampering(certified(at("epsilon", value=9.0)), "the budget of the model"),
    "a smaller delta": Tampering(certified(at("delta", value=1e-9)), "the events prove more"),
    "more noise": Tampering(certified(_more_noise), "epsilon is more than that needs"),
    "fewer releases": Tampering(certified(at("events", 5, "count", value=3)), "the filter's chain"),
    "another remainder": Tampering(certified(at("events", 2, "remaining", value=0.1)), "the filter's chain"),
    "a release left out": Tampering(certified(_without_event), "epsilon is more than the rest needs"),
    "no releases": Tampering(certified(at("events", value=[])), "epsilon without releases"),
    "no releases and no claim": Tampering(certified(_nothing_spent), "a model without a release"),
    "one cheap release, an honest claim": Tampering(certified(_one_cheap_release), "the budget of the model"),
    "a release left out, a sum": Tampering(certified(several(_without_event, _as_sum)),
                                           "epsilon is more than the rest needs"),
    "halves without standard errors": Tampering(certified(_halves), "only inference splits records"),
    "persons without an estimand": Tampering(stated(unit="person"), "a fit about persons states what it estimates"),
    "persons without a column": Tampering(
        certified(several(stated_in(unit="person"), at("public", value=lambda found: found | {"estimand": "means"}))),
        "the bounds name no column of persons",
    ),
    "another relation": Tampering(stated(relation="replace-one"), "the relation of the model"),
    "another unit": Tampering(certified(at("unit", value="person")), "what is unprotected speaks of records"),
    "a larger group": Tampering(certified(at("group_size", value=2)), "the events prove more for groups"),
    "not seeded": Tampering(stated(seeded=False), "the command had a seed"),
    "no assumption": Tampering(certified(at("assumptions", value=lambda found: found[1:])), None),
    "as published": Tampering(certified(several(at("status", value="as published"), at("epsilon", value=0.1))),
                              "a model of this library is not"),
    "not private": Tampering(certified(at("status", value="not private")), "epsilon is a number"),
    "another account": Tampering(certified(at("account_head", value="ab" * 32)), None),
    "a damaged account": Tampering(certified(at("account_head", value="ab")), "a hash has 64 digits"),
    "less unprotected": Tampering(certified(at("unprotected", value=lambda found: found[1:])), "the facts"),
    "fewer side channels": Tampering(certified(at("side_channels", value=[])), "the facts"),
    "more records": Tampering(certified(at("public", "records", value=40_000)), None),
    # The model, with a new report.
    "another coefficient": Tampering(modelled(at("coefficients", 0, 0, value=lambda found: -found)), None),
    "another coefficient, the old report": Tampering(
        lambda folder, other: write_model(folder, read(folder, MODEL) | {"intercept": [0.5]}), "the report's digest"
    ),
    "too many coefficients": Tampering(modelled(several(at("coefficients", 0, value=lambda found: [1.0 for _ in found]),
                                                        _noise_everywhere)), "n_nonzero"),
    "another intercept": Tampering(modelled(at("intercept", 0, value=0.5)), None),
    "another order of classes": Tampering(modelled(_swap_classes), "the order on the certificate"),
    "other classes": Tampering(modelled(_other_classes), None),
    "other classes of the model alone": Tampering(modelled(at("classes", 1, value="zest")), "its bounds"),
    "other bounds of a column": Tampering(modelled(at("bounds", "columns", "age", "upper", value=50.0)), None),
    "another bound of features": Tampering(modelled(at("parameters", "x_bound", value=2.0)), "x_bound"),
    "other bounds of the target": Tampering(modelled(at("bounds", "target", "upper", value=3.0)), "y_bounds",
                                            of="regress"),
    "another name of a column": Tampering(modelled(_renamed), None),
    "another name of a feature": Tampering(modelled(at("features", 0, value="weight")), "the names of the bounds"),
    # One file by itself.
    "a number in the report": Tampering(in_text(REPORT, "epsilon = 4", "epsilon = 0.4"), "the model's report"),
    "a number in the report, and its version": Tampering(_report_of_another_version, "the version in model.json"),
    "a name in the report": Tampering(in_text(REPORT, ">dose<", ">pulse<"), "the model's report"),
    "a certificate without the model": Tampering(in_text(CERTIFICATE, '"seeded": true', '"seeded": false'),
                                                 "the certificate in model.json"),
    "a name twice": Tampering(in_text(MODEL, '"named"', '"target": "ill", "named"'), "programs read it differently"),
    "the certificate of another fit": Tampering(swap(CERTIFICATE), "the certificate in model.json"),
    "the model of another fit": Tampering(swap(MODEL), "the report's digest"),
    "all files of another fit": Tampering(swap(*FILES), None),
    "no certificate": Tampering(remove(CERTIFICATE), "a folder has one"),
    "no model": Tampering(remove(MODEL), "a report needs its model"),
    "no report": Tampering(remove(REPORT), None),
    "a further file": Tampering(_add_file, None),
    "a link": Tampering(_link, "a link is never followed"),
}  # fmt: skip
"""By name. All are refused when the folder is signed; without a signature those that are told."""
