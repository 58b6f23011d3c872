/* Programs that do part of the work: are they here, and new enough? */
#include <stdio.h>

#include "doctor/checks.h"
#include "doctor/look.h"

/* The oldest that Nightshift is tested with: Debian 12's. */
#define CRUN_MAJOR 1
#define CRUN_MINOR 8
/* Before it, the vDSO of newer kernels breaks a dump. */
#define CRIU_MAJOR 4
#define CRIU_MINOR 1

static const char *const version_args[] = { "--version", NULL };

static bool has_program(const struct doctor_in *in, const char *name)
{
    char path[LOOK_PATH];
    return look_program(in, name, path);
}

/* Those of `names` (ends with NULL) that are missing, with commas. */
static bool list_missing(const struct doctor_in *in, const char *const *names, struct buf *out)
{
    for (; *names; names++)
        if (!has_program(in, *names))
            buf_printf(out, "%s%s", out->n ? ", " : "", *names);
    return out->n > 0;
}

void check_crun(const struct doctor_in *in, struct doctor_result *r)
{
    AUTO(buf_free) struct buf text = BUF(0);
    char path[LOOK_PATH];
    struct look_version v;
    bool found = look_program(in, "crun", path);
    if (look_plain(in)) {
        say_skip(r, "jobs are ordinary processes here");
        return;
    }
    if (!found) {
        say_bad(r, "crun is missing: no job can be put into a container");
        say_fix(r, "apt install crun");
        return;
    }
    if (!look_output(path, version_args, &text) || !look_find_version(buf_str(&text), &v)) {
        say_bad(r, "%s --version does not answer", path);
        say_fix(r, "apt install --reinstall crun");
        return;
    }
    if (!look_older(&v, CRUN_MAJOR, CRUN_MINOR)) {
        say_good(r, "%s, %s", v.text, path);
        return;
    }
    say_bad(r, "%s is older than %u.%u, the oldest that Nightshift is tested with", v.text,
            CRUN_MAJOR, CRUN_MINOR);
    say_fix(r, "Debian 12 and Ubuntu 24.04 have a newer one; elsewhere put the program of "
               "https://github.com/containers/crun/releases into /usr/local/bin/crun");
}

/* crun's own list of what it was built with. */
static bool crun_knows_criu(const struct doctor_in *in)
{
    AUTO(buf_free) struct buf text = BUF(0);
    char path[LOOK_PATH];
    return look_program(in, "crun", path) && look_output(path, version_args, &text) &&
           strstr(text.p ? text.p : "", "+CRIU");
}

void check_criu(const struct doctor_in *in, struct doctor_result *r)
{
    AUTO(buf_free) struct buf text = BUF(0);
    char path[LOOK_PATH];
    struct look_version v;
    if (!look_program(in, "criu", path)) {
        say_skip(r, "criu is missing: jobs cannot be saved to disk, all else works");
        say_fix(r, "apt install criu (Debian 13: 4.1; Debian 12 has none new enough)");
        return;
    }
    if (!look_output(path, version_args, &text) || !look_find_version(buf_str(&text), &v)) {
        say_skip(r, "%s --version does not answer: jobs cannot be saved to disk", path);
        say_fix(r, "apt install --reinstall criu");
        return;
    }
    if (look_older(&v, CRIU_MAJOR, CRIU_MINOR)) {
        say_skip(r,
                 "%s is older than %u.%u and fails on newer kernels: jobs cannot be saved to disk",
                 v.text, CRIU_MAJOR, CRIU_MINOR);
        say_fix(r, "criu 4.1 or newer: Debian 13, Ubuntu 25.04");
        return;
    }
    if (!look_plain(in) && !crun_knows_criu(in)) {
        say_skip(r, "%s, but this crun was built without it: jobs cannot be saved to disk", v.text);
        say_fix(r, "a crun whose --version lists +CRIU: Debian 13's 1.21");
        return;
    }
    say_good(r, "%s, %s", v.text, path);
}

void check_images(const struct doctor_in *in, struct doctor_result *r)
{
    static const char *const names[] = { "skopeo", "umoci", NULL };
    AUTO(buf_free) struct buf missing = BUF(100);
    if (!list_missing(in, names, &missing)) {
        say_good(r, "skopeo and umoci are here");
        return;
    }
    say_skip(r, "missing: %s; jobs can use the machine's own system (image: host) only", missing.p);
    say_fix(r, "apt install skopeo umoci");
}

