# Two commands do all the set-up: make demo, make test. Everything lives in .venv, but for examples, the oldest
# supported packages and the built package, which have environments of their own under build/.

ifeq ($(OS),Windows_NT)
PYTHON  ?= python
SCRIPTS := Scripts
else
PYTHON  ?= python3
SCRIPTS := bin
endif
VENV := .venv
BIN  := $(VENV)/$(SCRIPTS)
PIP  := -m pip --disable-pip-version-check --quiet

# The versions of all packages, but for test-oldest and test-newest.
LOCK    := requirements-test.lock
# Without byte code, which is a quarter of the time and comes by itself with the first import.
INSTALL := $(PIP) install --no-compile --constraint $(LOCK)

# Byte code is kept: without it every process that tests start compiles numpy, scipy and scikit-learn anew.
unexport PYTHONDONTWRITEBYTECODE

# Stamps: a venv is set up again only when pyproject.toml or the lock has changed.
CORE    := $(VENV)/.core
DEV     := $(VENV)/.dev
RELEASE := $(VENV)/.release

EXAMPLES := build/examples
ENGINES  := build/engines
OLDEST   := build/oldest
NEWEST   := build/newest
LOCKING  := build/lock
REPORT   := build/demo/model/report.html

# Engines that make test does without: they take minutes to install and to start.
ENGINE_EXTRAS := sites,spark,sql

# Data sets for make reproduce, where they are.
DATA ?= $(wildcard ../shared/data)

.PHONY: help demo test test-slow test-engines test-r test-oldest test-newest lock lint examples lessons site docs wheel \
        sbom release-check bench reproduce arena arena-other comparisons coverage audit ci-tools clean
.DEFAULT_GOAL := help

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /	/' | expand -t 14

$(VENV)/pyvenv.cfg:
	$(PYTHON) -m venv $(VENV)

$(CORE): pyproject.toml $(LOCK) | $(VENV)/pyvenv.cfg
	$(BIN)/python $(INSTALL) --editable '.[cli]'
	@touch $@

$(DEV): pyproject.toml research/pyproject.toml $(CORE)
	$(BIN)/python $(INSTALL) --editable '.[dev,docs]' --editable research
	@touch $@

$(RELEASE): pyproject.toml $(DEV)
	$(BIN)/python $(INSTALL) --editable '.[release]'
	@touch $@

demo: $(CORE) ## Install, then run every step from a table to a report on a public table
	@rm -rf build/demo
	@$(BIN)/taciturn demo --output build/demo

test: $(DEV) ## Every test that is not marked slow, on what the dev extra installs
	$(BIN)/python -m pytest -m "not slow and not engines" -n 2 --dist worksteal

test-slow: $(DEV) ## The tests that take minutes
	$(BIN)/python -m pytest -m "slow and not engines" -n 2 --dist worksteal

$(ENGINES)/.core: pyproject.toml research/pyproject.toml $(LOCK)
	$(PYTHON) -m venv $(ENGINES)
	$(ENGINES)/$(SCRIPTS)/python $(INSTALL) --editable '.[dev,$(ENGINE_EXTRAS)]' --editable research
	@touch $@

# Named, since collecting all other tests takes longer than some of these.
ENGINE_TESTS := $(shell grep -rl 'mark[.]engines' tests --include='test_*.py')

test-engines: $(ENGINES)/.core ## The tests that need Spark, a database server or sites, in an environment of their own
	$(ENGINES)/$(SCRIPTS)/python -m pytest -m engines -n 2 --dist loadfile $(ENGINE_TESTS)

# R and its packages come from the system: apt-get install r-base-core r-cran-jsonlite r-cran-testthat r-cran-generics.
test-r: $(DEV) ## The R package: R CMD check, and predictions in R beside those of Python; skipped where R is not installed
	$(BIN)/python -m pytest tests/r -n 0 -m "" -rs

$(OLDEST)/.core: pyproject.toml research/pyproject.toml constraints-oldest.txt
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/$(SCRIPTS)/python $(PIP) install --constraint constraints-oldest.txt --editable '.[dev]' --editable research
	@touch $@

