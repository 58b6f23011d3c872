#!/bin/sh
# tools/flake-hunt: what fails sometimes is found, counted and kept; the load ends with it.
. "$(dirname "$0")/lib.sh"
hunt=$NIGHTSHIFT_SOURCE/tools/flake-hunt
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

# A project of three tests: one is good, one fails every second time, one waits for a file.
mkdir tree
cat >tree/meson.build <<'END'
project('small')
sh = find_program('sh')
test('lint/good', sh, args: ['-c', 'echo 1..1; echo ok 1 - it is good'], protocol: 'tap', suite: 'unit')
test('lint/t0001-moody', sh, args: files('moody.sh'), protocol: 'tap', suite: 'unit')
test('lint/slow', sh, args: files('slow.sh'), suite: 'slow')
END
cat >tree/moody.sh <<END
echo 1..2
echo ok 1 - it begins
if [ -e $PWD/mood ]; then rm $PWD/mood; echo ok 2 - it ends well; else touch $PWD/mood; echo not ok 2 - it ends well; echo '# the mood'; fi
END
cat >tree/slow.sh <<END
touch $PWD/began
until [ -e $PWD/go ]; do sleep 0.05; done
END
meson setup tree/build tree >setup.log 2>&1 || cat setup.log

test_expect 'what fails sometimes is named with how often, its sentence and its output' '
    exits_with 1 "$hunt" 3 --build tree/build --suite unit >out 2>&1 && cat out &&
    grep "^failed: lint/t0001-moody: 2 of 3 runs" out && grep "^failed:   2× it ends well" out &&
    [ "$(tail -n 1 out)" = "7 passed, 2 failed" ] && for run in 001 003; do
        grep "the mood" tree/build/flake-hunt/*/run-$run-t0001-moody.log || exit 1
    done && grep "run 3 of 3 is over: 2 failed so far" out'

test_expect 'tests are chosen by name and by pattern; what is good is green' '
    "$hunt" 1 --build tree/build good >out 2>&1 && [ "$(tail -n 1 out)" = "1 passed, 0 failed" ] &&
    rm -f mood && exits_with 1 "$hunt" 1 --build tree/build "t00*" >out 2>&1 && grep "1 of 1 runs" out &&
    exits_with 1 "$hunt" 1 --build tree/build no-such-test 2>err && grep "no test is called no-such-test" err'

test_expect 'a folder that is no build folder, and no run at all, are refused' '
    exits_with 2 "$hunt" 1 --build nowhere 2>err && grep "no build folder" err && exits_with 2 "$hunt" 0 --build tree/build'

# busy PID: the processes of its load
busy() {
    for one in /proc/[0-9]*; do
        { tr '\0\n' '  ' <"$one/cmdline"; } 2>/dev/null | grep -q "os.getppid() == .* $1 \$" && echo "${one#/proc/}"
    done
}

test_expect 'while it runs the machine is busy, and no more when it is killed' '
    "$hunt" 1 --build tree/build --suite slow >out 2>&1 & hunt=$!
    until_true [ -e began ] && [ "$(busy $hunt | wc -l)" = $((2 * $(nproc))) ] && kill -KILL $hunt &&
    none() { [ -z "$(busy $hunt)" ]; } && until_true none && touch go'

test_expect 'told to end it says what it has so far' '
    rm -f began go mood
    "$hunt" 2 --build tree/build --suite slow >out 2>&1 & hunt=$!
    until_true [ -e began ] && kill -TERM $hunt && exits_with 130 wait $hunt && grep "0 passed, 0 failed" out && [ -z "$(busy $hunt)" ]
    status=$?; touch go; exit $status'

test_done
