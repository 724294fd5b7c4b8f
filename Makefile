# Each target wraps `python -m lib …`, which sets up what it needs; without make, call that directly.
PYTHON ?= python3

.PHONY: book check test execute pages lint clean
book:     ; @$(PYTHON) -m lib book
check:    ; @$(PYTHON) -m lib check
test:     ; @$(PYTHON) -m lib test
execute:  ; @$(PYTHON) -m lib execute
pages:    ; @$(PYTHON) -m lib pages
lint:     ; @$(PYTHON) -m lib setup && .venv/bin/ruff check . && .venv/bin/ruff format --check lib tests data
clean:    ; rm -rf _build
