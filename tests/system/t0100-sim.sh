#!/bin/sh
# nightshift-sim from the outside: its commands, its errors, its exit codes.
. "$(dirname "$0")/lib.sh"

if ! [ -x "$NIGHTSHIFT_BUILD/nightshift-sim" ]; then
    test_skip 'nightshift-sim' 'it is not built'
    test_done
fi

test_expect 'help names the commands and succeeds' '
    nightshift-sim --help >out && grep -w lab out && grep -w replay out'

test_expect 'an unknown command is refused with exit code 2 and nothing on stdout' '
    exits_with 2 nightshift-sim no-such-command >out 2>err && ! [ -s out ] && [ -s err ]'

test_done
