#!/bin/sh
# What is installed is built so that a fault in it is hard to use.
. "$(dirname "$0")/lib.sh"

programs='nightshiftd nightshift nightshift-top nightshift-sim nightshift-agent nightshift-keeper nightshift-signin nightshift-send
nightshift-init'
plain=$(meson introspect --buildoptions "$NIGHTSHIFT_BUILD" | python3 -c '
import json, sys
option = {o["name"]: o["value"] for o in json.load(sys.stdin)}
print("yes" if option["b_sanitize"] == "none" and option["optimization"] not in ("0", "g") else "")')

# each_has PATTERN: of every program readelf says it
each_has() {
    for program in $programs; do
        readelf -hldW "$NIGHTSHIFT_BUILD/$program" >said 2>said.err || return 1
        grep -q "$1" said || { echo "$program: not '$1'"; return 1; }
    done
}

test_expect 'each program may lie at any address' 'each_has "Type: *DYN"'
test_expect 'tables that are filled in at the start are read-only afterwards' 'each_has GNU_RELRO && each_has BIND_NOW'
test_expect 'no stack can be executed' 'each_has "GNU_STACK .* RW "'
if [ -n "$plain" ]; then
    test_expect 'the C library checks the sizes of buffers' '
        for program in nightshiftd nightshift-keeper nightshift-agent; do
            nm -D "$NIGHTSHIFT_BUILD/$program" | grep -q "__.*_chk" || return 1
        done'
else
    test_skip 'the C library checks the sizes of buffers' 'not in a build with sanitizers, or without optimization'
fi

test_done
