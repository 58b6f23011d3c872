#!/bin/sh
# nightshift-sim from the outside: its commands, its help, its errors, its exit codes.
. "$(dirname "$0")/lib.sh"

if ! [ -x "$NIGHTSHIFT_BUILD/nightshift-sim" ]; then
    test_skip 'nightshift-sim' 'it is not built'
    test_done
fi

# refused WORDS... - exit code 2, nothing on stdout; the message is in err
refused() {
    exits_with 2 nightshift-sim "$@" >out 2>err && ! [ -s out ] && grep '^nightshift-sim: ' err
}

test_expect 'help names the commands and succeeds' '
    nightshift-sim --help >out && nightshift-sim >out2 && cmp out out2 &&
    for c in lab replay verify packing scale docs; do grep "^    $c " out || exit 1; done'

test_expect 'the help of each command names its options' '
    for c in lab replay verify packing scale docs; do
        nightshift-sim $c --help >out && grep "^nightshift-sim $c: " out && grep "^    --" out ||
            exit 1
    done
    nightshift-sim replay --help >out &&
    for o in data trace pooled gpus jobs swf scene journal jitter shift seed freeze-cost policy html starts json; do
        grep -e "--$o" out || exit 1
    done'

test_expect 'help is given wherever it is asked for, and nothing is run' '
    nightshift-sim lab --out folder --help >out && grep -e --days out && ! [ -e folder ]'

test_expect 'version is one line' '
    nightshift-sim --version >out && [ "$(wc -l <out)" = 1 ] && grep "^nightshift-sim [0-9]" out'

test_expect 'an unknown command is refused with the nearest one' '
    refused no-such-command && grep "hint: " err &&
    refused replya && grep "did you mean .nightshift-sim replay.?" err'

test_expect 'an unknown option is refused with the nearest one' '
    for c in lab replay verify packing scale docs; do
        refused $c --zzzzzzzz && grep "unknown option" err && grep "hint: " err || exit 1
    done
    refused replay --polcy fifo && grep "did you mean --policy?" err'

test_expect 'an unknown policy is refused with the known ones' '
    refused lab --policy lifo && grep "lifo.*not known" err && grep "hint: .*fifo" err &&
    refused lab --policy fifo,lifo && grep "lifo" err &&
    refused packing --data . --policy lifo && grep "hint: .*bestfit" err'

test_expect 'numbers out of their bounds are refused' '
    refused lab --days 0 && refused lab --days 1000 && refused lab --days -1 &&
    refused lab --days week && refused scale --nodes 1 && refused scale --jobs 0 &&
    grep -e "--jobs: " err &&
    refused replay --swf s --jitter 101 && refused replay --swf s --shift 0 &&
    refused replay --swf s --freeze-cost -1 && grep -e "--freeze-cost: " err &&
    refused replay --swf s --freeze-cost 1001'

test_expect 'what is missing is named with an example' '
    refused replay && grep "hint: for example: nightshift-sim replay" err &&
    refused replay --trace philly && grep -e "--data is needed" err &&
    refused replay --trace shockwave && grep "hint: .*shockwave/" err &&
    refused replay --swf a --journal b && grep "exactly one of" err &&
    refused verify && grep "hint: make one" err && refused packing && grep "hint: " err &&
    refused lab --days && grep "needs a value" err && refused lab week'

test_expect 'an option of another trace is refused, not left unheard' '
    refused replay --data d --trace philly --gpus 32 && grep -e "--gpus goes with --trace shockwave" err &&
    refused replay --data d --trace philly --jobs j && grep -e "--jobs goes with" err &&
    refused replay --data d --trace shockwave --pooled 3 && grep -e "--pooled goes with" err &&
    refused replay --swf s --data d && grep -e "--data goes with" err &&
    refused replay --journal j --gpus-per-node 8 && grep -e "--gpus-per-node goes with" err'

test_expect 'a full disk is an error, not silence' '
    [ -c /dev/full ] || exit 0
    for line in --help --version "lab --days 1" "lab --days 1 --json" "lab --help" docs \
        "scale --nodes 32 --jobs 10 --json"; do
        # shellcheck disable=SC2086 # words
        nightshift-sim $line >/dev/full 2>err && { echo "silent: $line"; exit 1; }
        grep "cannot write the result" err || exit 1
    done'

test_expect 'the reference pages are printed from the tables' '
    for page in journal policy jobs; do
        nightshift-sim docs --page $page >out && grep "^|---" out || exit 1
    done
    refused docs --page nothing && grep "hint: choose journal" err'

test_done
