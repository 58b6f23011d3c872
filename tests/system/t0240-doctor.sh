#!/bin/sh
# What is wrong with this machine: on the command line, and from a daemon that runs.
# shellcheck source=tests/system/lib.sh
. "${NIGHTSHIFT_SOURCE:=$(cd "$(dirname "$0")/../.." && pwd)}/tests/system/lib.sh"
unset NIGHTSHIFT_CONFIG
here=$PWD
settings="--state $PWD/state --run $PWD/run --listen none"

# checked FILE EXPRESSION: the JSON in FILE has a list of checks c for which the expression is true.
cat >checked.py <<'PYTHON'
import json
import sys

doc = json.load(open(sys.argv[1], encoding="utf-8"))
c = {row["name"]: row for row in doc["checks"]}
assert all(set(row) == {"name", "ok", "found", "fix"} for row in doc["checks"]), "fields"
assert all(row["ok"] in (True, False, None) and row["found"] for row in doc["checks"]), "values"
assert all(row["fix"] for row in doc["checks"] if row["ok"] is False), "what is wrong has a fix"
if not eval(sys.argv[2]):
    sys.exit(f"not so: {sys.argv[2]}\n{json.dumps(doc, indent=1)}")
PYTHON
checked() { python3 "$here/checked.py" "$@"; }

# check NAME [OPTION...]: nightshiftd --check into NAME; 0 and 1 are both answers.
check() {
    out=$1
    shift
    # shellcheck disable=SC2086 # one word a setting
    nightshiftd $settings --check "$@" >"$out" || [ $? = 1 ]
}

test_expect 'the answer is the same as text and as JSON' '
    check text && check json --json && checked json "len(c) >= 20" &&
    [ "$(grep -c "^✗" text)" = "$(grep -o "\"ok\":false" json | wc -l)" ] &&
    [ "$(grep -c "^✓" text)" = "$(grep -o "\"ok\":true" json | wc -l)" ]'

test_expect 'something to fix is exit status 1, and has its fix' '
    printf "not a store" >bad.txt && mkdir state && mv bad.txt state/nightshift.db &&
    exits_with 1 nightshiftd --state "$PWD/state" --run "$PWD/run" --check >text &&
    grep "^✗ store: .*damaged" text && grep -A1 "^✗ store" text | grep "fix: " && rm -r state'

test_expect 'nothing is made or changed' '
    check json --json && checked json "\"not there yet\" in c[\"state-folder\"][\"found\"]" &&
    [ ! -e state ] && [ ! -e run ]'

test_expect 'programs are looked for in PATH' '
    mkdir bin && printf "#!/bin/sh\necho crun version 0.17\n" >bin/crun && chmod +x bin/crun &&
    PATH=$PWD/bin:$PATH && check json --json &&
    checked json "c[\"crun\"][\"ok\"] is False and \"0.17\" in c[\"crun\"][\"found\"]"'

test_expect 'who has the port is named' '
    cat >taker.py <<PYTHON
import socket, sys
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
print(s.getsockname()[1], flush=True)
sys.stdin.read()
PYTHON
    mkfifo hold port && { python3 taker.py <hold >port & } && exec 9>hold && read -r number <port &&
    check json --json --listen "127.0.0.1:$number" &&
    checked json "c[\"port\"][\"ok\"] is False and \"taken by python\" in c[\"port\"][\"found\"]"'

test_expect 'every check is in the list' '
    nightshiftd --check --list >list && check json --json &&
    checked json "all(f\"| \`{name}\` |\" in open(\"list\").read() for name in c)"'

# ---- from a daemon ----

cat >ask.py <<'PYTHON'
import http.client
import socket
import sys


class Local(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])


asked = [Local("localhost", timeout=300) for _ in range(int(sys.argv[3]))]
for one in asked:
    one.request("GET", sys.argv[2])
answers = [one.getresponse() for one in asked]
bodies = {a.read() for a in answers}
assert {a.status for a in answers} == {200}, bodies
assert len(bodies) == 1, bodies
sys.stdout.buffer.write(bodies.pop())
PYTHON

: >daemon.log
# shellcheck disable=SC2086 # one word a setting
nightshiftd $settings --libexec /no-such-folder 2>daemon.log &
daemon=$!
trap 'kill $daemon 2>/dev/null; wait $daemon; cd / && rm -rf "$here"' EXIT
over_or_started() { grep -q ' started ' daemon.log || ! kill -0 $daemon; } # it says so when it listens
until_true over_or_started

test_expect 'a daemon answers with its own settings' '
    python3 ask.py run/api.sock /v1/doctor 1 >json &&
    checked json "\"$PWD/state\" in c[\"state-folder\"][\"found\"]" &&
    checked json "c[\"state-folder\"][\"ok\"] and c[\"run-folder\"][\"ok\"] and c[\"store\"][\"ok\"]" &&
    checked json "\"/no-such-folder\" in c[\"own-programs\"][\"found\"]"'

test_expect 'a keeper that a daemon could not start is told' '
    checked json "c[\"keeper\"][\"ok\"] is False and \"keeper.start\" in c[\"keeper\"][\"fix\"]"'

test_expect 'several who ask at once get an answer each' '
    python3 ask.py run/api.sock /v1/doctor 8 >json && checked json "len(c) >= 20"'

test_expect 'it is there and well afterwards' '
    python3 ask.py run/api.sock /healthz 1 && ! grep -i sanitizer daemon.log'

test_done
