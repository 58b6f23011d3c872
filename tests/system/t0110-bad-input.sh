#!/bin/sh
# Bad input: a message with file, line and field, exit code 2, and nothing written.
. "$(dirname "$0")/lib.sh"

if ! [ -x "$NIGHTSHIFT_BUILD/nightshift-sim" ]; then
    test_skip 'nightshift-sim' 'it is not built'
    test_done
fi

make-trace philly philly 1 && make-trace openb openb 1 && make-trace swf swf 1 &&
    make-trace shockwave shockwave 1 || exit 1
nightshift-sim lab --days 1 --out lab >/dev/null || exit 1

# fresh KIND - a copy of a good folder as ./data, and files that must stay as they are
fresh() {
    rm -rf data results && cp -r "$1" data && mkdir results &&
    for f in page.html journal starts.csv; do echo old >"results/$f"; done
}
# refused STATUS PATTERN WORDS... - nothing on stdout, nothing changed, the message has the pattern
refused() {
    status=$1 pattern=$2
    shift 2
    cp -r data before && cp -r results kept && rm -rf made &&
    exits_with "$status" nightshift-sim "$@" >out 2>err &&
    { ! [ -s out ] || { echo "printed:"; cat out; false; }; } &&
    { grep -e "^nightshift-sim: .*$pattern" err || { cat err; false; }; } &&
    diff -r data before && diff -r results kept && ! [ -e made ] && ! [ -e new.html ]
    rc=$?
    rm -rf before kept
    return $rc
}
# Everything a replay could write: three files that are there, one that is not.
replay() {
    status=$1 pattern=$2
    shift 2
    refused "$status" "$pattern" replay "$@" --policy fifo,nightshift --html results/page.html \
        --starts results/starts.csv &&
    refused "$status" "$pattern" replay "$@" --html new.html --write-journal results/journal
}
# line N TEXT FILE - the text becomes line N
line() {
    sed -i "$1s/.*/$2/" "$3"
}
philly() {
    replay 2 "$1" --data data --trace philly
}
jobs=data/s2_window_jobs.csv
vcs=data/philly_vc_nodes.csv

test_expect 'the data is good before it is broken' '
    fresh philly && nightshift-sim replay --data data --trace philly --policy fifo --json >out &&
    [ -s out ]'

test_expect 'philly: a broken line is named with its field' '
    fresh philly && line 3 "7,1,6214e9" $jobs && philly "s2_window_jobs.csv:3: field .num_gpus." &&
    fresh philly && line 4 "7,1,\"6214e9,1,1,1" $jobs && philly "s2_window_jobs.csv:4: field " &&
    fresh philly && line 5 "7,x,6214e9,1,1,1" $jobs && philly "s2_window_jobs.csv:5: field .submit_s."'

test_expect 'philly: a missing column is named' '
    fresh philly && sed -i 1s/num_gpus/gpus/ $jobs && philly "s2_window_jobs.csv:1: field .num_gpus."'

test_expect 'philly: negative numbers are refused' '
    fresh philly && line 3 "-7,1,6214e9,1,1,1" $jobs && philly "jobs.csv:3: field .job_id." &&
    fresh philly && line 3 "7,1,6214e9,-1,1,1" $jobs && philly "jobs.csv:3: field .num_gpus." &&
    fresh philly && line 3 "7,1,6214e9,1,-1,1" $jobs && philly "jobs.csv:3: field .duration_s." &&
    fresh philly && line 2 "6214e9,-4" $vcs && philly "philly_vc_nodes.csv:2: field .node num."'

test_expect 'philly: a job of no length is refused' '
    fresh philly && line 9 "7,1,6214e9,1,0,1" $jobs && philly "jobs.csv:9: field .duration_s."'

test_expect 'philly: a gang larger than its cluster is refused' '
    fresh philly && line 6 "7,1,6214e9,40,9,9" $jobs && philly "jobs.csv:6: field .num_gpus.: 40 GPUs" &&
    fresh philly && line 6 "7,1,6214e9,80,9,9" $jobs &&
    replay 2 "jobs.csv:6: field .num_gpus." --data data --trace philly --pooled 9'

