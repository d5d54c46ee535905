"""Ask the search of the built site what readers ask: the page that answers is among the first three hits.

Usage: ``python docs/checks/search.py SITE``. The search is the theme's own script with the index of the site, run by
the Node.js that comes with Playwright, so that the order of the hits is the one that a reader sees, and no browser is
needed. Each query that misses is one line, with the hits; the exit code is 1 if there is any.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from playwright._impl._driver import compute_driver_executable

# Queries in the words of the field, and pages of which one has to be found.
QUERIES = {
    "confidence interval": ("inference",),
    "standard error": ("inference",),
    "choose epsilon": ("epsilon",),
    "how many records": ("epsilon",),
    "sample size": ("epsilon",),
    "Spark": ("engines",),
    "logistic regression": ("start", "models"),
    "Poisson regression": ("families",),
    "survival hazard ratio": ("families",),
    "sample weights": ("families",),
    "cluster persons several rows": ("persons",),
    "federated hospitals": ("sites",),
    "odds ratio": ("start", "inference"),
    "p-value": ("inference",),
    "feature selection": ("selectors", "models"),
    "Renyi": ("accounting",),
    "budget account": ("accounts",),
    "glmnet": ("coming-from",),
    "R package": ("coming-from",),
    "certificate verify": ("certificates",),
}
FIRST = 3
# Reads a site and queries from its arguments; prints, as JSON, the addresses of the hits of each query in their order.
SCRIPT = """
const fs = require("fs"), path = require("path"), vm = require("vm");
const [site, ...queries] = process.argv.slice(1);
const scripts = path.join(site, "assets", "javascripts", "workers");
const index = JSON.parse(fs.readFileSync(path.join(site, "search.json"), "utf8"));
globalThis.self = {};
const [worker] = fs.readdirSync(scripts).filter(name => /^search.*[.]js$/.test(name));
vm.runInThisContext(fs.readFileSync(path.join(scripts, worker), "utf8"));
const ask = message => new Promise(resolve => {
  self.postMessage = resolve;
  self.onmessage({data: message});
});
(async () => {
  await ask({type: 0, data: index});
  const found = [];
  for (const query of queries) {
    const {data} = await ask({type: 2, data: {input: query}});
    found.push(data.items.map(hit => index.items[hit.id].location));
  }
  console.log(JSON.stringify(found));
})();
"""


def hits_of(site: Path, queries: list[str]) -> list[list[str]]:
    """Addresses of the hits of each query, the best first."""
    node, _ = compute_driver_executable()
    run = subprocess.run(
        [node, "--eval", SCRIPT, "--", str(site), *queries], capture_output=True, text=True, check=True, timeout=120
    )
    return json.loads(run.stdout)


def problems_of(site: Path, expected: dict[str, tuple[str, ...]]) -> list[str]:
    """Queries for which none of the expected pages is among the first hits."""
    problems = []
    for (query, pages), hits in zip(expected.items(), hits_of(site, list(expected)), strict=True):
        first = hits[:FIRST]
        if not any(hit.partition("#")[0] == f"{page}.html" for hit in first for page in pages):
            problems.append(f"{query!r} does not find {' or '.join(pages)}, but {', '.join(first) or 'nothing'}")
    return problems


def main(arguments: list[str]) -> int:
    """Check."""
    if len(arguments) != 1:
        print("usage: search.py SITE", file=sys.stderr)
        return 2
    problems = problems_of(Path(arguments[0]), QUERIES)
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"{len(QUERIES)} queries, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
