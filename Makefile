# Two commands: `make` builds everything, `make test` runs the tests. Python 3.11 to 3.14 is all they need.
SHELL := /bin/sh
.DEFAULT_GOAL := all
.PHONY: all quick publish test test-browser exhaustive cluster prove-cluster lint lock clean

BIN := .venv/bin
INSTALLED := .venv/installed
CLUSTER := .venv/cluster

# Neither snakemake nor the scripts of an environment bear a space in their path, or a move.
ifneq ($(words $(CURDIR)),1)
$(error The path of this folder has a space in it, which snakemake does not bear: $(CURDIR))
endif
ifneq ($(shell cat $(INSTALLED) 2>/dev/null),$(CURDIR))
$(shell rm -f $(INSTALLED))
endif

all: $(INSTALLED)
	$(BIN)/snakemake --cores all

quick: $(INSTALLED)
	$(BIN)/snakemake --cores all quick

publish: $(INSTALLED)
	$(BIN)/snakemake --cores all publish

test: $(INSTALLED)
	$(BIN)/python -m pytest -n auto --dist loadgroup

# The published pages in Chromium (Debian: apt-get install chromium chromium-driver): minutes.
test-browser: $(INSTALLED)
	$(BIN)/python -m pytest -m browser -n auto tests/browser

# Every published record through the readable reference: minutes.
exhaustive: $(INSTALLED)
	$(BIN)/python -m pytest -n auto --dist loadgroup -m exhaustive

# What snakemake needs to submit jobs to Slurm, on top of the environment (config/README.md).
cluster: $(CLUSTER)

# The quick build's simulations through a Slurm that is started on this host for it, a worker killed, against a local build.
# By root, with Slurm and munge (Debian: apt-get install slurm-wlm munge): minutes.
prove-cluster: $(CLUSTER)
	$(BIN)/python tests/cluster/prove.py

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/snakefmt --check Snakefile workflow/rules
	$(BIN)/python workflow/lint.py
	$(BIN)/lint-imports

# The private environment, from hashes alone; made anew when the lock changes.
$(INSTALLED): requirements.lock pyproject.toml
	@python=$$(sh workflow/find_python.sh "$(PYTHON)") || exit 1; \
	echo "Installing into .venv with $$python (about a minute)"; \
	"$$python" -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(BIN)/python -m pip check
	@echo '$(CURDIR)' > $@

$(CLUSTER): $(INSTALLED) requirements-cluster.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-cluster.lock
	$(BIN)/python -m pip check
	@touch $@

# Renew the locks from pyproject.toml; needs uv. An extra's lock agrees with requirements.lock, and holds all that the extra needs.
lock:
	uv pip compile --universal --generate-hashes --no-emit-index-url --no-emit-find-links --python-version 3.11 \
	  --custom-compile-command "make lock" --group dev pyproject.toml --output-file requirements.lock
	uv pip compile --universal --generate-hashes --no-emit-index-url --no-emit-find-links --python-version 3.11 \
	  --custom-compile-command "make lock" --constraint requirements.lock --extra bench pyproject.toml --output-file requirements-bench.lock
	uv pip compile --universal --generate-hashes --no-emit-index-url --no-emit-find-links --python-version 3.11 \
	  --custom-compile-command "make lock" --constraint requirements.lock --extra cluster pyproject.toml --output-file requirements-cluster.lock

clean:
	rm -rf results .snakemake
