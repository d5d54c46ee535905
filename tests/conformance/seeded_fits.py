"""What seeded fits of every public class leave behind, as text that is equal only if every bit is.

``python tests/conformance/seeded_fits.py --write`` records it in ``tests/data/seeded_fits.json``; without
``--write`` it prints what differs from the record. Record anew only where results change on purpose.

Texts of certificates may change, by :data:`REWORDED` alone. The number of the last bits depends on the processor's
kernels in OpenBLAS and numpy, so the script runs with the kernels of one common kind (:data:`KERNELS`).
"""

import hashlib
import json
import os
import platform
import subprocess
import sys
import warnings
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from seeded_cases import PROVED, table
from seeded_engines import ENGINES, fit_elsewhere
from seeded_published import PUBLISHED, SCORES
from threadpoolctl import threadpool_info

import taciturn
from taciturn import published

RECORD = Path(__file__).parents[1] / "data" / "seeded_fits.json"

CASES = {
    **PROVED,
    "private_score": SCORES,
    **PUBLISHED,
    **{f"{name}, elsewhere": cases for name, cases in ENGINES.items()},
}

# Old text of a certificate -> new text. Each line was reviewed: the sentence means the same.
REWORDED = json.loads((RECORD.parent / "certificate_words.json").read_text(encoding="utf-8"))

# numpy 2.4 names kernels by levels of the architecture, and earlier versions by instructions.
KERNELS = {
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR",
}

_ATTRIBUTES = (
    *("coef_", "intercept_", "support_", "n_iter_", "classes_", "count_", "loss_curve_", "lower_", "upper_"),
    *("baseline_hazard_", "cuts_"),
    *("coef_std_error_", "coef_interval_", "coef_p_value_"),
)
# Five rows to predict or to transform, good ones in every table.
_ROWS = slice(50, 55)


def fingerprint():
    """What bits of floating-point numbers depend on beside the code."""
    packages = ("numpy", "scipy", "scikit-learn", "numba")
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "blas": sorted({pool["architecture"] for pool in threadpool_info() if pool["user_api"] == "blas"}),
        **{package: ".".join(version(package).split(".")[:2]) for package in packages},
    }


def results(name):
    """The ten results of one class, or of ``private_score``."""
    return [result(name, case) for case in CASES[name]]


def result(name, case):
    """What one case leaves behind, by name."""
    return described_score(scored(case)) if name == "private_score" else described_fit(fitted(name, case), case)


def fitted(name, case):
    """The fitted object of a case."""
    own = name.partition(",")[0].partition(" ")[0]
    kind = getattr(taciturn if own in PROVED else published, own)
    X, targets = table(case.table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", taciturn.WeakBudgetWarning)
        if name.endswith(", elsewhere"):
            return fit_elsewhere(kind(**case.arguments), case)
        return kind(**case.arguments).fit(X, targets[case.target], **case.fit_arguments)


def scored(case):
    """The score of a case."""
    X, targets = table(case.table)
    arguments = dict(case.arguments)
    return taciturn.private_score(arguments.pop("model"), X, targets[case.target], **arguments)


def described_fit(model, case):
    """Attributes, predictions on five rows (or what these are transformed to), and the certificate in numbers."""
    found = {name: bits(getattr(model, name)) for name in _ATTRIBUTES if hasattr(model, name)}
    rows = table(case.table)[0][_ROWS]
    for method in ("predict", "predict_proba", "transform"):
        if hasattr(model, method) and "container" not in case.fit_arguments:
            answer = getattr(model, method)(rows)
            # Whether predict itself keeps to the public range is a matter of its contract, not of bits.
            ranged = method == "predict" and hasattr(model, "y_bounds_")
            found[method] = bits(np.clip(answer, *model.y_bounds_) if ranged else answer)
    return found | described_certificate(model.certificate_)


def described_score(score):
    """The value, the deviation of its noise, and the certificate in numbers."""
    return {"value": bits(score.value), "std": bits(score.std)} | described_certificate(score.certificate)


def described_certificate(certificate):
    """Its guarantee and its events without the words for what was released, which may be put otherwise."""
    said = json.loads(certificate.to_json())
    # Releases about all records are described as they were before there were halves.
    unsaid = {"what": str, "half": type(None)}
    events = [
        {name: value for name, value in event.items() if not isinstance(value, unsaid.get(name, ()))}
        for event in said["events"]
    ]
    kinds = Counter()
    for event in events:
        kinds[event["event"]["kind"]] += event["count"]
    listed = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    digest = hashlib.sha256(json.dumps(events, sort_keys=True).encode()).hexdigest()[:16]
    guarantee = ("epsilon", "delta", "proved_epsilon", "status", "relation", "bound", "arithmetic")
    texts: list[str] = []
    numbers = _numbers_and_texts(said, texts)
    digest_of_all = hashlib.sha256(json.dumps(numbers, sort_keys=True).encode()).hexdigest()[:16]
    return {name: said[name] for name in guarantee} | {
        "events": f"{digest} {listed}",
        "numbers": digest_of_all,
        "texts": texts,
    }


def _numbers_and_texts(value, texts):
    """The value with every sentence replaced by its place in ``texts``; short words and numbers stay."""
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if key not in ("taciturn", "version")}
        return {key: _numbers_and_texts(each, texts) for key, each in kept.items()}
    if isinstance(value, list):
        return [_numbers_and_texts(each, texts) for each in value]
    if isinstance(value, str) and " " in value:
        texts.append(value)
        return "text"
    return value


