# Sourced by the scripts that try the command line: a fake server of its own on a socket in the
# script's folder, which ends with the script.
#
# shellcheck shell=sh disable=SC2034,SC2154 # variables of lib.sh, and for the scripts
command -v python3 >/dev/null || { echo '1..0 # SKIP python3 is not installed'; exit 0; }
unset NIGHTSHIFT_TOKEN VIRTUAL_ENV CONDA_PREFIX NO_COLOR
NIGHTSHIFT_SERVER=unix:$test_folder/api.sock
TZ=UTC
export NIGHTSHIFT_SERVER TZ

# A certificate for localhost, where there is openssl to make one.
cert=
if openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost >/dev/null 2>&1; then
    cert=both.pem
    cat cert.pem key.pem >both.pem
fi

mkfifo server.out
# shellcheck disable=SC2086 # no argument when there is no certificate
python3 "$NIGHTSHIFT_SOURCE/tests/lib/fake_server.py" api.sock requests.log $cert >server.out 2>server.err &
server_pid=$!
trap 'kill $server_pid 2>/dev/null; wait $server_pid 2>/dev/null; cd / && rm -rf "$test_folder"' EXIT
read -r port tls_port ready <server.out
[ "$ready" = ready ] || { cat server.err >&2; exit 1; }


# state_is JOB STATE: waits for it
has_state() { nightshift show "$1" -o json | grep -q "\"state\": \"$2\""; }
state_is() { until_true has_state "$1" "$2"; }

# sent PYTHON: true of the last request `r` that was a POST of a job
sent() {
    python3 -c "
import json, sys
r = [json.loads(l) for l in open('requests.log') if '\"/v1/jobs\"' in l and 'POST' in l][-1]['body']
sys.exit(not ($1))" || { tail -n 1 requests.log; return 1; }
}
