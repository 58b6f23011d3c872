# Front door only: every line forwards to meson or to a script.  No source file is named here.
B      ?= build
DATA   ?=
TESTS  ?= --suite unit --suite prop --suite lint --suite smoke
prefix ?= /usr/local
# Ours alone: a new compiler warns of new things, and whoever only builds this can do nothing about it.
WERROR ?= false
# clang's sanitizers, so that one build finds what they find and what clang warns of.
CLANG    = WERROR=true CC='$(if $(shell command -v ccache),ccache )clang'
SANITIZE = -Dbuildtype=debug -Doptimization=1 -Db_lundef=false
# Tests of whole programs wait most of their time.
WAITING  = --num-processes $(shell expr 2 '*' $$(nproc))

all: $(B)/build.ninja
	@ninja -C $(B) product

benches: $(B)/build.ninja
	@ninja -C $(B) benches

$(B)/build.ninja:
	@meson setup $(B) -Dwerror=$(WERROR) $(OPTS)

run: deps                   ## build and start it here, with simulated GPUs (PORT=7433 STATE=DIR)
	@$(MAKE) --no-print-directory all
	@PORT='$(PORT)' STATE='$(STATE)' ./tools/run $(B)

stop:                       ## end what `make run` started in another terminal (STATE=DIR)
	@STATE='$(STATE)' ./tools/run --stop $(B)

lab: deps                   ## simulate a week of a small lab, print the report
	@$(MAKE) --no-print-directory all
	@./$(B)/nightshift-sim lab --out $(B)/lab

test: deps                  ## install what is missing, build, run unit tests, properties, lints, a smoke test
	@$(MAKE) --no-print-directory tests

tests: $(B)/build.ninja
	@./tools/run-tests $(B) $(TESTS)

check: $(B)/build.ninja     ## the quick loop: incremental build, unit tests, lints, a smoke test
	@./tools/run-tests $(B) --suite unit --suite lint --suite smoke

test-system: deps           ## every program from the outside, as in asan but on the plain build (root)
	@$(MAKE) --no-print-directory tests TESTS='--suite system $(WAITING)'

test-long: deps-dev         ## everything, with new seeds, on a virtual machine and on freshly installed releases too
	@./tools/install-deps --long
	@NIGHTSHIFT_NEW_SEEDS=1 $(MAKE) --no-print-directory tests TESTS='--no-suite kube --no-suite kube-long'

flake-hunt: deps            ## the tests N times (5) on a machine that is kept busy, and what failed (root; ARGS='t0310-run')
	@$(MAKE) --no-print-directory $(B)/build.ninja
	@./tools/flake-hunt $(N) --build $(B) $(ARGS)

test-distros:               ## make run and the unit tests in each release that the README names (root; DISTROS='trixie noble')
	@./tools/install-deps --dev
	@DISTROS='$(DISTROS)' ./tests/system/fresh-distro

test-kube: deps             ## the tests on a real Kubernetes, which is built once (root; ARGS='kube/t1000*')
	@./tools/install-deps --kube --image
	@./tests/kube/build
	@./tests/kube/build-helm
	@$(MAKE) --no-print-directory tests TESTS='--suite kube --num-processes 2 $(ARGS)'

test-kube-long: deps        ## the same with the real operators of JobSet, Kubeflow and Ray, built once too
	@./tools/install-deps --kube --image
	@./tests/kube/build
	@./tests/kube/build-helm
	@./tests/kube/build-operators
	@$(MAKE) --no-print-directory tests TESTS='--suite kube-long $(ARGS)'

asan: deps-dev              ## built by clang, warnings are errors: unit, fuzz and system tests under sanitizers
	@$(CLANG) $(MAKE) --no-print-directory tests B=build-asan OPTS='-Db_sanitize=address,undefined $(SANITIZE)' \
		TESTS='--suite unit --suite fuzz --suite system $(WAITING)'

tsan: deps-dev              ## the unit tests under the thread sanitizer
	@$(CLANG) $(MAKE) --no-print-directory tests B=build-tsan OPTS='-Db_sanitize=thread $(SANITIZE)' TESTS='--suite unit'

coverage: deps-dev          ## which lines the tests reach
	@$(MAKE) --no-print-directory tests B=build-cov OPTS='-Db_coverage=true -Dbuildtype=debug' \
		TESTS='--suite unit --suite prop --suite fuzz --suite system'
	@ninja -C build-cov coverage-text coverage-html
	@cat build-cov/meson-logs/coverage.txt

fuzz: deps-dev              ## fuzz each target for FUZZ_SECONDS (60)
	@test -e build-fuzz/build.ninja || CC=clang meson setup build-fuzz -Dfuzz=true -Db_lundef=false
	@ninja -C build-fuzz
	@./tools/run-fuzz build-fuzz

lint: deps-dev tidy         ## format, layers, sizes, spelling, scripts, clang-tidy; none skipped
	@NIGHTSHIFT_STRICT=1 $(MAKE) --no-print-directory tests TESTS='--suite lint'

tidy: deps-dev              ## clang-tidy alone; a file that was clean is not looked at again until it changes
	@$(CLANG) $(MAKE) --no-print-directory B=build-asan OPTS='-Db_sanitize=address,undefined $(SANITIZE)' all
	@./tools/check-tidy build-asan

bench: deps                 ## the benchmarks: make bench DATA=folder-with-the-traces
	@$(MAKE) --no-print-directory all benches
	@./bench/run "$(DATA)"

bench-slurm: deps           ## the same work on Slurm and here, with ratios (root; ARGS='--quick')
	@./tools/install-deps --bench
	@$(MAKE) --no-print-directory all benches
	@./bench/slurm/run $(ARGS)

bench-many: deps            ## the whole product with 100,000 jobs in its store, against its bars
	@$(MAKE) --no-print-directory all benches
	@NIGHTSHIFT_BUILD=$(abspath $(B)) ./bench/many/run

bench-clients: deps         ## a thousand open pages and 200 requests a second for a minute, against its bars (root)
	@$(MAKE) --no-print-directory all benches
	@NIGHTSHIFT_BUILD=$(abspath $(B)) ./bench/clients/run $(ARGS)

bench-kube: deps            ## pods of others on a real API server, beside kube-scheduler (ARGS='--quick')
	@./tools/install-deps --kube
	@./tests/kube/build
	@./tests/kube/build-helm
	@$(MAKE) --no-print-directory all benches
	@NIGHTSHIFT_BUILD=$(abspath $(B)) ./bench/kube/run $(ARGS)

gates: deps                 ## what the published results demand: make gates DATA=folder
	@$(MAKE) --no-print-directory all
	@./bench/gates "$(DATA)"

fmt:                        ## format the C files in place
	@./tools/check-format --fix

deps:                       ## install what building and testing needs
	@./tools/install-deps

deps-dev:                   ## and what developers and CI use
	@./tools/install-deps --dev

install: all                ## honours prefix and DESTDIR
	@meson configure $(B) -Dprefix=$(prefix)
	@ninja -C $(B) product
	@meson install -C $(B) --no-rebuild

clean:                      ## remove every build folder
	@rm -rf build build-*/

help:                       ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

.PHONY: all benches run stop lab test tests check test-system test-long flake-hunt test-distros test-kube test-kube-long asan tsan coverage fuzz lint tidy bench bench-slurm \
	bench-many bench-clients bench-kube gates fmt deps deps-dev install clean help
