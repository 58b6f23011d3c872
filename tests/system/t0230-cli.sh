#!/bin/sh
# The command line against a fake server: every command, its output, its exit code.
. "$(dirname "$0")/lib.sh"
. "$NIGHTSHIFT_SOURCE/tests/system/fake_cluster.sh"

test_expect 'run prints what the job prints and exits with its code' '
    exits_with 3 nightshift run -- sh -c "echo out; echo err >&2; exit 3" >out 2>err &&
    [ "$(cat out)" = out ] && [ "$(cat err)" = err ]'

test_expect 'a job killed by a signal exits as a shell says it' '
    exits_with 137 nightshift run -- sh -c "kill -9 \$\$" 2>err'

test_expect 'run sends the folder, the command and what was asked for' '
    nightshift run -g 2 -c 4 -m 16Gi -e A=1 --time 8h --tenant vision -- true &&
    sent "r[\"command\"] == [\"true\"] and r[\"cwd\"] == \"$PWD\" and r[\"name\"] == \"true\"
        and r[\"resources\"] == {\"gpus\": 2, \"cpus\": 4, \"mem\": \"16Gi\"} and r[\"env\"][\"A\"] == \"1\"
        and r[\"max_time\"] == \"8h\" and r[\"tenant\"] == \"vision\""'

test_expect 'options end at the command' '
    [ "$(nightshift run echo --help -g)" = "--help -g" ]'

test_expect 'standard input goes to the job with -i only' '
    [ "$(printf "one\ntwo\n" | nightshift run -i -- sort -r | head -n 1)" = two ] &&
    [ "$(echo x | nightshift run -- cat)" = "" ]'

test_expect 'a lot of output arrives whole' '
    nightshift run -- seq 1 200000 >out && [ "$(wc -l <out)" = 200000 ] && [ "$(tail -n 1 out)" = 200000 ]'

test_expect 'a lost connection costs nothing and repeats nothing' '
    nightshift run --name lost -- sh -c "echo one; sleep 0.3; echo two" >out && [ "$(cat out)" = "one
two" ]'

test_expect 'a job that waits says why, and its exit code is its own' '
    nightshift run --name late1 -g 1 -- sh -c "exit 5" 2>late.err & run=$!
    until_true grep "waits: 1 GPUs asked for" late.err
    id=$(nightshift ps -n late1 -o name) &&
    python3 -c "import socket; s = socket.socket(socket.AF_UNIX); s.connect(\"api.sock\")
s.sendall(b\"POST /fake/start/$id HTTP/1.1\r\nConnection: close\r\n\r\n\"); s.recv(999)" &&
    exits_with 5 wait $run && [ "$(grep -c waits: late.err)" = 1 ]'

test_expect 'an interrupt without a terminal cancels the job' '
    nightshift run --name busy -- sh -c "echo on; exec sleep 600" >busy.out 2>err & run=$!
    until_true grep on busy.out
    kill -TERM $run; exits_with 143 wait $run && grep "was cancelled" err'

test_expect 'nobody who reads: the job is cancelled' '
    nightshift run --name yes -- yes | head -n 1 >out && [ "$(cat out)" = y ] &&
    state_is "$(nightshift ps -a -n yes -o name)" cancelled'

test_expect 'a failure that is no exit code is explained' '
    exits_with 1 nightshift run --name greedy -- false 2>err && grep "more memory than it asked for" err'

test_expect 'a program that is not there is said to be so' '
    exits_with 127 nightshift run -- /no/such/program 2>err && grep "cannot be run: is it spelt right" err &&
    exits_with 127 nightshift run -- sh -c "echo words; exit 127" 2>err && ! [ -s err ]'

test_expect 'replicas are labelled' '
    nightshift run --replicas 2 -- sh -c "echo I am \$REPLICA" | sort >out && [ "$(cat out)" = "[0] I am 0
[1] I am 1" ]'

test_expect 'detached prints the id only' '
    id=$(nightshift run -d -- true) && [ "$id" -gt 0 ] && state_is "$id" succeeded'

test_expect 'the server decides, and its message, hint and code arrive' '
    exits_with 2 nightshift run -g 9 true 2>err && [ "$(cat err)" = "nightshift: field '"'resources.gpus'"': 9 is too many; the most is 8
  hint: ask for at most 8" ] && exits_with 6 nightshift run --tenant full true && exits_with 4 nightshift show 9999'

test_expect 'ps has a line for each job that has not ended' '
    id=$(nightshift run -d --name stuck1 -g 1 true) && nightshift ps >out && head -n 1 out | grep "^ *ID *NAME" &&
    grep "^ *$id  *stuck1 .* queued .* 1 GPUs asked for" out && ! grep succeeded out'

test_expect 'ps -a goes through all pages' '
    [ "$(nightshift ps -a --no-headers | wc -l)" -gt 10 ] &&
    [ "$(nightshift ps -a --limit 3 -o name | wc -l)" = 3 ]'

test_expect 'ps of a long queue is cut and says so, but shows all that runs; its ids are complete' '
    old=$(nightshift run -d --name oldest sleep 600) && nightshift run -d --array 0-1009 --name stuck9 -g 1 true >/dev/null &&
    nightshift ps >out 2>err && [ "$(wc -l <out)" = 502 ] && grep "^ *$old .*running" out &&
    grep "the newest 500, and all that runs; others with --state" err && nightshift ps -n stuck9 -o name >out 2>err &&
    [ "$(wc -l <out)" = 1010 ] && ! [ -s err ] && nightshift ps -s queued >out 2>err && [ "$(wc -l <out)" = 501 ] &&
    grep "the newest 500; others" err && nightshift ps --limit 1005 >out 2>err && [ "$(wc -l <out)" = 1006 ] &&
    ! [ -s err ] && nightshift cancel "$old" && nightshift cancel --name stuck9 --yes >/dev/null'

test_expect 'ps filters' '
    [ "$(nightshift ps -a -s cancelled --no-headers | grep -vc cancelled)" = 0 ] &&
    [ -z "$(nightshift ps -a --user nobody --no-headers)" ] && [ -n "$(nightshift ps -a --mine --no-headers)" ]'

test_expect 'arrays fold into one line' '
    id=$(nightshift run -d --name stuck2 --array 0-3 -- true) && [ "$id" = "${id%-*}-$((${id%-*} + 3))" ] &&
    nightshift ps -r | grep " *${id%-*}_\[0-3\] " && nightshift cancel "${id%-*}_[1-2]" &&
    [ "$(nightshift ps -r -n stuck2 --no-headers | wc -l)" = 1 ] &&
    nightshift ps -r | grep "^ *${id%-*}_\[0,3\] " && exits_with 5 nightshift cancel "${id%-*}_*" 2>err &&
    grep "2 of 4 jobs could not be changed" err && [ -z "$(nightshift ps -n stuck2 -o name)" ]'

test_expect 'why gives the reasons' '
    nightshift why "$(nightshift ps -n stuck1 -o name)" >out && grep "is queued and has waited 5s:" out &&
    grep "^  - 1 GPUs asked for" out'

test_expect 'show has everything, and JSON is what the server said' '
    id=$(nightshift ps -n stuck1 -o name) && nightshift show "$id" >out && grep "^state *queued" out &&
    grep "  command:" out && nightshift show "$id" -o json >j && python3 -m json.tool j >/dev/null &&
    nightshift show "$id" -o yaml >y && grep "^reason: gpus_busy" y'

test_expect 'logs print, follow and carry times' '
    id=$(nightshift run -d -- sh -c "echo a; echo b; echo c") && state_is "$id" succeeded &&
    [ "$(nightshift logs "$id")" = "a
b
c" ] && [ "$(nightshift logs -n 1 "$id")" = c ] && nightshift logs -t "$id" | grep "Z stdout F b" &&
    id=$(nightshift run -d -- sh -c "echo a; sleep 0.3; echo b") && [ "$(nightshift logs -f "$id")" = "a
b" ]'

test_expect 'cancel takes ids and ranges and says what it did' '
    a=$(nightshift run -d --name stuck3 true) && b=$(nightshift run -d --name stuck3 true) &&
    nightshift cancel "$a-$b" >out && [ "$(wc -l <out)" = 2 ] && grep "cancelled job $a" out && state_is "$b" cancelled &&
    exits_with 5 nightshift cancel "$a" 2>err && grep "has ended" err'

test_expect 'cancel by name, and all with --yes; without a terminal it does not ask and does nothing' '
    nightshift run -d --name stuck4 true && exits_with 5 nightshift cancel --all 2>err && grep "nothing was cancelled" err &&
    nightshift cancel --name stuck4 --yes && [ -z "$(nightshift ps -n stuck4 -o name)" ] && nightshift cancel --all -y &&
    [ -z "$(nightshift ps -o name)" ]'

test_expect 'hold, release, freeze, thaw, signal' '
    id=$(nightshift run -d --name stuck5 true) && nightshift hold "$id" && state_is "$id" held &&
    nightshift release "$id" && state_is "$id" queued && nightshift cancel "$id" &&
    id=$(nightshift run -d -- sh -c "trap \"exit 9\" USR1; echo up; while :; do sleep 0.05; done") &&
    nightshift freeze "$id" && state_is "$id" frozen && nightshift thaw "$id" && state_is "$id" running &&
    until_true sh -c "nightshift logs $id | grep up" &&
    nightshift signal SIGUSR1 "$id" && state_is "$id" failed && nightshift show "$id" | grep "exit code 9"'

cat >job.yaml <<'YAML'
name: from-file
command: echo $GREETING
env: {GREETING: hello}
resources:
  gpus: 1
YAML

test_expect 'submit sends a file, flags change it' '
    id=$(nightshift submit job.yaml -o name) && state_is "$id" succeeded && [ "$(nightshift logs "$id")" = hello ] &&
    [ "$(nightshift submit job.yaml -e GREETING=bye -g 0.5 --follow)" = bye ] &&
    sent "r[\"resources\"] == {\"gpu_share\": 0.5} and r[\"name\"] == \"from-file\""'

test_expect 'submit reads standard input, JSON and several jobs' '
    nightshift submit - <job.yaml && echo "{\"command\": [\"true\"]}" | nightshift submit - &&
    { cat job.yaml; echo ---; cat job.yaml; } >two.yaml && [ "$(nightshift submit two.yaml -o name | wc -l)" = 2 ]'

test_expect 'what is wrong in a file is told with its line' '
    sed "s/gpus: 1/gpus: 9/" job.yaml >bad.yaml && exits_with 2 nightshift submit bad.yaml 2>err &&
    grep "^nightshift: bad.yaml:5: field" err &&
    printf "name: a\nname: b\n" >twice.yaml && exits_with 2 nightshift submit twice.yaml 2>err && grep "twice.yaml: .*line 2" err &&
    exits_with 4 nightshift submit nofile.yaml && : >empty.yaml && exits_with 2 nightshift submit empty.yaml'

test_expect 'several jobs are submitted all or not at all: of a file, of two files, for two tenants' '
    { cat job.yaml; echo ---; echo "array: 0-2"; cat job.yaml; echo ---; cat bad.yaml; } >three.yaml &&
    n=$(nightshift ps -a -o name | wc -l) && exits_with 2 nightshift submit three.yaml 2>err &&
    grep "^nightshift: three.yaml:18: document 3: field .resources.gpus.: 9 is too many" err &&
    grep "nothing was submitted" err && exits_with 2 nightshift submit job.yaml bad.yaml 2>err &&
    grep "^nightshift: bad.yaml:5: field" err && { echo "tenant: vision"; cat two.yaml; } >tenants.yaml &&
    { cat tenants.yaml; echo ---; cat bad.yaml; } >worse.yaml && exits_with 2 nightshift submit worse.yaml 2>err &&
    grep "worse.yaml:18: document 3" err && { cat job.yaml; echo ---; echo "tenant: nobody"; cat job.yaml; } >lost.yaml &&
    exits_with 4 nightshift submit lost.yaml 2>err && grep "lost.yaml:7: document 2: there is no tenant" err && printf "command: x\n---\nname: [\n" >torn.yaml &&
    exits_with 2 nightshift submit torn.yaml 2>err && grep "torn.yaml: document 2: .*line" err &&
    [ "$(nightshift ps -a -o name | wc -l)" = "$n" ] && : >requests.log &&
    nightshift submit two.yaml three.yaml job.yaml -g 1 >out && [ "$(grep -c POST requests.log)" = 1 ] &&
    [ "$(wc -l <out)" = 6 ] && grep "submitted jobs $((n + 20))-" out && nightshift submit tenants.yaml'

test_expect 'a dry run makes no job' '
    n=$(nightshift ps -a -o name | wc -l) && nightshift submit --dry-run job.yaml >out 2>err && grep "^name: from-file" out &&
    exits_with 2 nightshift submit --dry-run bad.yaml 2>err && grep "^nightshift: bad.yaml:5: " err &&
    [ "$(nightshift ps -a -o name | wc -l)" = "$n" ]'

test_expect 'a start that takes its time says what it is doing, and what failed' '
    nightshift run --name pulling1 -- true 2>pull.err & run=$!
    until_true grep "starts: image .x:1.: the registry .r. does not answer; trying again (2 of 12)" pull.err &&
    nightshift ps -n pulling1 | grep "desk1: image .x:1.: the registry" && nightshift cancel "$(nightshift ps -n pulling1 -o name)" &&
    exits_with 1 wait $run || { cat pull.err; false; }'

test_expect 'many jobs are changed by few requests, and one that cannot be holds up no other' '
    id=$(nightshift run -d --array 0-1499 --name stuckmany -g 1 true | sed "s/-.*//") && : >requests.log &&
    nightshift cancel "${id}_[10-1499]" >out && grep "^cancelled 1490 jobs$" out && [ "$(grep -c POST requests.log)" = 2 ] &&
    exits_with 5 nightshift cancel "$id-$((id + 12))" --reason enough >out 2>err && ! [ -s out ] &&
    [ "$(grep -c "has ended: it is cancelled" err)" = 3 ] && grep "3 of 13 jobs could not be changed" err &&
    grep "\"reason\": \"enough\"" requests.log && state_is "$id" cancelled &&
    exits_with 5 nightshift hold "${id}_*" 2>err && [ "$(wc -l <err)" -lt 30 ] && grep "1500 of 1500 jobs" err'

test_expect 'exec runs inside a job' '
    id=$(nightshift run -d --name host -- sleep 600) && exits_with 4 nightshift exec "$id" sh -c "echo in; exit 4" >out &&
    [ "$(cat out)" = in ] && [ "$(nightshift exec "$id" -- echo dashed)" = dashed ] &&
    exits_with 2 nightshift exec "$id" -- 2>err && grep "no command after" err && [ "$(echo hi | nightshift exec -i "$id" tr a-z A-Z)" = HI ] &&
    [ "$(nightshift exec -e X=5 -w / "$id" sh -c "echo \$X; pwd")" = "5
/" ] && [ -z "$(echo hi | nightshift exec "$id" cat)" ]'

test_expect 'files and folders are copied both ways' '
    id=$(nightshift ps -n host -o name) && mkdir -p tree/sub && seq 100000 >tree/sub/big && echo x >"tree/with blank" &&
    nightshift cp tree "$id:$PWD/copy" && diff -r tree copy && mkdir into && nightshift cp "$id:$PWD/copy" into &&
    diff -r tree into/copy && nightshift cp "$id:$PWD/tree/sub/big" one && cmp tree/sub/big one && ls -A >ls.out && ! grep nightshift-cp ls.out'

test_expect 'a copy that fails leaves nothing behind' '
    id=$(nightshift ps -n host -o name) && exits_with 4 nightshift cp "$id:$PWD/no-such" here 2>err && ! [ -e here ] &&
    exits_with 4 nightshift cp no-such "$id:$PWD/there" && exits_with 2 nightshift cp a b && ls -A >ls.out && ! grep nightshift-cp ls.out'

test_expect 'attach shows what comes from now on' '
    id=$(nightshift run -d -- sh -c "while [ ! -e go ]; do sleep 0.05; done; echo now; exit 6") || exit 1
    { nightshift attach "$id" >out; echo $? >code; } & attach=$!
    until_true grep "{\"attached\": $id}" requests.log; touch go; wait $attach; grep now out && [ "$(cat code)" = 6 ]; rm -f go'

test_expect 'nodes, drain, resume' '
    nightshift nodes >out && grep "^desk1 *up *A100 (simulated)" out && nightshift nodes -o wide | grep "^desk1 *3 " &&
    nightshift drain desk1 | grep "desk1: drain" && nightshift nodes | grep "desk1 *drain" && nightshift resume desk1 | grep up'

test_expect 'quota, usage' '
    nightshift quota >out && grep "^vision .* 75% .* 0/6 .* 0/10" out && nightshift quota --users | grep "^  ana" &&
    nightshift usage --days 7 | grep "^vision *ana *A100 *12.50 *50.25 *7" && grep "from_ms=" requests.log &&
    exits_with 2 nightshift usage --from tomorrow && exits_with 2 nightshift usage --days 3 --from 1d'

test_expect 'usage is summed by what is asked for' '
    nightshift usage --by model,user >out && head -n 1 out | grep "^USER *MODEL *GPU HOURS *CPU HOURS *RUNS$" &&
    grep "^ana *A100 *12.50" out && grep "group=user,model" requests.log && ! grep "group=.*from_ms" requests.log &&
    exits_with 2 nightshift usage --by colour 2>err && grep "some of day, tenant, user, model" err'

test_expect 'usage --fairness is a table, says what others had, and that it sums up' '
    nightshift usage --fairness >out && grep "^vision *60.00 *90.00 *150% *0.00 *30.00 *2.50 *7.00$" out &&
    grep "^(others) *30.00 *0.00 *0% *- *- *- *-$" out &&
    grep "^It sums up: 200.00 GPU-hours of the machines = 110.00 got + 40.00 idle + 50.00 away\.$" out &&
    nightshift usage --fairness -o wide | grep "^audio .*33%" && nightshift usage --fairness --by day >/dev/null &&
    grep "/v1/fairness.*by=day" requests.log && exits_with 2 nightshift usage --fairness --by user'

test_expect 'events are told, and followed' '
    nightshift events >out && grep "job 17 .* queued -> running" out && nightshift events -o json | head -n 1 | python3 -m json.tool &&
    nightshift events -f >follow & events=$!
    id=$(nightshift run -d true) && until_true grep "job $id .* succeeded" follow; found=$?
    kill $events; wait $events; [ $found = 0 ]'

test_expect 'status and doctor' '
    nightshift status >out && grep "^you *ana (admin)" out && grep "^GPUs *simulated" out &&
    grep "^policy *min_run 1m30s, take_back 0$" out &&
    LC_ALL=C.UTF-8 exits_with 1 nightshift doctor >out && grep "^✓ the server can be reached" out && grep "^✗ GPU driver: none" out &&
    grep "fix: install the NVIDIA driver" out && grep "^1 to fix" out &&
    LC_ALL=C.UTF-8 NIGHTSHIFT_SERVER=unix:/nonexistent exits_with 1 nightshift doctor >out && grep "^✗ the server can be reached" out'

test_expect 'tokens' '
    nightshift tokens | grep laptop && [ "$(nightshift tokens create desk 2>err)" = nst_secret ] && grep "shown this once" err &&
    nightshift tokens delete laptop && ! nightshift tokens list | grep laptop && exits_with 2 nightshift tokens frob'

test_expect 'a server over TCP wants its token' '
    exits_with 3 nightshift ps --server "http://127.0.0.1:$port" 2>err && grep "a token is needed" err && grep NIGHTSHIFT_TOKEN err &&
    NIGHTSHIFT_TOKEN=nst_right nightshift ps --server "http://127.0.0.1:$port" &&
    NIGHTSHIFT_TOKEN=nst_right NIGHTSHIFT_SERVER="http://127.0.0.1:$port" nightshift run -- echo tcp | grep tcp'

# shellcheck disable=SC2154 # fake_cluster.sh sets it
if [ "$tls_port" = 0 ]; then
    test_skip 'a server over TLS is verified' 'openssl is not installed'
elif ! ldconfig -p 2>/dev/null | grep -q 'libcurl\.so\.4'; then
    test_skip 'a server over TLS is verified' 'libcurl is not installed'
else
    NIGHTSHIFT_TOKEN=nst_right
    tls=https://localhost:$tls_port
    export tls
    test_expect 'a server over TLS is verified' '
        export NIGHTSHIFT_TOKEN && exits_with 8 nightshift ps --server "$tls" 2>err && grep NIGHTSHIFT_CA err &&
        export NIGHTSHIFT_CA=cert.pem && nightshift ps --server "$tls" &&
        NIGHTSHIFT_SERVER=$tls nightshift run -- seq 1 50000 >out && [ "$(wc -l <out)" = 50000 ] &&
        [ "$(echo hi | NIGHTSHIFT_SERVER=$tls nightshift run -i -- cat)" = hi ]'
fi

test_expect 'no server: a sentence, a hint, exit code 8' '
    NIGHTSHIFT_SERVER=unix:/nonexistent/api.sock exits_with 8 nightshift ps 2>err && grep "cannot reach the server at /nonexistent" err &&
    grep "hint: start it with: nightshiftd" err && NIGHTSHIFT_SERVER=nonsense exits_with 2 nightshift ps'

test_expect 'mistakes name the nearest word' '
    exits_with 2 nightshift cance 2>err && grep "did you mean .nightshift cancel.?" err &&
    exits_with 2 nightshift ps --al 2>err && grep "did you mean --all?" err &&
    exits_with 2 nightshift show 2>err && grep "usage: nightshift show" err && exits_with 2 nightshift show x17'

test_expect 'every command has help' '
    nightshift --help >out && for c in $(sed -n "s/^    \([a-z]*\) .*/\1/p" out); do
        nightshift "$c" --help | head -n 1 | grep "^nightshift $c: " && nightshift help "$c" >/dev/null || exit 1
    done && [ "$(nightshift version)" = "$(nightshift --version)" ]'

test_expect 'completion is a script that its shell reads' '
    nightshift completion bash >c.bash && bash -n c.bash &&
    bash -c ". ./c.bash; COMP_WORDS=(nightshift can); COMP_CWORD=1; _nightshift; echo \${COMPREPLY[*]}" | grep -w cancel &&
    bash -c ". ./c.bash; COMP_WORDS=(nightshift run --prior); COMP_CWORD=2; _nightshift; echo \${COMPREPLY[*]}" | grep -e --priority &&
    bash -c ". ./c.bash; COMP_WORDS=(nightshift ps -o js); COMP_CWORD=3; _nightshift; echo \${COMPREPLY[*]}" | grep json &&
    nightshift completion zsh | grep "#compdef nightshift" && nightshift completion fish | grep "complete -c nightshift"'

test_expect 'what a server sends cannot drive the terminal' '
    id=$(nightshift run -d --name "stuck$(printf "\033[31mred")" true) && nightshift ps >out && ! grep -q "$(printf "\033")" out &&
    grep "stuck?\[31mred" out && nightshift cancel "$id"'

test_expect 'the fake server itself made no mistake' '! grep Traceback server.err || { cat server.err; false; }'

test_expect 'a locale without UTF-8 gets plain marks' '
    LC_ALL=C nightshift nodes >out && ! LC_ALL=C grep -q "[^ -~]" out && LC_ALL=C.UTF-8 nightshift nodes | grep "░"'

test_expect 'a server that refuses a stream is heard' '
    nightshift run -d --name stuck7 true >id && exits_with 5 nightshift exec "$(cat id)" true 2>err &&
    grep "does not run: it is queued" err && nightshift cancel "$(cat id)"'

test_expect 'what an owner types on the machine explains itself' '
    nightshift-agent hold --help >out && grep "^usage: nightshift-agent hold \[--for 30m\]" out && grep -e "--reason TEXT" out &&
    nightshift-agent release --help >out && ! grep -e --reason out && nightshift-agent show --help | grep -e "--control PATH" &&
    exits_with 2 nightshift-agent hold --resaon x 2>err && grep "did you mean --reason" err'

test_done
