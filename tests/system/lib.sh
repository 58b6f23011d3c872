# Sourced by every tNNNN script: test_expect, test_skip, until_true, test_done; TAP on stdout.
#
# A script runs in an empty folder of its own that is removed afterwards, needs no root and sleeps
# for nothing.  Each case is a sentence and a few commands; the case passes when they all succeed:
#
#   test_expect 'a broken line is named' '
#       exits_with 2 nightshift-sim replay --trace broken.csv 2>err &&
#       grep "broken.csv:3: " err'
#
# shellcheck shell=sh
set -u

: "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${NIGHTSHIFT_BUILD:=$NIGHTSHIFT_SOURCE/build}"
PATH=$NIGHTSHIFT_BUILD:$PATH
export NIGHTSHIFT_SOURCE NIGHTSHIFT_BUILD PATH
LC_ALL=C
export LC_ALL
exec </dev/null

test_count=0
test_failed=0
test_folder=$(mktemp -d)
trap 'cd / && rm -rf "$test_folder"' EXIT
trap 'exit 1' HUP INT TERM
cd "$test_folder" || exit 1

# test_expect SENTENCE COMMANDS
test_expect() {
    test_count=$((test_count + 1))
    # A subshell: a case cannot change the folder, the variables or the exit of the next one.
    if (eval "$2") >"$test_folder/.out" 2>&1; then
        echo "ok $test_count - $1"
        return
    fi
    test_failed=$((test_failed + 1))
    echo "not ok $test_count - $1"
    printf '%s\n' "$2" | sed 's/^/#   > /'
    sed 's/^/#   /' "$test_folder/.out"
}

# test_skip SENTENCE REASON
test_skip() {
    test_count=$((test_count + 1))
    echo "ok $test_count - $1 # SKIP $2"
}

# until_true COMMAND...: waits for it to succeed; the bound is there for what is broken, not for what is slow.
# shellcheck disable=SC2317 # called by name, inside quoted tests
until_true() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -le 6000 ] || { echo "never: $*"; return 1; }
        sleep 0.05
    done
}

# exits_with STATUS COMMAND...: for commands that must fail in one certain way.
exits_with() {
    wanted=$1
    shift
    got=0
    "$@" || got=$?
    [ "$got" = "$wanted" ] || { echo "exit status $got, not $wanted: $*"; return 1; }
}

# until_true COMMAND...: waits until it succeeds, two minutes at most
# shellcheck disable=SC2317 # called by name, inside quoted tests
until_true() {
    for _ in $(seq 2400); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.05
    done
    echo "never: $*"
    return 1
}

test_done() {
    echo "1..$test_count"
    [ "$test_failed" = 0 ]
    exit
}
