# Everything here works on a machine with Python >= 3.11 and make: each target sets up what it needs in .venv.
#
# Stamps in .venv/stamps record what is done: a second `make test` only runs the tests, an edited source rebuilds the wheel.

VENV   := .venv
BIN    := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
PINNED := $(PIP) install --constraint constraints.txt

# Folders are listed too, so that a deleted file counts as a change.
SOURCES := $(shell find src -not -path '*__pycache__*') pyproject.toml README.md LICENSE

# Tests check every annotation of bertkit, shapes included, at every call. 9,400 tests take 14 to 24 minutes in two
# processes, each of which has whole files, so that what the tests of a file share is made once.
PYTEST := $(BIN)/pytest --jaxtyping-packages=bertkit,shapes.checked
# Where a test may take minutes, a hanging one is reported after half an hour instead of five minutes.
LONG := -o faulthandler_timeout=1800

.DELETE_ON_ERROR:
.PHONY: help quickstart test test-faults test-slow check docs site bench format develop clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-18s %s\n", $$1, $$2}'

quickstart: $(STAMPS)/wheel ## raw text to a fine-tuned BERT, with no input at all
	@$(BIN)/bertkit quickstart -o runs/quickstart-$$(date +%Y%m%d-%H%M%S)

test: $(STAMPS)/wheel $(STAMPS)/tools ## build the wheel, install it, test what is installed
	@BERTKIT_TEST_INSTALLED=1 $(PYTEST) --numprocesses 2 --dist loadfile

test-faults: $(STAMPS)/wheel $(STAMPS)/tools ## crashes, full disks and flipped bits: the long fault tests
	@BERTKIT_TEST_INSTALLED=1 $(PYTEST) -m faults $(LONG)

test-slow: $(STAMPS)/wheel $(STAMPS)/tools ## tests that take minutes each
	@BERTKIT_TEST_INSTALLED=1 $(PYTEST) -m slow $(LONG)

check: $(STAMPS)/tools ## style, types, version and changelog, links of the site
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/python .ci/check_version.py
	@$(BIN)/zensical build --strict

docs: $(STAMPS)/tools ## write docs/reference from the options of the verbs
	@PYTHONPATH=src $(BIN)/python -m bertkit.cli.reference docs/reference

site: $(STAMPS)/tools ## build the documentation site into site/; a broken link is an error
	@$(BIN)/zensical build --strict

bench: $(STAMPS)/wheel $(STAMPS)/tools ## side by side with peers; prints ratios
	@benchmarks/run.sh

format: $(STAMPS)/tools ## let ruff fix what it can
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

develop: $(STAMPS)/tools ## install the source tree itself, so that edits take effect at once
	@rm -f $(STAMPS)/wheel
	@$(PINNED) --no-build-isolation --no-deps --editable .

clean: ## delete everything that was built
	rm -rf $(VENV) build dist site .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(STAMPS)/python:
	@for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
	    $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; \
	done || { echo "error: bertkit needs Python >= 3.11. Name one with: make PYTHON=/path/to/python" >&2; exit 2; }; \
	test -x $(BIN)/python || $$python -m venv $(VENV)
	@mkdir -p $(STAMPS)
	@touch $@

# torch is installed first, at its pinned version: the resolver might otherwise download it, the largest package, twice.
$(STAMPS)/torch: constraints.txt $(STAMPS)/python
	@echo "installing torch and the build backend into $(VENV) (once)" >&2
	@$(PINNED) torch hatchling
	@touch $@

# An editable install (make develop, or pip by hand) is replaced even when no source changed.
ifneq ($(wildcard $(VENV)/lib/python*/site-packages/_editable_impl_bertkit.pth),)
$(STAMPS)/wheel: replace-editable
.PHONY: replace-editable
endif

$(STAMPS)/wheel: $(SOURCES) $(STAMPS)/torch
	@echo "building the wheel and installing it into $(VENV)" >&2
	@rm -rf dist
	@$(PIP) wheel --no-build-isolation --no-deps --wheel-dir dist .
	@$(PIP) uninstall --yes bertkit 2>/dev/null
	@$(PINNED) dist/bertkit-*.whl
	@touch $@

# constraints.txt lists everything that the tests need, so it is also the list of requirements.
$(STAMPS)/tools: constraints.txt $(STAMPS)/torch
	@echo "installing the development tools into $(VENV) (once)" >&2
	@$(PIP) install --requirement constraints.txt
	@touch $@
