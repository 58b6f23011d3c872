#!/bin/sh
# The sum at the end of `make test` is true: run-tests is fed a meson that only writes a log.
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

test_expect 'a skipped case is neither, and its reason is shown' '
    log 0 "{\"name\":\"a\",\"result\":\"OK\",\"stdout\":\"ok 1 - x\\nok 2 - y # SKIP no GPU\\n1..2\\n\"}" \
          "{\"name\":\"c\",\"result\":\"SKIP\",\"stdout\":\"no tool\\n\"}" &&
    "$run" b >out && last_line_is "1 passed, 0 failed" &&
    grep "^skipped: a: no GPU" out && grep "^skipped: c: no tool" out'

test_expect 'a run of nothing is not a success' '
    log 0 "{\"name\":\"c\",\"result\":\"SKIP\",\"stdout\":\"no tool\\n\"}" &&
    exits_with 1 "$run" b'

test_expect 'yesterday'"'"'s log is not counted' '
    log 0 "{\"name\":\"a\",\"result\":\"OK\",\"stdout\":\"ok 1 - x\\n\"}" && "$run" b >out &&
    echo "exit 1" >bin/meson && exits_with 1 "$run" b >out && last_line_is "0 passed, 1 failed"'

test_done
