#!/bin/sh
# What bench/slurm makes of its samples; the benchmark itself needs root and Slurm.
. "$(dirname "$0")/lib.sh"

# report SAMPLES: a Python dictionary, system to figure to list.
report() {
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$NIGHTSHIFT_SOURCE/bench/slurm python3 -c '
import report, sys
machine = {"cores": 2, "cpu": "p", "kernel": "k"}
print(report.markdown({"commit": "c", "command": "x", "slurm": "Slurm 1", "failures": [], "machine": machine,
                       "others_cores": float(sys.argv[2]),
                       "rows": report.rows(eval(sys.argv[1]))}))' "$1" "${2:-0}"
}

test_expect 'less time is better, and ten times less is the bar' '
    report "{\"slurm tuned\": {\"start_ms\": [900, 1000, 1100]},
        \"nightshift\": {\"start_ms\": [90, 100, 110]}}" >out &&
    grep "| 10.00× | ≥ 10×: met |" out &&
    report "{\"slurm tuned\": {\"start_ms\": [990]}, \"nightshift\": {\"start_ms\": [100]}}" >out &&
    grep "| 9.90× | ≥ 10×: \*\*not met\*\* |" out'

test_expect 'more jobs a second are better' '
    report "{\"slurm tuned\": {\"array_per_s\": [50]}, \"nightshift\": {\"array_per_s\": [100]}}" >out &&
    grep "| 2.00× | ≥ 1.5×: met |" out'

test_expect 'twice as slow is what a whole command may be' '
    report "{\"slurm tuned\": {\"run_ms\": [30]}, \"nightshift\": {\"run_ms\": [61]}}" >out &&
    grep "0.49×.*not met" out'

test_expect 'what only one side has needs no ratio' '
    report "{\"nightshift\": {\"batch_per_s\": [4999], \"api_per_s\": [7]}}" >out &&
    grep "| – | – | 4,999 |  | ≥ 5,000 jobs/s: \*\*not met\*\* |" out && grep "| – | – | 7.0 |  |  |" out'

test_expect 'a busy machine is named' '
    report "{}" 1.5 >out && grep "was busy" out && report "{}" 0.1 >out && ! grep "was busy" out'

test_done
