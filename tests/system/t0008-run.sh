#!/bin/sh
# tools/run, which is `make run`, on programs that only say how they were started: two demonstrations on one machine share
# nothing.  The real one is tried by try-run.
. "$(dirname "$0")/lib.sh"

mkdir -p build state
cat >build/nightshiftd <<'END'
#!/bin/sh
echo $$ >daemon.pid
exec sleep 100000
END
cat >build/nightshift-agent <<'END'
#!/bin/sh
printf '%s\n' "$@" >agent.new && mv agent.new agent.args
exec sleep 100000
END
cat >build/nightshift <<'END'
#!/bin/sh
case $1 in
nodes) echo here ;;
ps) echo 1 ;; # there are jobs already: a demonstration goes on
esac
END
chmod +x build/*

# What a shell starts in the background ignores Ctrl-C; a person's terminal does not.
PORT=1 STATE=state env --default-signal=INT "$NIGHTSHIFT_SOURCE/tools/run" build >run.out 2>&1 &
run=$!
until_true grep 'Try it in another terminal' run.out || cat run.out

# option NAME: its value among the agent's words
option() { sed -n "/^$1\$/{n;p;}" agent.args; }

test_expect 'the agent listens and keeps its hold in folders of the demonstration, not in those of the machine' '
    until_true [ -e agent.args ] &&
    grep -F "NIGHTSHIFT_SERVER=unix:$(option --control | sed "s,/[^/]*\$,,")/api.sock" run.out &&
    option --keep | grep -F "$PWD/state/" && option --state | grep -Fx "$PWD/state"'

test_expect 'it says how the owner of the machine takes it back' '
    grep -F "nightshift-agent hold --control $(option --control)" run.out'

test_expect 'Ctrl-C stops it, the daemon and the agent' '
    kill -INT $run && until_true grep "^stopped" run.out && ! kill -0 "$(cat daemon.pid)"'

kill $run 2>/dev/null
wait $run
test_done