test-oldest: $(OLDEST)/.core ## The same tests on the oldest packages that pyproject.toml allows
	$(OLDEST)/$(SCRIPTS)/python -m pytest -m "not slow and not engines" -n 2 --dist worksteal

test-newest: ## The same tests on the newest packages of the day, in an environment that is made anew
	rm -rf $(NEWEST)
	$(PYTHON) -m venv $(NEWEST)
	$(NEWEST)/$(SCRIPTS)/python $(PIP) install --editable '.[dev]' --editable research
	$(NEWEST)/$(SCRIPTS)/python -m pytest -m "not slow and not engines" -n 2 --dist worksteal

# In an environment of its own: a lock that pyproject.toml has outgrown cannot be installed.
$(LOCKING)/.core:
	$(PYTHON) -m venv $(LOCKING)
	$(LOCKING)/$(SCRIPTS)/python $(PIP) install uv packaging
	@touch $@

lock: $(LOCKING)/.core ## Renew requirements-test.lock with the newest packages that pyproject.toml allows
	$(LOCKING)/$(SCRIPTS)/python -m tools.lock

lint: $(DEV) ## ruff, mypy (strict), import contracts
	$(BIN)/ruff check src research tests tools docs/tables docs/checks docs/*.py
	$(BIN)/ruff format --check src research tests tools docs/tables docs/checks docs/*.py
	$(BIN)/mypy
	$(BIN)/lint-imports

$(EXAMPLES)/.core: pyproject.toml $(LOCK)
	$(PYTHON) -m venv $(EXAMPLES)
	$(EXAMPLES)/$(SCRIPTS)/python $(INSTALL) --editable '.[cli]' matplotlib pandas statsmodels
	@touch $@

# Lessons take minutes together.
LESSONS := $(notdir $(shell grep -l '^<!-- examples: one session -->' docs/*.md))

examples: $(EXAMPLES)/.core ## Run the examples of README and pages, but for lessons, where only what they name is installed
	$(EXAMPLES)/$(SCRIPTS)/python docs/tables/examples.py README.md $(filter-out $(LESSONS),$(notdir $(wildcard docs/*.md)))

lessons: $(EXAMPLES)/.core ## The same for the lessons
	$(EXAMPLES)/$(SCRIPTS)/python docs/tables/examples.py $(LESSONS)

site: $(DEV) demo ## Build the pages into site/, strictly, and check links, search and spelling, of README and of a report too
	$(BIN)/python -m zensical build --strict --clean
	$(BIN)/python docs/checks/links.py site *.md $(REPORT)
	$(BIN)/python docs/checks/search.py site
	$(BIN)/python docs/checks/spelling.py site README.md $(REPORT)

docs: examples lessons site ## All of the pages: examples, generated tables, the site, and how it is in a browser
	$(BIN)/python docs/tables/noise_scales.py --check
	$(BIN)/python docs/tables/strategies.py --check
	$(BIN)/python docs/tables/published_claims.py --check
	$(BIN)/python docs/tables/papers.py --check
	$(BIN)/python docs/tables/errors.py --check
	$(BIN)/python docs/tables/forest.py --check
	$(BIN)/python docs/tables/intervals.py --check
	$(BIN)/python docs/tables/whitening.py --check
	$(BIN)/python docs/tables/diagrams.py --check
	$(BIN)/python docs/tables/terminal.py --check
	$(BIN)/python -m taciturn_research.benchmarks.compare --check
	$(BIN)/python docs/checks/browser.py site $(REPORT)

wheel: $(RELEASE) ## Build sdist and wheel into dist/, twice; check what they hold, install both elsewhere, run them there
	$(BIN)/python -m tools.release_check build contents page wheel sdist

sbom: $(RELEASE) ## Build as above, and write what the wheel needs to dist/ as CycloneDX; check the licences
	$(BIN)/python -m tools.release_check build wheel sbom licences

release-check: $(RELEASE) ## Everything that a release needs but the tests; says what is left to run
	$(BIN)/python -m tools.release_check

bench: $(DEV) $(ENGINES)/.core ## Ratios to named baselines, measured in one run
	$(BIN)/python -m taciturn_research.benchmarks
	$(ENGINES)/$(SCRIPTS)/python -m taciturn_research.benchmarks engines

reproduce: $(DEV) ## Tables and figures of the papers, quickly; FULL=1 for the papers' numbers of trials
	$(BIN)/taciturn reproduce all --jobs 2 $(if $(FULL),,--quick) $(if $(DATA),--data $(DATA))
	$(BIN)/python docs/tables/reproduction.py reproduction/results.json
	$(BIN)/python docs/tables/papers.py --write

arena: $(DEV) ## Every method on every data set at equal budgets, an hour; FULL=1 for all of it, PUBLISH=1 for the pages
	$(BIN)/taciturn arena --jobs 2 $(if $(FULL),--full) $(if $(DATA),--data $(DATA)) $(if $(PUBLISH),--publish)
	$(if $(PUBLISH),$(BIN)/python -m taciturn_research.benchmarks.compare utility --write)

# Other libraries live in environments of their own under build/, with what is named here.
PEER_diffprivlib := diffprivlib==0.6.6 scikit-learn==1.7.2
PEER_interpret   := interpret-core==0.7.8 scikit-learn==1.9.1
PEER_solvers     := skglm==0.5 glum==3.4.1
PEER_opendp      := opendp==0.16.0
PEER_smartnoise  := smartnoise-sql==1.0.10 smartnoise-synth==1.0.8 scikit-learn packaging
PEER_tumult      := tmlt.analytics==0.21.0
PEER_opacus      := opacus==1.6.0
PEER_synthesis   := opendp[mbi]==0.16.0 scikit-learn pandas
PEERS := diffprivlib interpret solvers opendp smartnoise tumult opacus

build/%/.peer:
	$(PYTHON) -m venv build/$*
	build/$*/$(SCRIPTS)/python $(PIP) install $(PEER_$*)
	@touch $@

