#!/bin/sh
# What an installation puts where, and who may read and run it.
. "$(dirname "$0")/lib.sh"

for program in nightshift nightshift-keeper nightshiftd; do
    if ! [ -x "$NIGHTSHIFT_BUILD/$program" ]; then
        test_skip 'the installed files' "$program is not built"
        test_done
    fi
done
if ! command -v meson >/dev/null; then
    test_skip 'the installed files' 'meson is not installed'
    test_done
fi

# A build folder keeps its prefix; what lies below it is what counts here.
if ! DESTDIR=$PWD/tree meson install -C "$NIGHTSHIFT_BUILD" --no-rebuild >install.log 2>&1; then
    echo 'Bail out! meson install failed'
    sed 's/^/# /' install.log
    exit 1
fi
sbin=$(find "$PWD/tree" -name nightshiftd -type f)
prefix=${sbin%/sbin/nightshiftd}
real=${prefix#"$PWD/tree"}

cat >want <<'LIST'
755 bin/nightshift
755 bin/nightshift-sim
755 bin/nightshift-top
755 libexec/nightshift/nightshift-agent
755 libexec/nightshift/nightshift-init
755 libexec/nightshift/nightshift-keeper
755 libexec/nightshift/nightshift-send
755 libexec/nightshift/nightshift-signin
777 libexec/nightshift/slurm/sacct
777 libexec/nightshift/slurm/sbatch
777 libexec/nightshift/slurm/scancel
777 libexec/nightshift/slurm/sinfo
777 libexec/nightshift/slurm/squeue
777 libexec/nightshift/slurm/srun
644 lib/systemd/system/nightshift-agent.service
644 lib/systemd/system/nightshift-keeper.service
644 lib/systemd/system/nightshift-signin.socket
644 lib/systemd/system/nightshift-signin@.service
644 lib/systemd/system/nightshiftd.service
644 lib/sysusers.d/nightshift.conf
644 lib/tmpfiles.d/nightshift.conf
755 sbin/nightshiftd
644 share/bash-completion/completions/nightshift
644 share/doc/nightshift/examples/demo.yaml
644 share/doc/nightshift/examples/nightshift.yaml
644 share/fish/vendor_completions.d/nightshift.fish
644 share/man/man1/nightshift-sim.1
644 share/man/man1/nightshift.1
644 share/man/man8/nightshift-agent.8
644 share/man/man8/nightshift-keeper.8
644 share/man/man8/nightshiftd.8
644 share/zsh/site-functions/_nightshift
LIST

test_expect 'every file is where it belongs, with its mode, and there is no other' '
    (cd "$prefix" && find . ! -type d -printf "%m %P\n") | sort -k2 >found &&
    sort -k2 want >sorted && diff sorted found'

test_expect 'nothing is put outside the prefix' '
    [ -z "$(find tree ! -type d ! -path "tree$real/*")" ]'

test_expect 'the units start what was installed' '
    grep "^ExecStart=$real/sbin/nightshiftd$" "$prefix/lib/systemd/system/nightshiftd.service" &&
    grep "^ExecStart=$real/libexec/nightshift/nightshift-keeper " \
        "$prefix/lib/systemd/system/nightshift-keeper.service" &&
    grep "^ExecStart=$real/libexec/nightshift/nightshift-agent " "$prefix/lib/systemd/system/nightshift-agent.service"'

test_expect 'the words of Slurm lead to the program and are not in bin' '
    for word in sacct sbatch scancel sinfo squeue srun; do
        [ "$(readlink "$prefix/libexec/nightshift/slurm/$word")" = "$real/bin/nightshift" ] &&
        ! [ -e "$prefix/bin/$word" ] || exit 1
    done'

test_expect 'the example settings are taken' '
    for file in nightshift demo; do
        nightshiftd --config "$prefix/share/doc/nightshift/examples/$file.yaml" --print-config || exit 1
    done'

if command -v systemd-analyze >/dev/null; then
    # Their programs are not at their places on this machine; nothing else may be wrong.
    test_expect 'systemd finds no fault in the units' '
        systemd-analyze verify --man=no "$prefix"/lib/systemd/system/*.service >out 2>&1
        ! grep -v "is not executable: No such file" out'
else
    test_skip 'systemd finds no fault in the units' 'systemd is not installed'
fi

test_done
