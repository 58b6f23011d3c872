#!/bin/sh
# What nightshift-sim prints and writes: the JSON that stays, the table, the page, the journal.
. "$(dirname "$0")/lib.sh"

if ! [ -x "$NIGHTSHIFT_BUILD/nightshift-sim" ]; then
    test_skip 'nightshift-sim' 'it is not built'
    test_done
fi
if ! command -v python3 >/dev/null; then
    test_skip 'reports' 'python3 is not installed'
    test_done
fi

make-trace philly philly 1 && make-trace swf swf 1 && make-trace shockwave shockwave 1 ||
    exit 1
# Two nodes, 160 pods of a tenth of a GPU in the order of their numbers: every percent is reached.
mkdir openb
{
    echo 'sn,cpu_milli,memory_mib,gpu,model'
    printf 'n%d,96000,393216,4,T4\n' 0 1
} >openb/openb_node_list_gpu_node.csv
{
    echo 'name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time'
    seq -f 'p%g,500,512,1,80,,LS,Running,1,2,3' 0 159
} >openb/openb_pod_list_default.csv
for seed in 42 43; do echo $seed $(seq 0 159); done >openb/seq_default.txt
printf '42 0 1\n43 1 0\n' >openb/noderank_default.txt

# is_json CONDITION - out is one line of JSON, d, for which the condition holds
is_json() {
    python3 -c '
import json, sys
text = open("out").read()
d = json.loads(text)
def number(key):
    return type(d[key]) in (int, float) and d[key] == d[key]
assert text.count("\n") == 1 and text.endswith("\n"), "more than one line"
assert ('"$1"'), d' && is_quiet
}
# is_quiet - err has nothing but how far it came, which is shown of whatever takes over a second: on a slow machine of all
is_quiet() {
    ! grep -qvE "^[a-z -]+ (\\[=* *\\] )? *100% [^ ]+, [^ ]+/s, [^ ]+$" err || { cat err; false; }
}

