/* doctor - what is wrong with this machine, and how to put it right: a table of checks.
 *
 * Each check looks at one thing and says what it found, whether that is good, and the way out: a
 * package, a command, a setting.  Nothing is changed and nothing is asked over the network; a
 * socket that somebody serves is looked up in /proc and never connected to.
 * A check sees the machine through struct doctor_in alone, so a test can make each of them fail
 * with a folder that stands for "/".
 *
 * doctor_look asks the NVIDIA driver and a file system, and both can hang in the kernel: a
 * program that must go on runs all this in a child process.  Otherwise it takes under a second.
 */
#ifndef NS_DOCTOR_DOCTOR_H
#define NS_DOCTOR_DOCTOR_H

#include "base/json.h"
#include "node/gpu.h"
#include "node/machine.h"

enum doctor_verdict {
    DOCTOR_SKIP, /* does not matter here, or only something optional is missing */
    DOCTOR_GOOD,
    DOCTOR_BAD
};

struct doctor_result {
    enum doctor_verdict verdict;
    char found[400];
    char fix[400]; /* may be empty */
};

struct doctor_disk {
    uint64_t bytes, free_bytes; /* free: for those who are not root */
    uint64_t files, free_files; /* 0 and 0 where the file system does not count */
    bool known;
};

/* What only a system call or the driver can tell. */
struct doctor_facts {
    uint32_t uid;
    int64_t now_ms;
    struct machine machine;
    struct doctor_disk disk; /* where the state folder is, or will be */
    enum nvml_fault gpu_fault;
    struct err gpu_trouble; /* unless gpu_fault is NVML_NONE */
    struct gpu_list gpus;   /* empty when the driver does not work */
    char driver[96];
};

/* How the API server would be spoken to, as the settings have it. */
struct doctor_kube {
    const char *source, *server; /* of the kubeconfig, when it could be read */
    struct err trouble;          /* when it could not; code 0: it could */
    bool insecure;               /* any certificate will do */
};

/* Paths are those of the settings; `root` is put before each of them. */
struct doctor_in {
    const char *root;           /* "": the real one */
    const char *path;           /* where programs are looked for first, as in $PATH */
    const char *program;        /* our own, as a file that is as old as the build */
    const char *state, *run;    /* folders */
    const char *libexec;        /* folder of nightshift-keeper and nightshift-init */
    const char *listen;         /* "127.0.0.1:7433"; "none" */
    const char *tls_cert;       /* NULL: no TLS */
    const char *tls_key;        /* NULL: no TLS */
    const char *nvml;           /* not below root; NULL: searched */
    const char *containment;    /* "auto", "root", "rootless", "plain" */
    const char *keeper_mode;    /* as the daemon that asks has heard it; NULL: no daemon asks */
    const char *logs_kept;      /* bytes, as the daemon that asks has counted them; or NULL */
    const char *clock;          /* "ok", or "1.1d ahead", from that daemon; or NULL */
    const char *audit;          /* "ok ROWS" or "row N: WHY", from that daemon; or NULL */
    const char *store_damage;   /* what of the store is, from that daemon; "": nothing; or NULL */
    const char *engine_trouble; /* why it takes no work, from that daemon; "": it does; or NULL */
    const char *keeper_silent; /* that it does not answer, from that daemon; "": it does; or NULL */
    /* Can the keeper make them, from that daemon: "yes", "yes N" (the firewall between them was taken
     * away by somebody N times, and is there again), "lost" (it is not) or "no"; or NULL. */
    const char *networks;
    const char *mail_server;  /* as the settings have it; NULL: none */
    const char *mail_trouble; /* why a letter was not taken, from that daemon; "": none; or NULL */
    const struct doctor_kube *kube; /* jobs run on Kubernetes; NULL: on this machine */
    uint64_t logs_max_bytes;        /* what they may be together */
    bool keeper_external;           /* somebody else than the daemon starts the keeper */
    bool network;                   /* tenants get networks of their own */
    bool simulated;                 /* GPUs are */
    uint32_t store_application;     /* the mark in the header of a store */
    uint32_t store_format;          /* the newest that this version knows */
    struct doctor_facts facts;
};

void doctor_look(struct doctor_in *in); /* fills in->facts */

typedef void doctor_fn(const struct doctor_in *in, struct doctor_result *out);

/* Where jobs have to run for a check to matter. */
enum doctor_where {
    DOCTOR_ANYWHERE,
    DOCTOR_HERE, /* on this machine */
    DOCTOR_KUBE
};

struct doctor_check {
    const char *name;
    enum doctor_where where;
    doctor_fn *fn;
    const char *looks_at;
    const char *matters; /* what does not work when it fails */
};
extern const struct doctor_check doctor_checks[];
extern const size_t doctor_checks_n;

/* Runs all of them; out has doctor_checks_n places.  Returns how many found something bad. */
size_t doctor_run(const struct doctor_in *in, struct doctor_result *out);

/* {"checks":[{"name","ok":true|false|null,"found","fix"}]} */
void doctor_print_json(const struct doctor_result *r, struct json_out *w);
void doctor_print_text(const struct doctor_result *r, struct buf *out);
void doctor_print_reference(struct buf *out); /* Markdown: every check */

#endif