/* true when tenants get no networks of their own, which was said. */
static bool no_networks(const struct doctor_in *in, struct doctor_result *r)
{
    if (!in->network)
        say_skip(r, "tenants share the machine's network (network: no)");
    else if (!look_as_root(in) || look_plain(in))
        say_skip(r, "without root, jobs are on the machine's own network");
    else
        return false;
    return true;
}

void check_network(const struct doctor_in *in, struct doctor_result *r)
{
    if (no_networks(in, r))
        return;
    if (!has_program(in, "nft")) {
        say_bad(r, "nft is missing: tenants cannot be kept apart on the network");
        say_fix(r, "apt install nftables; until then jobs run with --network none only");
    } else if (in->networks && strcmp(in->networks, "no") == 0) {
        say_bad(r, "the keeper could not make networks: jobs that need one wait or are refused");
        say_fix(r,
                "see net.missing in its log (journalctl -u nightshift-keeper); it tries again by "
                "itself, at once after systemctl restart nightshift-keeper");
    } else if (in->networks && strcmp(in->networks, "lost") == 0) {
        say_bad(r, "the firewall between tenants was taken away, and cannot be loaded again: jobs "
                   "have no network until it is");
        say_fix(r,
                "see net.rules_lost in the keeper's log (journalctl -u nightshift-keeper), and try "
                "by hand: nft -c -f RUN/net/rules.nft; the keeper tries once a second");
    } else if (in->networks && strncmp(in->networks, "yes ", 4) == 0) {
        say_good(
            r,
            "the firewall between tenants is there; somebody took it away %s times, and it was "
            "loaded again",
            in->networks + 4);
        say_fix(r, "look for what flushes the rules of nftables here: another firewall, a script "
                   "that begins with `flush ruleset`");
    } else if (!has_program(in, "ip")) {
        say_skip(r,
                 "ip is missing: nothing of Nightshift needs it, whoever looks for a fault does");
        say_fix(r, "apt install iproute2");
    } else {
        say_good(r, "nft and ip are here");
    }
}

void check_cni_plugins(const struct doctor_in *in, struct doctor_result *r)
{
    static const char *const folders[] = { "/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni" };
    static const char *const plugins[] = { "bridge", "host-local" };
    AUTO(buf_free) struct buf missing = BUF(100);
    char path[128];
    if (no_networks(in, r))
        return;
    for (size_t p = 0; p < ARRAY_LEN(plugins); p++) {
        bool found = false;
        for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
            snprintf(path, sizeof path, "%s/%s", folders[i], plugins[p]);
            found = found || look_exists(in, path);
        }
        if (!found)
            buf_printf(&missing, "%s%s", missing.n ? ", " : "", plugins[p]);
    }
    if (missing.n == 0) {
        say_good(r, "bridge and host-local are here");
        return;
    }
    say_bad(r, "missing: %s; tenants get no network of their own", missing.p);
    say_fix(
        r, "apt install containernetworking-plugins; until then jobs run with --network none only");
}

void check_scratch(const struct doctor_in *in, struct doctor_result *r)
{
    if (!look_as_root(in)) {
        say_skip(r, "without root, /tmp of a job is not bounded");
    } else if (has_program(in, "mkfs.ext4")) {
        say_good(r, "mkfs.ext4 is here");
    } else {
        say_skip(r, "mkfs.ext4 is missing: /tmp of a job is bounded only where the file system has "
                    "project quotas");
        say_fix(r, "apt install e2fsprogs");
    }
}

void check_own_programs(const struct doctor_in *in, struct doctor_result *r)
{
    static const char *const names[] = { "nightshift-keeper", "nightshift-init" };
    char path[LOOK_PATH];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof path, "%s/%s", in->libexec, names[i]);
        if (look_exists(in, path))
            continue;
        say_bad(r, "there is no %s, without which no job starts", path);
        say_fix(r, "install Nightshift anew (make install), or name the folder: --libexec DIR");
        return;
    }
    say_good(r, "nightshift-keeper and nightshift-init are in %s", in->libexec);
}
