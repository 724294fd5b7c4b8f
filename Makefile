# Every target sets up .venv first (once, and again when the pins change). `python -m lib` lists the other commands.
PYTHON ?= python3
BIN := .venv/bin
QUIET := --disable-pip-version-check --quiet

.PHONY: setup book test check live lab bench clean
setup: .venv/ready
.venv/ready: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.11 …" if sys.version_info < (3, 11) else 0)'
	@echo "setting up .venv (a few minutes the first time) …"
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install $(QUIET) -r requirements.txt
	@$(BIN)/pip install $(QUIET) --no-deps --no-build-isolation --editable .
	@touch $@

book: setup            # execute stale pages, render to _build/html/index.html
	@$(BIN)/python -m lib book

test: setup            # everything: unit tests, every page, the claims, the rendered book in a browser
	@command -v chromium chromium-browser google-chrome >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get -qq update && apt-get -qq install -y chromium >/dev/null; } \
	  || { echo "the browser tests need Chromium; install it with your package manager"; exit 2; }
	@$(BIN)/ruff check . && $(BIN)/ruff format --check lib tests data book/_ext book/conftest.py
	@$(BIN)/python -m pytest tests book --nbval-lax -n 2 --dist loadfile

check: setup           # under a minute: ruff, all unit tests, claims and pages without executing them
	@$(BIN)/ruff check . && $(BIN)/ruff format --check lib tests data book/_ext book/conftest.py
	@$(BIN)/python -m pytest tests -m "not slow" -n 2 --dist loadfile

live: setup            # the book in the browser, executed and rendered anew on every save
	@$(BIN)/pip install $(QUIET) -e '.[live]'
	@$(BIN)/jupyter-book config sphinx . >/dev/null
	@PYTHONPATH=book/_ext $(BIN)/sphinx-autobuild --host 127.0.0.1 --open-browser --pre-build "$(BIN)/python -m lib execute" --re-ignore "(^|/)(_build|_runs|\.venv|\.git|\.hypothesis|\.ruff_cache|\.pytest_cache|\.ipynb_checkpoints|__pycache__|conf\.py)(/|$$)" --watch lib . _build/live

lab: setup             # the pages in JupyterLab; edits there and in the .md are kept in step by jupytext
	@$(BIN)/pip install $(QUIET) -e '.[lab]'
	@$(BIN)/jupyter lab --ip=127.0.0.1

bench: setup           # what the fast paths of the library buy: fast beside plain, equal numbers asserted
	@$(BIN)/python -m pytest tests/benchmarks --benchmark-enable --benchmark-only --benchmark-json=book/benchmarks.json

clean:
	rm -rf _build
