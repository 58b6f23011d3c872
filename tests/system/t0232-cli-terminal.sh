#!/bin/sh
# The command line on a terminal: raw mode and its end, Ctrl-C, window sizes, the screen of top.
. "$(dirname "$0")/lib.sh"
. "$NIGHTSHIFT_SOURCE/tests/system/fake_cluster.sh"
TERM=xterm
export TERM

# on_terminal STEPS COMMAND...
on_terminal() {
    printf '%s\n' "$1" >steps
    shift
    python3 "$NIGHTSHIFT_SOURCE/tests/lib/on_terminal.py" steps -- "$@"
}

test_expect 'a job with a terminal gets every key and gives the terminal back' '
    on_terminal "see ready
raw
type hello\\r
see got hello
exit 7
cooked" nightshift run -t -- sh -c "stty -echo; echo ready; read x; echo got \$x; exit 7"'

test_expect 'Ctrl-C goes to the job, not to us' '
    on_terminal "see ready
raw
type \\x03
see interrupted
exit 5" nightshift run -t -- sh -c "trap \"echo interrupted; exit 5\" INT; echo ready; while :; do sleep 0.05; done"'

test_expect 'what was printed before the terminal came is shown, once' '
    on_terminal "see first
type go\\r
see second
exit 0" nightshift run -t -- sh -c "echo first; read x; echo second" >out && [ "$(grep -c first out)" = 1 ]'

test_expect 'the size of the window follows' '
    on_terminal "see ready
raw
resize 33 101
see 33 101
exit 0" nightshift run -t -- sh -c "trap \"stty size; exit 0\" WINCH; echo ready; while :; do sleep 0.05; done" &&
    grep "\[24, 80\]" requests.log && grep "\[33, 101\]" requests.log'

test_expect 'the terminal is restored when we are told to end, and the job goes on' '
    for s in TERM HUP; do
        on_terminal "see ready
raw
signal $s
exit $([ $s = TERM ] && echo 143 || echo 129)
cooked" nightshift run -t --name ended -- sh -c "echo ready; exec sleep 600" || exit 1
    done && [ "$(nightshift ps -n ended --no-headers | grep -c running)" = 2 ]'

test_expect 'three times Ctrl-] leaves the job running' '
    on_terminal "see ready
raw
type \\x1d\\x1d\\x1d
see detached
exit 0
cooked" nightshift run -t --name left -- sh -c "echo ready; exec sleep 600" && nightshift ps -n left | grep running'

test_expect 'attach and exec have a terminal, too' '
    id=$(nightshift run -d -t -- sh -c "stty -echo; while read x; do echo got \$x; done; exit 3") &&
    on_terminal "see attached
raw
type one\\r
see got one
type \\x04
exit 3
cooked" nightshift attach "$id" && id=$(nightshift ps -n left -o name) &&
    on_terminal "see 24 80
type \\r
exit 4
cooked" nightshift exec -it "$id" sh -c "stty size; read x; exit 4"'

test_expect 'attach shows where the job is first, and that once' '
    id=$(nightshift run -d -t -- sh -c "stty -echo; seq 100; read x; echo got \$x; exit 3") &&
    wrote() { nightshift logs "$id" | grep -q 100; } && until_true wrote &&
    on_terminal "see attached
see 99
see 100
type one\\r
see got one
exit 3
cooked" nightshift attach "$id" >out && [ "$(grep -c 100 out)" = 1 ] && ! grep "^7[0-6]" out'

test_expect 'Ctrl-C asks; d detaches' '
    on_terminal "see going
type \\x03
see [d]etach, [c]ancel, [k]eep watching?
type d
see goes on
exit 0" nightshift run --name asked -- sh -c "echo going; exec sleep 600" && nightshift ps -n asked | grep running'

test_expect 'k keeps watching, c cancels' '
    on_terminal "see going
type \\x03
see eep watching?
type k
see k
type \\x03
see eep watching?
type c
see was cancelled
exit 143
cooked" nightshift run -- sh -c "echo going; exec sleep 600"'

test_expect 'a second Ctrl-C cancels' '
    on_terminal "see going
type \\x03
see eep watching?
type \\x03
see was cancelled
exit 143
cooked" nightshift run -- sh -c "echo going; exec sleep 600"'

test_expect 'a job that waits for its terminal says why and can be cancelled' '
    on_terminal "see waits: 1 GPUs asked for
type \\x03
see eep watching?
type c
see was cancelled
exit 1
cooked" nightshift run -t -g 1 --name stuck -- sh >out && [ "$(grep -c "was cancelled" out)" = 1 ]'

test_expect 'cancel --all asks first' '
    nightshift run -d --name stuck6 true && on_terminal "see [y/N]
type n
see nothing was cancelled
exit 5" nightshift cancel --name stuck6 && on_terminal "see cancel 1 job? [y/N]
type y
see cancelled job
exit 0" nightshift cancel --name stuck6'

test_expect 'on a terminal states are coloured, unless NO_COLOR' '
    on_terminal "exit 0" nightshift ps >out && grep "$(printf "\033\[32m")" out &&
    NO_COLOR=1 on_terminal "exit 0" nightshift ps >out && ! grep "$(printf "\033")" out'

test_expect 'ps -w shows it again until Ctrl-C' '
    on_terminal "see WHERE/REASON
see WHERE/REASON
type \\x03
exit 0
cooked" nightshift ps -w'

test_expect 'top shows machines and jobs, cancels, and leaves the screen as it was' '
    id=$(nightshift run -d --name toptest -g 1 -- sleep 600) && on_terminal "see running
see desk1
see toptest
see q quit
type s
see GPUs
type c
see cancel job
type y
see led job
type q
exit 0
cooked" nightshift top && exits_with 2 nightshift top </dev/null'

test_expect '--tty without a terminal is refused' '
    exits_with 2 nightshift run -t -- true 2>err && grep "needs a terminal" err && exits_with 2 nightshift exec -t 17 true'

test_done
