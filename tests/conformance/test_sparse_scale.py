"""Wide sparse tables: never densified, within the memory of the data and a little more; quick in a new process."""

import os
import subprocess
import sys
import textwrap

import pytest

FIT = """
    import resource
    import numpy as np
    import scipy.sparse as sp
    from taciturn import {kind}

    rng = np.random.default_rng(0)
    n, d, per_row = 3000, 1_000_000, 30
    indices = np.sort(rng.integers(0, d, (n, per_row)), axis=1).ravel().astype(np.int32)
    X = sp.csr_matrix((rng.uniform(-1, 1, n * per_row), indices, np.arange(0, n * per_row + 1, per_row)), shape=(n, d))
    X.sum_duplicates()
    y = {target}
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    # A dense copy would take 24 GB; this leaves 1 GB for everything.
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, used + 2**30))
    fitted = {kind}({parameters}).fit(X, y)
    print(int(fitted.support_.sum()))
"""
CASES = {
    "CorrelationSelector": ("rng.uniform(-1, 1, n)", "n_features_to_select=20", "20"),
    "FrankWolfeRegressor": ("rng.uniform(-1, 1, n)", "n_steps=25", None),
    "SparsifiedClassifier": ("rng.integers(0, 2, n)", "n_steps=25, n_nonzero=7, classes=(0, 1)", "7"),
}


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux to know the memory in use")
@pytest.mark.parametrize("kind", CASES)
def test_a_million_columns_stay_sparse(kind):
    target, parameters, expected = CASES[kind]
    code = textwrap.dedent(FIT.format(kind=kind, target=target, parameters=parameters))
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert expected is None or run.stdout.strip() == expected
    assert int(run.stdout) <= 25


@pytest.mark.slow
def test_the_memory_limit_of_that_test_can_fail():
    code = textwrap.dedent(FIT.format(kind="CorrelationSelector", target="rng.uniform(-1, 1, n)", parameters=""))
    code = code.replace("fitted = ", "X.toarray(); fitted = ")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert "MemoryError" in run.stderr


FIRST_FIT = """
    import importlib, pkgutil
    import numpy as np
    import scipy.sparse as sp
    import taciturn.kernels
    from taciturn import FrankWolfeClassifier
    from taciturn.kernels.compiled import Kernel

    X = sp.random(200, 50, 0.2, "csr", random_state=0, dtype={dtype})
    FrankWolfeClassifier(n_steps=20, classes=(0, 1)).fit(X, np.arange(200) % 2)
    misses = 0
    for module in pkgutil.iter_modules(taciturn.kernels.__path__, "taciturn.kernels."):
        for item in vars(importlib.import_module(module.name)).values():
            if isinstance(item, Kernel):
                misses += sum(item.dispatcher.stats.cache_misses.values())
    print(misses)
"""


def compiled(cache, dtype="np.float64"):
    """How many kernels a first fit in a new process has to compile."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    code = textwrap.dedent(FIRST_FIT.format(dtype=dtype))
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return int(run.stdout)


@pytest.mark.slow
def test_the_first_fit_in_a_new_process_compiles_nothing(tmp_path):
    assert compiled(tmp_path) > 0
    assert compiled(tmp_path) == 0
    assert compiled(tmp_path, dtype="np.float32") == 0  # other types are cast, not compiled