comparisons: $(DEV) $(PEERS:%=build/%/.peer) ## Probe and time other libraries, and write the comparison pages; an hour
	$(BIN)/python -m taciturn_research.benchmarks peers
	$(BIN)/python -m taciturn_research.benchmarks.compare --probe --write

# The last commit before the default of version 0.2 was changed, which make arena compares with.
FIRST_EDITION := bcd8f37
# The last commit before coefficients were damped, which make arena compares coefficients with.
BEFORE := 2524bbc

arena-other: build/diffprivlib/.peer build/interpret/.peer build/synthesis/.peer ## Other libraries and earlier versions, for make arena
	for edition in first=$(FIRST_EDITION) before=$(BEFORE); do \
	  place=build/$${edition%=*}; \
	  $(PYTHON) -m venv $$place && mkdir -p $$place/source \
	  && git archive $${edition#*=} | tar -x -C $$place/source \
	  && $$place/$(SCRIPTS)/python $(PIP) install $$place/source || exit 1; \
	done

coverage: $(DEV) ## How often intervals cover, minutes; FULL=1 for all cells, an hour, PUBLISH=1 for the pages
	$(BIN)/python -m taciturn_research.coverage --jobs 2 $(if $(FULL),--full) $(if $(DATA),--data $(DATA)) $(if $(PUBLISH),--publish)

audit: $(DEV) ## Audit every class and every mutant, and write docs/audit.md
	$(BIN)/python docs/tables/audit.py --jobs 2

ci-tools: ## Optional system packages for optional tests; never fails
	@command -v chromium >/dev/null 2>&1 || (command -v apt-get >/dev/null 2>&1 \
	  && apt-get update -qq >/dev/null 2>&1 \
	  && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y chromium >/dev/null 2>&1) \
	  || echo "ci-tools: chromium is not here and cannot be installed; tests that like it are skipped"
	@command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/*/initdb >/dev/null 2>&1 \
	  || (command -v apt-get >/dev/null 2>&1 \
	  && apt-get update -qq >/dev/null 2>&1 \
	  && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y postgresql >/dev/null 2>&1) \
	  || echo "ci-tools: PostgreSQL is not here and cannot be installed; tests that need it are skipped"

clean: ## Remove the venv and everything built
	rm -rf $(VENV) site build dist