test_expect 'philly: an unknown cluster, one twice, a job twice' '
    fresh philly && line 6 "7,1,zoo,1,9,9" $jobs && philly "jobs.csv:6: field .vc." &&
    fresh philly && sed -n 2p $vcs >>$vcs && philly "philly_vc_nodes.csv:5: field .vc." &&
    fresh philly && sed -n 2p $jobs >>$jobs && philly "jobs.csv:202: field .job_id."'

test_expect 'a missing file is not found: exit code 4' '
    fresh philly && rm $jobs && replay 4 "jobs.csv" --data data --trace philly &&
    replay 4 "no-such" --data no-such --trace philly && replay 4 "no.swf" --swf no.swf &&
    replay 4 "no.journal" --journal no.journal &&
    refused 4 "no.journal" verify --journal no.journal &&
    fresh openb && refused 4 "pod_list_zoo" packing --data data --workload zoo'

test_expect 'a truncated gzip file is refused' '
    fresh philly && gzip $jobs && nightshift-sim replay --data data --trace philly --json >out &&
    head -c 900 $jobs.gz >cut && mv cut $jobs.gz && philly "jobs.csv.gz. is not a whole gzip file" &&
    grep "hint: .*gzip -t" err &&
    gzip -c lab/lab.journal | head -c 900 >results/j.gz &&
    refused 2 "j.gz. is not a whole gzip file" verify --journal results/j.gz'

test_expect 'openb: broken, negative and double lines are named' '
    fresh openb && line 4 "openb-pod-0001,1,1,1,2000,,LS,Running,1,2,3" data/openb_pod_list_default.csv &&
    refused 2 "openb_pod_list_default.csv:4: field .gpu_milli." packing --data data &&
    fresh openb && line 5 "a,-32000,1,1,T4" data/openb_node_list_gpu_node.csv &&
    refused 2 "node_list_gpu_node.csv:5: field .cpu_milli." packing --data data &&
    fresh openb && sed -n 2p data/openb_node_list_gpu_node.csv >>data/openb_node_list_gpu_node.csv &&
    refused 2 "node_list_gpu_node.csv:26: field .sn." packing --data data &&
    fresh openb && sed -i "2s/\$/ 9999/" data/seq_default.txt &&
    refused 2 "seq_default.txt:2: field " packing --data data &&
    fresh openb && sed -i "1s/ [0-9]*\$//" data/noderank_default.txt &&
    refused 2 "noderank_default.txt:1: field " packing --data data'

swf=data/small.swf
test_expect 'swf: broken and negative fields are named' '
    fresh swf && line 8 "3 1 1" $swf && replay 2 "small.swf:8: field .Run Time." --swf $swf &&
    fresh swf && line 8 "3 x 1 9 1 1 1 1 1 1 1 1 1 1 1 1 1 1" $swf &&
    replay 2 "small.swf:8: field .Submit Time." --swf $swf &&
    fresh swf && line 8 "3 1 1 9 -2 1 1 1 1 1 1 1 1 1 1 1 1 1" $swf &&
    replay 2 "small.swf:8: field .Number of Allocated Processors." --swf $swf &&
    fresh swf && line 4 "; MaxProcs: -64" $swf && replay 2 "small.swf:4: field .MaxProcs." --swf $swf'

test_expect 'swf: a gang larger than the machine is refused' '
    fresh swf && line 8 "3 1 1 9 65 1 1 1 1 1 1 1 1 1 1 1 1 1" $swf &&
    replay 2 "small.swf:8: field .Number of Allocated Processors.: 65" --swf $swf &&
    replay 2 "small.swf:8: field .Number of Allocated Processors.: 65" --swf $swf --gpus-per-node 8'

