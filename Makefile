# The commands of the house. Each first installs what a bare Debian 12 lacks (cmake/setup, cmake/fetch); CMakeLists.txt does
# the rest.
#
#   make             build the library, the command, the examples and the tests
#   make run         train the digit classifier; make run ARGS="--mesh data=256"
#   make run-mpi     the same in two processes, by MPI
#   make test        the suite, once, but for the tests that take longest
#   make test-all    all tests, then again under ASan and UBSan, hostile; then the executor's tests under TSan
#   make test-mpi    what runs in several processes, by MPICH and by Open MPI
#   make coverage    the suite with counters: what no test runs, by room and file -> build-coverage/coverage.txt, index.html
#   make soak        the tests that make programs at random, for an hour; make soak SECONDS=60
#   make bench       ours and theirs in one run -> build/bench.csv; AXLE_JAX_PYTHON names an interpreter that has JAX
#   make oracle      compare with JAX, live; needs AXLE_JAX_PYTHON
#   make docs        all documents as HTML -> build/html/index.html
#   make test-docs   the same, then open every page in a browser: links, anchors, pictures, the browser's console
#   make install     PREFIX=/usr/local
#   make deb         a Debian package of what is installed -> build/axle_*.deb
#   make wheel       the plugin for JAX, for pip -> build/jax_axle_plugin-*.whl
#   make clean       remove what was built
#
# BUILD=folder builds elsewhere than in build/; CC=clang is taken when a folder is first configured.

BUILD ?= build
PREFIX ?= /usr/local
ARGS ?=
SECONDS ?= 3600

.PHONY: all setup run run-mpi test test-all test-mpi coverage soak bench oracle docs test-docs install deb wheel clean

all: setup
	@cmake/build $(BUILD) all

setup:
	@cmake/setup
	@cmake/fetch

run: all
	@$(BUILD)/examples/digits --out $(BUILD)/digits.npz data/digits.csv.gz $(ARGS)

run-mpi: all
	@test -s $(BUILD)/mpi_launchers.txt || { echo "run-mpi: no library of MPI was found" >&2; exit 1; }
	@read -r library launcher <$(BUILD)/mpi_launchers.txt; sh tests/mpi/run.sh "$$launcher" any 2 \
	  env AXLE_PROCESSES=mpi $(BUILD)/examples/digits --out $(BUILD)/digits.npz data/digits.csv.gz $(ARGS)

test: setup
	@cmake/run-tests $(BUILD) plain

test-all: setup
	@cmake/run-tests $(BUILD) plain long sanitized threads

test-mpi: setup
	@cmake/setup cmake/packages-mpi.txt
	@cmake/run-tests $(BUILD) processes

coverage: setup
	@cmake/setup cmake/packages-coverage.txt
	@cmake/run-coverage $(BUILD)-coverage

soak: all
	@cmake/run-soak $(BUILD) $(SECONDS)

bench: all
	@cmake/setup cmake/packages-bench.txt
	@cmake/build $(BUILD) bench_programs
	@AXLE_BUILD=$(BUILD) bench/run $(ARGS)

oracle: all
	@test -n "$$AXLE_JAX_PYTHON" || { echo "oracle: set AXLE_JAX_PYTHON to a Python interpreter that has JAX" >&2; exit 1; }
	@AXLE_BUILD=$(BUILD) tests/oracle/run $(ARGS)

docs: all
	@cmake/setup cmake/packages-docs.txt
	@cmake/html/make $(BUILD)

test-docs: docs
	@cmake/setup cmake/packages-test-docs.txt
	@cmake/html/check $(BUILD)

install: all
	@cmake --install $(BUILD) --prefix $(PREFIX)

deb: all
	@cmake/setup cmake/packages-deb.txt
	@cd $(BUILD) && cpack

wheel: all
	@cmake/wheel $(BUILD)

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-coverage