test_expect 'packing prints its figures as JSON, for each packer' '
    for p in nightshift fgd bestfit; do
        nightshift-sim packing --data openb --workload default --policy $p --json >out 2>err &&
        is_json "d[\"workload\"] == \"default\" and d[\"policy\"] == \"$p\" and
            d[\"seeds\"] == [42, 43] and number(\"ns_per_placement\") and d[\"alloc_100\"] > 90 and
            d[\"alloc_130\"] >= d[\"alloc_100\"] and d[\"alloc_130\"] <= 100" || exit 1
    done'

test_expect 'packing takes what is known beforehand as an option' '
    for prior in trace online; do
        nightshift-sim packing --data openb --policy fgd --prior $prior --json >out 2>err &&
        is_json "number(\"alloc_100\")" || exit 1
    done'

test_expect 'replay prints its figures as JSON, for each policy' '
    for p in nightshift fifo sjf bestfit fgd; do
        nightshift-sim replay --data philly --trace philly --policy $p --json >out 2>err &&
        is_json "all(number(k) and d[k] >= 0 for k in
            (\"avg_jct_s\", \"avg_queue_s\", \"p99_queue_s\", \"wall_s\")) and
            d[\"policy\"] == \"$p\" and d[\"jobs\"] == 200 and d[\"unfinished\"] == 0 and
            d[\"avg_jct_s\"] > d[\"avg_queue_s\"]" || exit 1
    done'

test_expect 'replay pools the nodes when it is told to' '
    nightshift-sim replay --data philly --trace philly --pooled 9 --policy nightshift --json >out 2>err &&
    is_json "d[\"nodes\"] == 9 and d[\"gpus\"] == 72"'

test_expect 'replay reads a log of processors, and as GPUs' '
    nightshift-sim replay --swf swf/small.swf --policy sjf --json >out 2>err &&
    is_json "d[\"jobs\"] == 150 and d[\"nodes\"] == 8" &&
    nightshift-sim replay --swf swf/small.swf --gpus-per-node 4 --json >out 2>err &&
    is_json "d[\"nodes\"] == 16 and d[\"gpus\"] == 64"'

test_expect 'a what-if lends machines at other times, of a lab and of its journal' '
    nightshift-sim lab --days 3 --lend --write-journal lend.journal >/dev/null &&
    for world in "lab --days 3 --lend" "replay --journal lend.journal"; do
        nightshift-sim $world --what-if window:desks= --json >out 2>err &&
        is_json "d[\"after\"][\"avg_queue_s\"] < d[\"before\"][\"avg_queue_s\"]" &&
        nightshift-sim $world --what-if "window:desks=Sat-Sun 00:00-24:00" --json >out 2>err &&
        is_json "d[\"after\"][\"avg_queue_s\"] > d[\"before\"][\"avg_queue_s\"]" || return 1
    done'

test_expect 'a what-if prints both worlds as JSON, of a lab, a trace and a journal' '
    nightshift-sim lab --days 2 --policy nightshift --write-journal lab.journal >/dev/null &&
    nightshift-sim lab --days 2 --what-if "nodes+=2*rtx4090" --json >out 2>err &&
    is_json "d[\"after\"][\"gpus\"] == d[\"before\"][\"gpus\"] + 2 and
        d[\"after\"][\"avg_queue_s\"] < d[\"before\"][\"avg_queue_s\"]" && mv out lab.json &&
    nightshift-sim replay --journal lab.journal --what-if "nodes+=2*rtx4090" --json >out 2>err &&
    is_json "d[\"before\"][\"avg_queue_s\"] == json.load(open(\"lab.json\"))[\"before\"][\"avg_queue_s\"] >
        d[\"after\"][\"avg_queue_s\"]" &&
    nightshift-sim replay --data philly --trace philly --what-if load=0.5 --json >out 2>err &&
    is_json "d[\"after\"][\"jobs\"] < d[\"before\"][\"jobs\"] == 200"'

test_expect 'replaying a journal writes the same journal' '
    nightshift-sim replay --journal lab.journal --write-journal again.journal >out 2>err &&
    cmp lab.journal again.journal'

test_expect 'numbers of the policy are set, within their bounds' '
    nightshift-sim lab --days 2 --set take_back=0 --json >out 2>err && is_json "d[\"freezes\"] == 0" &&
    exits_with 2 nightshift-sim lab --days 2 --set half_life_ms=1s 2>err && grep -q "must lie between" err'

test_expect 'scale prints its figures as JSON' '
    nightshift-sim scale --nodes 40 --jobs 200 --json >out 2>err &&
    is_json "all(number(k) and d[k] > 0 for k in (\"full_pass_ms\", \"incremental_submit_ms\",
        \"incremental_end_ms\", \"rss_mib\"))"'

test_expect 'the smallest cluster can be scaled too' '
    nightshift-sim scale --nodes 4 --jobs 1 --json >out 2>err && is_json "d[\"nodes\"] == 4"'

test_expect 'a lab leaves a page and a journal, and says where' '
    nightshift-sim lab --days 2 --out lab >out 2>err && is_quiet &&
    grep "lab/report.html" out && grep "lab/lab.journal" out && grep "simulated" out &&
    [ "$(ls lab)" = "lab.journal
report.html" ]'

test_expect 'the page is one whole file that needs nothing else' '
    head -c 15 lab/report.html | grep -i "<!doctype html>" && tail -c 20 lab/report.html | grep "</html>" &&
    ! grep -E "(src|href)=.https?:" lab/report.html'

test_expect 'the journal of a lab verifies, also packed' '
    nightshift-sim verify --journal lab/lab.journal >out 2>err && grep "every one is the same" out &&
    nightshift-sim verify --journal lab/lab.journal --json >out 2>err &&
    is_json "d[\"same\"] is True and d[\"decisions\"] > 0 and d[\"passes\"] > 0" &&
    gzip -c lab/lab.journal >packed.gz && nightshift-sim verify --journal packed.gz'

test_expect 'a changed decision is found by its line' '
    n=$(grep -n "\"ev\":\"place\"" lab/lab.journal | sed -n "30s/:.*//p") &&
    sed "${n}s/\[\[[0-9]*,/[[10,/;${n}s/,1000\]/,999]/" lab/lab.journal >changed &&
    ! cmp -s changed lab/lab.journal &&
    exits_with 5 nightshift-sim verify --journal changed >out 2>err && ! [ -s out ] &&
    grep "changed:$n: " err'

test_expect 'a journal is a trace for what-if: the same policy gives the same figures' '
    nightshift-sim lab --days 2 --policy nightshift --json >out 2>err && is_json "d[\"simulated\"] is True" &&
    mv out first && nightshift-sim replay --journal lab/lab.journal --json >out 2>err &&
    is_json "all(d[k] == json.load(open(\"first\"))[k] for k in (\"jobs\", \"avg_jct_s\", \"p99_queue_s\"))" &&
    nightshift-sim replay --journal lab/lab.journal --policy fifo --json >out 2>err &&
    is_json "d[\"unfinished\"] == 0"'

test_expect 'the same seed gives the same lab, another one another' '
    nightshift-sim lab --days 2 --out again >/dev/null && cmp lab/lab.journal again/lab.journal &&
    nightshift-sim lab --days 2 --seed 2 --out other >/dev/null && ! cmp -s lab/lab.journal other/lab.journal'

test_expect 'a tenant that only groups others has no row' '
    nightshift-sim lab --days 1 --json >out 2>err &&
    is_json "sorted(t[\"name\"] for t in d[\"tenants\"]) ==
        [\"course-ml\", \"guests\", \"language\", \"robotics\", \"vision\"] and
        all(type(t[\"entitled_hours\"]) in (int, float) for t in d[\"tenants\"]) and
        sum(t[\"jobs\"] for t in d[\"tenants\"]) == d[\"jobs\"]" &&
    nightshift-sim lab --days 1 >out && grep "^vision " out && ! grep "^research " out'

test_expect 'starts lists every job once' '
    nightshift-sim replay --data philly --trace philly --policy fifo --starts starts.csv >/dev/null &&
    [ "$(head -n 1 starts.csv)" = job_id,start_s,end_s,freezes,held_s ] && [ "$(wc -l <starts.csv)" = 201 ] &&
    ! grep -e "-" starts.csv'

test_expect 'starts says how often a job was preempted and how long it had its GPUs' '
    nightshift-sim replay --data philly --trace philly --policy srtf --starts starts.csv >/dev/null &&
    awk -F, "NR > 1 && \$4 == 0 && \$3 - \$2 != \$5 { bad++ }
        NR > 1 && \$4 > 0 { preempted++; if (\$3 - \$2 <= \$5) bad++ }
        END { exit bad > 0 || preempted == 0 }" starts.csv'
test_expect 'a replay says how fairly it shared' '
    nightshift-sim replay --data philly --trace philly --pooled 7 --policy fifo --json >out 2>err &&
    is_json "0 < d[\"worst_tenant\"] <= d[\"satisfaction\"] <= 1 and 0 < d[\"jain\"] <= 1 and
        d[\"freezes\"] == d[\"freezes_max\"] == 0 and d[\"makespan_s\"] > 0 and number(\"worst_rho\") and
        d[\"p50_cover\"] is d[\"p90_cover\"] is d[\"interval_width_ratio\"] is None and
        \"rho_note\" not in d and all(0 <= t[\"satisfaction\"] <= 1 for t in d[\"tenants\"])"'

test_expect 'finish-time fairness is shown with what it means' '
    nightshift-sim replay --data shockwave --trace shockwave --gpus 16 --html wave.html >out 2>err &&
    grep "worst rho" out && grep "^rho: .*change their batch size" out && grep "change their batch size" wave.html &&
    nightshift-sim replay --trace shockwave --jobs shockwave/tacc32_120jobs.csv --json >out 2>err &&
    is_json "d[\"gpus\"] == 32 and len(d[\"tenants\"]) == d[\"jobs\"] == 60 and \"batch size\" in d[\"rho_note\"]"'

# changed SEED TRACE... - the replay of a changed trace, without its times of day
changed() {
    seed=$1
    shift
    nightshift-sim replay "$@" --jitter 20 --shift 12 --seed "$seed" --policy sjf --json 2>err |
        sed "s/\"wall_s\":[0-9.]*//" && is_quiet
}
test_expect 'any trace can be made a little different, the same way by the same seed' '
    for trace in "--data philly --trace philly" "--swf swf/small.swf --gpus-per-node 8" \
        "--data shockwave --trace shockwave" "--journal lab/lab.journal"; do
        # shellcheck disable=SC2086 # words
        changed 5 $trace >one && changed 5 $trace >two && changed 6 $trace >three &&
        grep "jitter 20 %, shift 12 h, seed 5" one && cmp one two && ! cmp -s one three || exit 1
    done'

test_expect 'a table has a row for each policy' '
    nightshift-sim replay --data philly --trace philly --policy fifo,sjf,nightshift >out 2>err &&
    grep "^fifo " out && grep "^sjf " out && grep "^nightshift " out && is_quiet'

test_done