test_expect 'scene: what is wrong is named' '
    echo "machines 1 gpus=8" >a.scene && echo "tenant vision wait=3" >>a.scene &&
    replay 2 "a.scene:2: field .key.: .*wait" --scene a.scene && grep "known are: weight= guarantee=" err &&
    replay 4 "no.scene" --scene no.scene'

wave=data/tacc32_120jobs.csv
test_expect 'shockwave: broken, negative and double lines, and gangs too large, are named' '
    fresh shockwave && nightshift-sim replay --data data --trace shockwave --json >out && [ -s out ] &&
    line 3 "1,1" $wave && replay 2 "tacc32_120jobs.csv:3: field .num_gpus." --data data --trace shockwave &&
    fresh shockwave && line 4 "1,1,1,-60,1,a,b" $wave &&
    replay 2 "tacc32_120jobs.csv:4: field .exclusive_s." --trace shockwave --jobs $wave &&
    fresh shockwave && sed -n 2p $wave >>$wave &&
    replay 2 "tacc32_120jobs.csv:62: field .job_id." --trace shockwave --jobs $wave &&
    fresh shockwave && line 5 "3,1,9,60,1,a,b" $wave &&
    replay 2 "tacc32_120jobs.csv:5: field .num_gpus.: 9 GPUs" --trace shockwave --jobs $wave --gpus 8 &&
    fresh shockwave && replay 4 "no.csv" --trace shockwave --jobs no.csv'

# journal PATTERN - results/j is refused by replay and by verify
journal() {
    replay 2 "results/j:$1" --journal results/j && refused 2 "results/j:$1" verify --journal results/j
}
test_expect 'journal: a cycle in the tree of tenants is refused' '
    fresh lab && cp lab/lab.journal results/j &&
    line 4 "{\"t\":1,\"ev\":\"tenant\",\"name\":\"research\",\"parent\":\"research\",\"weight_milli\":1}" results/j &&
    journal "4: field .parent.: .*cycle" &&
    line 4 "{\"t\":1,\"ev\":\"tenant\",\"name\":\"vision\",\"parent\":\"zoo\",\"weight_milli\":1}" results/j &&
    journal "4: field .parent.: .*does not exist"'

test_expect 'journal: a node that is there twice is refused' '
    fresh lab && sed 9p lab/lab.journal >results/j && journal "10: field .name.: .*already"'

test_expect 'journal: a gang larger than the cluster is refused' '
    fresh lab && cp lab/lab.journal results/j &&
    line 20 "{\"t\":1,\"ev\":\"submit\",\"job\":1,\"tenant\":\"vision\",\"user\":\"u\",\"replicas\":9,\"gpus\":8,\"priority\":\"normal\"}" results/j &&
    journal "20: field .replicas."'

test_expect 'journal: negative, broken, cut and empty ones are refused' '
    fresh lab && cp lab/lab.journal results/j &&
    sed -i "9s/\"gpus\":1/\"gpus\":-1/" results/j && journal "9: field .gpus." &&
    fresh lab && { head -n 25 lab/lab.journal; echo nonsense; } >results/j && journal "26: " &&
    fresh lab && head -c 3000 lab/lab.journal >results/j && journal "[0-9]*: " &&
    fresh lab && : >results/j && journal "1: the journal is empty" &&
    fresh lab && cp philly/s2_window_jobs.csv results/j && journal "1: "'

test_expect 'a bad policy or journal option is refused before anything is made' '
    fresh lab && refused 2 "lifo" lab --days 1 --out made --policy nightshift,lifo &&
    refused 2 "only the nightshift policy" lab --days 1 --out made --policy fifo &&
    refused 2 "write-journal" lab --days 1 --policy sjf --html new.html --write-journal results/journal'

test_expect 'a result that cannot be written is an error' '
    fresh lab && refused 4 "no/such/page.html" lab --days 1 --html no/such/page.html && ! [ -e no ] &&
    refused 8 ".*cannot make .no/such." lab --days 1 --out no/such && ! [ -e no ]'

test_done
