#!/bin/sh
# install-deps, on machines made of four small scripts: what it says and asks, never an installation.
. "$(dirname "$0")/lib.sh"

tool="$NIGHTSHIFT_SOURCE/tools/install-deps"
mkdir bin
# Each fake answers what the file of its name says.
for command in dpkg-query id apt-get sudo pkg-config; do
    printf '#!/bin/sh\n. "%s/%s"\n' "$PWD" "$command" >"bin/$command"
    chmod +x "bin/$command"
done
PATH=$PWD/bin:$PATH
unset CI
export NIGHTSHIFT_GO="$PWD/go" NIGHTSHIFT_PROMETHEUS_FOLDER="$PWD/prometheus" # which are not there
all_of_it() {
    echo 'shift 2; for p; do printf "%s:installed " "$p"; done' >dpkg-query
    echo 'exit 1' >pkg-config
    echo 'printf "%s " "$@" >>called' | tee apt-get >sudo
    echo 'echo 1000' >id
    rm -f called
}
# without NAME,...: none of these packages is installed
without() {
    echo "shift 2; for p; do case ,$1, in *,\$p,*) ;; *) printf '%s:installed ' \"\$p\" ;; esac; done" >dpkg-query
}
go_says() {
    printf '#!/bin/sh\necho go version go%s linux/amd64\n' "$1" >bin/go
    chmod +x bin/go
}

test_expect 'nothing missing: not a word, and nobody is asked' '
    all_of_it && "$tool" >out 2>&1 && "$tool" --check >>out 2>&1 && ! [ -s out ] && ! [ -e called ]'

test_expect 'check names what is missing and why' '
    all_of_it && without libuv1-dev && exits_with 1 "$tool" --check >out 2>&1 &&
    grep "libuv1-dev *event loop" out && ! [ -e called ]'

test_expect 'without a terminal it installs nothing and says which command would' '
    all_of_it && without libuv1-dev && exits_with 1 "$tool" >out 2>&1 &&
    grep "run: sudo tools/install-deps$" out && ! [ -e called ]'

test_expect 'in CI it uses sudo without asking' '
    all_of_it && without libuv1-dev && CI=true "$tool" >out 2>&1 && grep -e "-n .*install-deps" called'

test_expect 'either of two equal packages will do' '
    all_of_it && without pkgconf && "$tool" --check'

test_expect 'a library built by hand counts' '
    all_of_it && without libyyjson-dev && exits_with 1 "$tool" --check &&
    echo "exit 0" >pkg-config && "$tool" --check'

test_expect 'npm that came with another package counts, where it is' '
    all_of_it && without npm && printf "#!/bin/sh\n" >bin/npm && chmod +x bin/npm && "$tool" --dev --check'

test_expect 'a Prometheus that was only unpacked counts, and one without promtool does not' '
    all_of_it && without prometheus && exits_with 1 "$tool" --dev --check 2>out && grep "prometheus *scrapes" out &&
    "$tool" --check && mkdir -p prometheus/usr/bin && printf "#!/bin/sh\n" >prometheus/usr/bin/prometheus &&
    chmod +x prometheus/usr/bin/prometheus && exits_with 1 "$tool" --dev --check &&
    cp prometheus/usr/bin/prometheus prometheus/usr/bin/promtool && "$tool" --dev --check'

test_expect 'what only the long tests need is asked for only there' '
    all_of_it && without qemu-system-x86 && "$tool" --dev --check && exits_with 1 "$tool" --long --check 2>out &&
    grep "qemu-system-x86 *the virtual machine" out'

test_expect 'what benchmarks compare with is asked for only when they are run' '
    all_of_it && without slurm-wlm && "$tool" --check && "$tool" --dev --check &&
    exits_with 1 "$tool" --bench --check 2>out && grep "slurm-wlm *the other side" out'

test_expect 'the command that it names has the same groups' '
    all_of_it && without slurm-wlm && exits_with 1 "$tool" --dev --bench 2>out &&
    grep "run: sudo tools/install-deps --dev --bench$" out'

test_expect 'what runs Kubernetes is asked for only for its tests' '
    all_of_it && go_says 1.24.0 && without containerd,containerd.io && "$tool" --dev --check &&
    exits_with 1 "$tool" --kube --check 2>out && grep "containerd *runs the pods" out'

test_expect 'a Go that is too old does not count, installed or not' '
    all_of_it && go_says 1.19.8 && exits_with 1 "$tool" --kube --check 2>out && grep "golang-go *compiles" out &&
    go_says 1.21.0 && "$tool" --kube --check && without golang-go && "$tool" --kube --check'

test_expect 'a wrong argument is refused' '
    all_of_it && exits_with 1 "$tool" --bogus 2>out && grep "unknown argument" out'

test_done
