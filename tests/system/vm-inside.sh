#!/bin/sh
# What is tried inside the machine of tests/system/vm: as installed, under systemd, on cgroup v2.
#
# usage: vm-inside.sh first|second      before and after the power is cut
#
# shellcheck disable=SC1091,SC2016,SC2154 # commands are for test_expect, whose folder is lib.sh's
. "$(dirname "$0")/lib.sh"

# until COMMAND...: waits, with a bound, for it to succeed
until_true() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -le 600 ] || { echo "waited too long: $*"; return 1; }
        sleep 0.1
    done
}
as_ana() { runuser -u ana -- "$@"; }
state_of() { nightshift show "$1" -o yaml | sed -n 's/^state: //p'; }
is_state() { [ "$(state_of "$1")" = "$2" ]; }
submit() { as_ana nightshift run -d -w / "$@" | grep -o '[0-9][0-9]*' | head -n 1; }
called() { nightshift ps -a --name "$1" -o name | grep -o '[0-9][0-9]*' | head -n 1; }
# tell JOB: all that is known of it
tell() {
    nightshift show "$1" && nightshift why "$1" && nightshift events "$1" && nightshift nodes
    journalctl -b -u nightshiftd -u nightshift-keeper --no-pager | tail -n 40
}
# It takes jobs: the keeper has answered.
ready() { python3 -c 'import urllib.request as u; u.urlopen("http://127.0.0.1:7433/readyz")'; }
group() { echo "/sys/fs/cgroup/nightshift-$(cut -d" " -f1 /var/lib/nightshift/instance)"; }
unit_pid() { systemctl show -P MainPID "$1"; }

# cases FILE...: another script's TAP, as one case here
cases() {
    (cd "$NIGHTSHIFT_SOURCE" && "$@") >"$test_folder/cases" 2>&1 || { grep -v '^ok' "$test_folder/cases"; return 1; }
    tail -n 1 "$test_folder/cases"
}

first() {
    test_expect 'this is a machine with systemd and cgroup v2' '
        [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ] && [ "$(cat /proc/1/comm)" = systemd ]'
    test_expect 'both services come up by themselves, the control plane without root' '
        until_true systemctl is-active nightshiftd nightshift-keeper &&
        until_true ready &&
        [ "$(ps -o user= -p "$(unit_pid nightshiftd)")" = nightshift ]'
    test_expect 'its sandbox is not worse than what systemd calls OK' '
        systemd-analyze security --no-pager --threshold=30 nightshiftd'
    test_expect 'nor is that of the keeper worse than the documentation says' '
        systemd-analyze security --no-pager --threshold=78 nightshift-keeper'
    test_expect 'a user of the machine runs a job as that user' '
        as_ana nightshift tenants default vision && # she is in two
        [ "$(as_ana nightshift run -w / -- id -un)" = ana ]'
    test_expect 'a stranger to the keeper cannot reach it' '
        ! as_ana sh -c "echo >/run/nightshift/keeper.sock" && ! as_ana ls /var/lib/nightshift/tasks'
    test_expect 'memory is bounded, and the end names it' '
        ! as_ana nightshift run -w / --mem 64Mi -- python3 -c "bytearray(300 << 20)" 2>err && cat err && grep -i memory err'
    test_expect 'processes are bounded' '
        job=$(submit -- sh -c "sleep 1000") && until_true is_state "$job" running &&
        [ "$(cat "$(group)/$job".1.0/pids.max)" -gt 1000 ] && nightshift cancel "$job"'
    test_expect 'CPU is bounded to what was asked for' '
        job=$(submit --cpus 1 -- sleep 1000) && until_true is_state "$job" running &&
        [ "$(cat "$(group)/$job".1.0/cpu.max)" = "100000 100000" ] && nightshift cancel "$job"'
    test_expect 'a job is paused by the freezer and goes on' '
        job=$(submit -- sh -c "while :; do date; sleep 0.1; done") && until_true is_state "$job" running &&
        nightshift freeze "$job" && until_true is_state "$job" paused &&
        grep -q "frozen 1" "$(group)/$job".1.0/cgroup.events &&
        nightshift thaw "$job" && until_true is_state "$job" running && nightshift cancel "$job"'
    test_expect 'restarting both services leaves a running job alone' '
        job=$(submit -- sh -c "echo \$\$; exec sleep 1000") && until_true is_state "$job" running &&
        cat "$(group)/$job".1.0/cgroup.procs >before &&
        systemctl restart nightshiftd nightshift-keeper && until_true ready &&
        until_true is_state "$job" running && cat "$(group)/$job".1.0/cgroup.procs >after &&
        cmp before after && nightshift cancel "$job"'
    test_expect 'systemd starts a killed keeper again, and a job does not notice' '
        job=$(submit -- sh -c "sleep 3; echo whole") && until_true is_state "$job" running &&
        kill -9 "$(unit_pid nightshift-keeper)" && until_true is_state "$job" succeeded &&
        nightshift logs "$job" | grep whole'
    test_expect 'reloading systemd takes no limit away' '
        job=$(submit --cpus 1 --mem 64Mi -- sleep 1000) && until_true is_state "$job" running && systemctl daemon-reload &&
        [ "$(cat "$(group)/$job".1.0/memory.max)" = 67108864 ] && nightshift cancel "$job"'
    test_expect 'doctor has no complaint' '
        nightshift doctor >found || { cat found; false; }'
    test_expect 'the tests of control groups pass on the real v2' 'cases build/keeper_test cgroup'
    test_expect 'the tests of the keeper pass on v2' 'cases sh tests/system/t0210-keeper.sh'
    test_expect 'the tests of jobs pass on v2' 'cases sh tests/system/t0310-run.sh'
    test_expect 'the hostile tenant is held on v2' 'cases sh tests/system/t0320-hostile.sh'
    # For the second time: one that runs, one that waits for it, and one that has ended.
    test_expect 'jobs are accepted before the power is cut' '
        job=$(submit --name ended -- true) && until_true is_state "$job" succeeded &&
        job=$(submit --name runs --cpus 2 -- sleep 1000) && until_true is_state "$job" running &&
        job=$(submit --name waits --cpus 2 -- echo went on) && is_state "$job" queued'
}

second() {
    test_expect 'after the power came back both services run' '
        until_true systemctl is-active nightshiftd nightshift-keeper && until_true nightshift status'
    test_expect 'what had ended has ended, once' 'is_state "$(called ended)" succeeded'
    test_expect 'what ran is told as lost, with its reason' '
        until_true is_state "$(called runs)" failed && nightshift show "$(called runs)" | grep -i "went away"'
    test_expect 'what waited runs now' '
        { until_true is_state "$(called waits)" succeeded && nightshift logs "$(called waits)" | grep "went on"; } ||
            { tell "$(called waits)"; false; }'
    test_expect 'nothing of the old time is left' '
        [ -z "$(find "$(group)" -mindepth 1 -type d)" ] && [ -z "$(ls /run/nightshift/tasks)" ]'
}

"$1"
test_done
