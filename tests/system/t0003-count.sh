#!/bin/sh
# The sum at the end of `make test` and of `.ci/run` is true, and what failed is told before it: run-tests is fed a meson
# that only writes a log, .ci/run a make that only prints one.
. "$(dirname "$0")/lib.sh"

mkdir -p bin b/meson-logs
cat >bin/meson <<'END'
#!/bin/sh
cp log b/meson-logs/testlog.json
exit "$(cat status)"
END
chmod +x bin/meson
PATH=$PWD/bin:$PATH
run="$NIGHTSHIFT_SOURCE/tools/run-tests"
log() {
    echo "$1" >status
    shift
    printf '%s\n' "$@" >log
}
last_line_is() {
    [ "$(tail -n 1 out)" = "$1" ] || { tail -n 1 out; return 1; }
}

test_expect 'cases are counted, not programs' '
    log 0 "{\"name\":\"a\",\"result\":\"OK\",\"stdout\":\"1..2\\nok 1 - x\\nok 2 - y\\n\"}" \
          "{\"name\":\"b\",\"result\":\"OK\",\"stdout\":\"free text\"}" &&
    "$run" b >out && last_line_is "3 passed, 0 failed"'

test_expect 'a failed case fails the run' '
    log 1 "{\"name\":\"a\",\"result\":\"FAIL\",\"stdout\":\"1..2\\nok 1 - x\\nnot ok 2 - y\\n\"}" &&
    exits_with 1 "$run" b >out && last_line_is "1 passed, 1 failed"'

test_expect 'a crash between cases is a failure' '
    log 1 "{\"name\":\"a\",\"result\":\"ERROR\",\"stdout\":\"1..3\\nok 1 - x\\n\"}" &&
    exits_with 1 "$run" b >out && last_line_is "1 passed, 1 failed"'

test_expect 'what failed is told before the sum: program, cases, last words' '
    log 1 && python3 -c "
import json
words = [f\"# line {n}\" for n in range(1, 51)]
for entry in ({\"name\": \"good\", \"result\": \"OK\", \"stdout\": \"ok 1 - x\"},
              {\"name\": \"bad\", \"result\": \"ERROR\", \"returncode\": 1, \"duration\": 2.4, \"stderr\": \"its complaint\",
               \"stdout\": \"\\n\".join([\"not ok 1 - y\", *words, \"ok 2 - z\"])}):
    print(json.dumps(entry))" >log &&
    exits_with 1 "$run" b >out && last_line_is "2 passed, 1 failed" && grep "^failed: " out >end &&
    head -n 2 end | tr "\n" / | grep "^failed: bad: ERROR, exit status 1, 2 s/failed:   not ok 1 - y/$" &&
    grep "^failed:   | # line 50$" end && ! grep "# line 20$" end && grep "^failed:   | stderr: its complaint$" end &&
    ! grep good end'

test_expect 'a skipped case is neither, and its reason is shown' '
    log 0 "{\"name\":\"a\",\"result\":\"OK\",\"stdout\":\"ok 1 - x\\nok 2 - y # SKIP no GPU\\n1..2\\n\"}" \
          "{\"name\":\"c\",\"result\":\"SKIP\",\"stdout\":\"no tool\\n\"}" &&
    "$run" b >out && last_line_is "1 passed, 0 failed" &&
    grep "^skipped: a: no GPU" out && grep "^skipped: c: no tool" out'

test_expect 'new seeds are told, those that stay are not' '
    log 0 "{\"name\":\"a\",\"result\":\"OK\",\"stdout\":\"# NIGHTSHIFT_SEED=17\\nok 1 - x\\n\"}" &&
    NIGHTSHIFT_NEW_SEEDS=1 "$run" b >out && grep "^seed: a: NIGHTSHIFT_SEED=17$" out && "$run" b >out && ! grep "^seed" out'

test_expect 'a run of nothing is not a success' '
    log 0 "{\"name\":\"c\",\"result\":\"SKIP\",\"stdout\":\"no tool\\n\"}" &&
    exits_with 1 "$run" b'

test_expect 'yesterday'"'"'s log is not counted' '
    log 0 "{\"name\":\"a\",\"result\":\"OK\",\"stdout\":\"ok 1 - x\\n\"}" && "$run" b >out &&
    echo "exit 1" >bin/meson && exits_with 1 "$run" b >out && last_line_is "0 passed, 1 failed"'

mkdir -p ci/.ci ci/tools
cp "$NIGHTSHIFT_SOURCE/.ci/run" ci/.ci/
printf '#!/bin/sh\n' >ci/tools/install-deps
cat >bin/make <<'END'
#!/bin/sh
case $1 in
test) printf 'ok 1 - x\nfailed: unit/a: ERROR\nfailed:   not ok 2 - y\ntook 3.5 s: unit/a\n7 passed, 1 failed\n' ;;
tidy) echo 'error: it does not build' ;;
asan) printf 'took 12.0 s: system/b\n5 passed, 0 failed\n' && exit 0 ;;
esac
exit 1
END
chmod +x bin/make ci/tools/install-deps

test_expect '.ci/run ends with what failed in each part, how long they took, and the sum' '
    exits_with 1 ci/.ci/run gcc lint asan >out && last_line_is "12 passed, 2 failed" &&
    sed "1,/^==== lint: 0 passed/d; s/ *[0-9]* s\$/ N s/; s/^ *12.0 s/12.0 s/; s/^ *3.5 s/3.5 s/" out >end &&
    printf "%s\n" "" "---- gcc failed" "failed: unit/a: ERROR" "failed:   not ok 2 - y" "" "---- lint failed" \
        "error: it does not build" "" "gcc N s" "asan N s" "lint N s" "in all N s" "" "the ten slowest tests:" \
        "12.0 s system/b" "3.5 s unit/a" "" "12 passed, 2 failed" >want && diff want end'

test_expect '.ci/run refuses a part that it does not know' '
    exits_with 2 ci/.ci/run gcc nothing >out && grep "there are: gcc asan" out'

test_expect '.ci/run is green when all parts are' '
    ci/.ci/run asan >out && last_line_is "5 passed, 0 failed" && ! grep -e "----" out'

test_done