def bits(value):
    """A number in full, or a digest of an array's type, shape and bytes with a few entries for people to see."""
    array = np.asarray(value.toarray() if sp.issparse(value) else value)
    if array.ndim == 0:
        return repr(array.item())
    if array.dtype.kind in "OU":
        # As wide as the longest entry, whatever room there was.
        array = np.array(array.astype(str).tolist())
    digest = hashlib.sha256(f"{array.dtype.kind}{array.shape}".encode() + array.tobytes()).hexdigest()[:16]
    shown = array.ravel() if array.dtype.kind == "U" else array[array != 0]
    shown = np.flatnonzero(array) if array.dtype == bool else shown
    return " ".join((digest, *(str(entry) for entry in shown[:3].tolist())))


def differences(recorded, found):
    """A line for whatever is not equal in two results of one class."""
    lines = []
    if len(recorded) != len(found):
        lines.append(f"{len(recorded)} cases were recorded, {len(found)} are here")
    for place, (old, new) in enumerate(zip(recorded, found, strict=False), start=1):
        for name in sorted({*old, *new}):
            before = [REWORDED.get(text, text) for text in old[name]] if name == "texts" else old.get(name)
            if before != new.get(name) or (name in old) != (name in new):
                lines.append(f"case {place}: {name} was {old.get(name)!r}, is {new.get(name)!r}")
    return lines


def recorded():
    """What the file says."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    for cases in record["fits"].values():
        for case in cases:
            case["texts"] = [record["sentences"][place] for place in case["texts"]]
    return record


def run_with_common_kernels(*arguments):
    """Run this script in a process of its own with the kernels of the record."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", __file__, *arguments],
        env=os.environ | KERNELS,
        capture_output=True,
        text=True,
        check=False,
    )


def main(arguments):
    """Write the record, or print what differs from it in the classes that are named, all by default."""
    named = [name for name in arguments if not name.startswith("--")] or list(CASES)
    fits = {name: results(name) for name in named}
    if "--write" in arguments:
        # A line for each case: short, and a change shows as a line in a diff. Sentences are listed once.
        sentences = sorted({text for cases in fits.values() for case in cases for text in case["texts"]})
        places = {text: place for place, text in enumerate(sentences)}
        for cases in fits.values():
            for case in cases:
                case["texts"] = [places[text] for text in case["texts"]]
        lists = (f'"{name}": [\n' + ",\n".join(map(json.dumps, cases)) + "\n]" for name, cases in fits.items())
        head = f'{{"fingerprint": {json.dumps(fingerprint())},\n"sentences": {json.dumps(sentences, indent=0)},\n'
        RECORD.write_text(head + '"fits": {\n' + ",\n".join(lists) + "\n}}\n", encoding="utf-8")
        return 0
    if recorded()["fingerprint"] != fingerprint():
        sys.stdout.write("another system or other packages\n")
        return 2
    before = recorded()["fits"]
    lines = [f"{name}, {line}\n" for name in named for line in differences(before.get(name, []), fits[name])]
    sys.stdout.writelines(lines)
    return 1 if lines else 0


if __name__ == "__main__":
    if any(os.environ.get(name) != value for name, value in KERNELS.items()):
        again = run_with_common_kernels(*sys.argv[1:])
        sys.stdout.write(again.stdout + again.stderr)
        sys.exit(again.returncode)
    sys.exit(main(sys.argv[1:]))
