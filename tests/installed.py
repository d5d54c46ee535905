"""What ``make wheel`` runs outside the source tree, where the wheel is installed and no extra is."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np

import taciturn

HERE = Path(sys.prefix)

assert HERE in Path(taciturn.__file__).parents, "this is not the installed package"
assert taciturn.__version__ == version("taciturn")
assert Path(taciturn.__file__).with_name("py.typed").exists()

rng = np.random.default_rng(0)
X = rng.uniform(-1.0, 1.0, (5000, 20))
y = X[:, 3] - X[:, 7] > 0.0
model = taciturn.SparseClassifier(epsilon=1.0, x_bound=1.0, classes=(False, True), n_nonzero=2, random_state=0)
model.fit(X, y)
assert np.flatnonzero(model.coef_).tolist() == [3, 7]
assert model.certificate_.epsilon <= 1.0

(script,) = [path for path in Path(sys.executable).parent.glob("taciturn*") if path.stem == "taciturn"]
run = subprocess.run([script, "--version"], capture_output=True, text=True, check=False)
assert run.returncode == 1
assert run.stderr == "taciturn: the command line needs pyarrow, rich, typer; run pip install 'taciturn[cli]'.\n"
