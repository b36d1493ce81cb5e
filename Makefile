# Two commands: `make` builds everything, `make test` runs the tests. Python 3.11 to 3.14 is all they need.
SHELL := /bin/sh
.DEFAULT_GOAL := all
.PHONY: all quick publish test test-browser exhaustive two-builds cluster prove-cluster measure test-measure docs lab certify lint lock clean

BIN := .venv/bin
INSTALLED := .venv/installed
CLUSTER := .venv/cluster
MEASURE := .venv/measure
DOCS := .venv/docs
LAB := .venv/lab
CERTIFY := .venv-certify/installed

# The build of PyTorch, for a CPU or for which CUDA, is this machine's choice: `make measure TORCH=torch==2.14.0`, or install one into .venv first.
TORCH := torch==2.13.0

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

# The quick build twice, under conditions that must not matter: the same bytes, or the first rule that differs. Minutes.
two-builds: $(INSTALLED)
	$(BIN)/python workflow/compare_builds.py

# What snakemake needs to submit jobs to Slurm, on top of the environment (config/README.md).
cluster: $(CLUSTER)

# The quick build's simulations through a Slurm that is started on this host for it, a worker killed, against a local build.
# By root, with Slurm and munge (Debian: apt-get install slurm-wlm munge): minutes.
prove-cluster: $(CLUSTER)
	$(BIN)/python tests/cluster/prove.py

# What `kvtier measure` needs to run a model: PyTorch and transformers, on top of the environment. The other parts need neither.
measure: $(MEASURE)

# Tests that are skipped without PyTorch: the kit on CPU tensors, and the numpy transformer against transformers' own.
test-measure: $(MEASURE)
	$(BIN)/python -m pytest -n auto $$(grep -rl 'importorskip("torch"' tests)

# The documentation as a site that needs no network, into results/site.
docs: $(DOCS)
	$(BIN)/python -m mkdocs build --strict

# The notebooks in JupyterLab, over the results of the last build; a .py opens there as a notebook.
lab: $(LAB)
	JUPYTER_CONFIG_PATH=$(CURDIR)/notebooks/.jupyter $(BIN)/jupyter lab notebooks

# The digests of the published copy, and its research object crate against the profile, by the profile's own validator in an environment of its own: no network.
certify: $(INSTALLED) $(CERTIFY)
	$(BIN)/snakemake --cores all certification
	sha256sum --check --quiet SHA256SUMS
	.venv-certify/bin/python workflow/validate_crate.py

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

# The lock has all that PyTorch needs on any machine, so that of PyTorch's own dependencies only CUDA's libraries come without a hash.
$(MEASURE): $(INSTALLED) requirements-measure.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-measure.lock
	@$(BIN)/python -c 'import torch' 2>/dev/null || { echo 'Installing $(TORCH)'; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'; }
	$(BIN)/python -m pip check
	@touch $@

$(DOCS): $(INSTALLED) requirements-docs.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-docs.lock
	$(BIN)/python -m pip check
	@touch $@

$(LAB): $(INSTALLED) requirements-lab.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-lab.lock
	$(BIN)/python -m pip check
	@touch $@

# The validator asks for an older rich than the project does; rocrate of before 0.16 carries the context of RO-Crate 1.1, which the profile names.
$(CERTIFY): $(INSTALLED) requirements-certify.lock
	$(BIN)/python -m venv --clear .venv-certify
	.venv-certify/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-certify.lock
	@touch $@

# PyTorch and what its CUDA builds bring.
NOT_IN_THE_LOCK := $(addprefix --no-emit-package ,torch triton cuda-bindings cuda-pathfinder cuda-toolkit $(addprefix nvidia-,\
  cublas cuda-cccl cuda-cupti cuda-nvrtc cuda-runtime cudnn-cu13 cufft cufile curand cusolver cusparse cusparselt-cu13 nccl-cu13 nvjitlink \
  nvshmem-cu13 nvtx))

# Renew the locks from pyproject.toml; needs uv. An extra's lock agrees with requirements.lock, and holds all that the extra needs.
lock:
	uv pip compile --universal --generate-hashes --no-emit-index-url --no-emit-find-links --python-version 3.11 \
	  --custom-compile-command "make lock" --group dev pyproject.toml --output-file requirements.lock
	uv pip compile --universal --generate-hashes --no-emit-index-url --no-emit-find-links --python-version 3.11 \
	  --custom-compile-command "make lock" --constraint requirements.lock --extra bench pyproject.toml --output-file requirements-bench.lock
	uv pip compile --universal --generate-hashes --no-emit-index-url --no-emit-find-links --python-version 3.11 \
	  --custom-compile-command "make lock" --constraint requirements.lock --extra cluster pyproject.toml --output-file requirements-cluster.lock
	uv pip compile --universal --generate-hashes --no-emit-index-url --no-emit-find-links --python-version 3.11 \
	  --custom-compile-command "make lock" --constraint requirements.lock --extra docs pyproject.toml --output-file requirements-docs.lock
	uv pip compile --universal --generate-hashes --no-emit-index-url --no-emit-find-links --python-version 3.11 \
	  --custom-compile-command "make lock" --constraint requirements.lock --extra lab pyproject.toml --output-file requirements-lab.lock
	printf 'roc-validator==0.13.0\nrocrate==0.15.0\n' | uv pip compile --universal --generate-hashes --no-emit-index-url --no-emit-find-links --python-version 3.11 \
	  --custom-compile-command "make lock" - --output-file requirements-certify.lock
	echo '$(TORCH)' | uv pip compile --universal --generate-hashes --no-emit-index-url --no-emit-find-links --python-version 3.11 \
	  --custom-compile-command "make lock" --constraint requirements.lock --extra measure $(NOT_IN_THE_LOCK) pyproject.toml - \
	  --output-file requirements-measure.lock

clean:
	rm -rf results .snakemake
