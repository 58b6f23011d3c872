#!/bin/sh
# Slurm's words, called by their own names, against a fake server.
. "$(dirname "$0")/lib.sh"
. "$NIGHTSHIFT_SOURCE/tests/system/fake_cluster.sh"

mkdir bin
for word in sbatch srun squeue scancel sinfo sacct; do
    ln -s "$NIGHTSHIFT_BUILD/nightshift" bin/$word
done
PATH=$PWD/bin:$PATH

cat >job.sh <<'SCRIPT'
#!/bin/bash
#SBATCH --job-name=train
#SBATCH --gres=gpu:a100:2 -c 4
#SBATCH --mem=16G --time=1-02:00
#SBATCH --output=out-%j.txt   # beside the script
echo "$0 has $# arguments: $1, $2; job $SLURM_JOB_ID" | sed 's|^/[^ ]* ||'
#SBATCH --hold
SCRIPT

test_expect 'sbatch submits a script and says so in Slurm words' '
    sbatch job.sh one "two three" >out 2>err && grep "^Submitted batch job [0-9]*$" out && ! [ -s err ] &&
    id=$(sed "s/.* //" out) && state_is "$id" succeeded &&
    [ "$(cat "out-$id.txt")" = "has 2 arguments: one, two three; job $id" ] && nightshift logs "$id" | grep "output goes to out-$id.txt"'

test_expect 'the lines of the script become the job' '
    sent "r[\"name\"] == \"train\" and r[\"max_time\"] == \"93600s\" and \"held\" not in r and
        r[\"resources\"] == {\"gpus\": 2, \"gpu_type\": \"a100\", \"cpus\": 4, \"mem\": \"16384Mi\"}"'

test_expect 'the command line has the last word' '
    sbatch -J other --gres=gpu:1 job.sh && sent "r[\"name\"] == \"other\" and r[\"resources\"][\"gpus\"] == 1 and
        r[\"resources\"][\"cpus\"] == 4"'

test_expect 'a script from standard input, and a wrapped command' '
    id=$(sbatch --parsable <job.sh) && state_is "$id" succeeded && [ -s "out-$id.txt" ] &&
    id=$(sbatch --parsable --wrap "echo wrapped") && state_is "$id" succeeded && [ "$(cat "slurm-$id.out")" = wrapped ]'

test_expect 'errors can have a file of their own' '
    id=$(sbatch --parsable -o o -e e --wrap "echo good; echo bad >&2") && state_is "$id" succeeded &&
    [ "$(cat o)" = good ] && [ "$(cat e)" = bad ]'

test_expect 'what means nothing here is said, what matters is refused' '
    sbatch -p gpu job.sh 2>err && grep "^sbatch: --partition is ignored" err &&
    exits_with 2 sbatch -d singleton job.sh 2>err && grep "dependency: .singleton. is not supported" err &&
    exits_with 2 sbatch --frobnicate job.sh 2>err && grep "lists what is supported" err &&
    printf "#!/bin/sh\n\n#SBATCH --frob=1\n" >bad.sh && exits_with 2 sbatch bad.sh 2>err && grep "^sbatch: bad.sh:3: unknown option" err &&
    echo "echo hi" >plain.sh && exits_with 2 sbatch plain.sh 2>err && grep "does not look like a batch script" err'

test_expect 'variables go along as with Slurm' '
    COLOUR=red sbatch job.sh && sent "r[\"env\"][\"COLOUR\"] == \"red\"" &&
    COLOUR=red sbatch --export=NONE job.sh && sent "\"env\" not in r" &&
    COLOUR=red sbatch --export=A=1,COLOUR job.sh && sent "r[\"env\"] == {\"A\": \"1\", \"COLOUR\": \"red\"}"'

test_expect 'srun runs, labels its tasks and exits with their code' '
    [ "$(srun hostname)" = "$(hostname)" ] && exits_with 3 srun sh -c "exit 3" &&
    srun -n 2 sh -c "echo \$REPLICA" | sort >out && [ "$(cat out)" = "[0] 0
[1] 1" ] && [ "$(NIGHTSHIFT_JOB_ID=5 NIGHTSHIFT_SERVER=unix:/none srun echo inside)" = inside ]'

test_expect 'squeue lists in its own columns' '
    a=$(sbatch --parsable -H -J wait --gres=gpu:2 --wrap true) && r=$(sbatch --parsable --wrap "sleep 600") &&
    squeue >out && head -n 1 out | grep "JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)" &&
    grep "^ *$a *main *wait *ana PD *0:00 *1 (gpus_busy)$" out && grep "^ *$r *main *wrap *ana  R .* desk1$" out &&
    [ "$(squeue -h -j "$a" -o "%i %T %b")" = "$a PENDING gpu:2" ] && [ "$(squeue -h -t R -o %i)" = "$r" ] &&
    [ -z "$(squeue -h -u nobody)" ] && [ -n "$(squeue -h --me)" ] && exits_with 2 squeue -o %Z'

test_expect 'arrays fold while they wait' '
    id=$(sbatch --parsable -H -a 0-3 --wrap true) && squeue -h | grep "^ *${id}_\[0-3\] " &&
    [ "$(squeue -h -r -j "$id" -o %i | sort | tr "\n" " ")" = "${id}_0 ${id}_1 ${id}_2 ${id}_3 " ] &&
    scancel "${id}_2" && squeue -h | grep "^ *${id}_\[0-1,3\] " && scancel "$id" && ! squeue -h | grep "${id}_"'

test_expect 'scancel by name, state and user' '
    sbatch -H -J bye --wrap true && scancel -n bye && [ -z "$(squeue -h -n bye)" ] &&
    scancel -t PENDING --me && [ -z "$(squeue -h -t PD)" ] && [ -n "$(squeue -h)" ] && scancel -u ana &&
    until_true sh -c "[ -z \"\$(squeue -h)\" ]" && exits_with 2 scancel && exits_with 4 scancel 9999'

test_expect 'sinfo' '
    sinfo >out && grep "^main\* *up *infinite *1 *idle desk1$" out && sinfo -N -l | grep "^desk1 .* idle *gpu:A100:4 *32" &&
    nightshift drain desk1 && sinfo -h | grep drain && nightshift resume desk1'

test_expect 'sacct tells how jobs ended' '
    id=$(sbatch --parsable -J fails --wrap "exit 7") && state_is "$id" failed &&
    sacct -X >out && grep "^JobID " out && grep "^$id .* FAILED *7:0 *00:0" out && grep "CANCELLED" out &&
    [ "$(sacct -n -P -j "$id" -o JobID,JobName,State,ExitCode)" = "$id|fails|FAILED|7:0" ] &&
    [ -z "$(sacct -n -S 2020-01-01 -E 2020-02-01)" ] && exits_with 2 sacct -o Nonsense && exits_with 2 sacct -S soon'

test_expect 'sinfo has the formats that people type' '
    [ "$(sinfo -h -o "%P %a %D %t %N %G")" = "main* up 1 idle desk1 gpu:A100:4" ] &&
    sinfo -N -l | grep "^desk1 .* gpu:A100:4 *32 *131072$" && exits_with 2 sinfo -o %z 2>err && grep "known are" err'

test_expect 'sacct and squeue take what Slurm has and we have not' '
    sacct -S 2020-01-01 -n -P -o JobID,MaxRSS | grep "^[0-9_]*|$" && sacct -S today && squeue --start | grep START_TIME'

test_done
