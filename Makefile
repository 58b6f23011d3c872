# Front door only: every line forwards to meson or to a script.  No source file is named here.
B      ?= build
DATA   ?=
TESTS  ?= --no-suite long --no-suite trace --no-suite kube --no-suite kube-long
prefix ?= /usr/local
# gcc's sanitizers warn falsely at -O2, hence a debug build that does not stop on warnings.
SANITIZE = -Dbuildtype=debug -Dwerror=false
# The same tests on another build; lints do not depend on the compiler.  LESS: what else is left out there.
VARIANT  = $(MAKE) --no-print-directory test TESTS='$(TESTS) --no-suite lint $(LESS)'

all: $(B)/build.ninja
	@ninja -C $(B)

$(B)/build.ninja:
	@meson setup $(B) $(OPTS)

run: deps                   ## build and start it here, with simulated GPUs (PORT=7433 STATE=DIR)
	@$(MAKE) --no-print-directory all
	@PORT='$(PORT)' STATE='$(STATE)' ./tools/run $(B)

lab: deps                   ## simulate a week of a small lab, print the report
	@$(MAKE) --no-print-directory all
	@./$(B)/nightshift-sim lab --out $(B)/lab

test: deps                  ## install what is missing, build, run all but the long tests
	@$(MAKE) --no-print-directory all
	@./tools/run-tests $(B) $(TESTS)

check: all                  ## the quick loop: incremental build, all but the slow tests
	@./tools/run-tests $(B) $(TESTS) --no-suite prop

test-long: deps-dev         ## everything, on a virtual machine and in a fresh Debian 12 too
	@./tools/install-deps --long
	@$(MAKE) --no-print-directory all
	@./tools/run-tests $(B) --no-suite kube --no-suite kube-long

test-kube: deps             ## the tests on a real Kubernetes, which is built once (root; ARGS='kube/t1000*')
	@./tools/install-deps --kube --image
	@./tests/kube/build
	@./tests/kube/build-helm
	@$(MAKE) --no-print-directory all
	@./tools/run-tests $(B) --suite kube $(ARGS)

test-kube-long: deps        ## the same with the real operators of JobSet, Kubeflow and Ray, built once too
	@./tools/install-deps --kube --image
	@./tests/kube/build
	@./tests/kube/build-helm
	@./tests/kube/build-operators
	@$(MAKE) --no-print-directory all
	@./tools/run-tests $(B) --suite kube-long $(ARGS)

asan: deps-dev              ## the tests under address and undefined-behaviour sanitizers
	@$(VARIANT) B=build-asan OPTS='-Db_sanitize=address,undefined $(SANITIZE)'

tsan: deps-dev              ## the tests under the thread sanitizer
	@$(VARIANT) B=build-tsan OPTS='-Db_sanitize=thread $(SANITIZE)'

clang: LESS = --no-suite system
clang: deps-dev             ## build all with clang, warnings are errors; its unit, fuzz and property tests
	@CC=clang $(VARIANT) B=build-clang

coverage: deps-dev          ## which lines the tests reach
	@$(VARIANT) B=build-cov OPTS='-Db_coverage=true -Dbuildtype=debug'
	@ninja -C build-cov coverage-text coverage-html
	@cat build-cov/meson-logs/coverage.txt

fuzz: deps-dev              ## fuzz each target for FUZZ_SECONDS (60)
	@CC=clang $(MAKE) --no-print-directory all B=build-fuzz OPTS='-Dfuzz=true -Dwerror=false -Db_lundef=false'
	@./tools/run-fuzz build-fuzz

lint: deps-dev tidy         ## format, layers, sizes, spelling, scripts, clang-tidy; none skipped
	@NIGHTSHIFT_STRICT=1 ./tools/run-tests build-clang --suite lint

tidy: deps-dev              ## clang-tidy alone
	@CC=clang $(MAKE) --no-print-directory all B=build-clang
	@./tools/check-tidy build-clang

bench: deps                 ## the benchmarks: make bench DATA=folder-with-the-traces
	@$(MAKE) --no-print-directory all
	@./bench/run "$(DATA)"

bench-slurm: deps           ## the same work on Slurm and here, with ratios (root; ARGS='--quick')
	@./tools/install-deps --bench
	@$(MAKE) --no-print-directory all
	@./bench/slurm/run $(ARGS)

bench-many: deps            ## the whole product with 100,000 jobs in its store, against its bars
	@$(MAKE) --no-print-directory all
	@NIGHTSHIFT_BUILD=$(abspath $(B)) ./bench/many/run

bench-clients: deps         ## a thousand open pages and 200 requests a second for a minute, against its bars (root)
	@$(MAKE) --no-print-directory all
	@NIGHTSHIFT_BUILD=$(abspath $(B)) ./bench/clients/run $(ARGS)

bench-kube: deps            ## pods of others on a real API server, beside kube-scheduler (ARGS='--quick')
	@./tools/install-deps --kube
	@./tests/kube/build
	@./tests/kube/build-helm
	@$(MAKE) --no-print-directory all
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
	@meson install -C $(B)

clean:                      ## remove every build folder
	@rm -rf build build-*/

help:                       ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

.PHONY: all run lab test check test-long test-kube test-kube-long asan tsan clang coverage fuzz lint tidy bench bench-slurm \
	bench-many bench-clients bench-kube gates fmt deps deps-dev install clean help
