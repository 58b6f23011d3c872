#include "daemon/check.h"

#include <stdio.h>

#include "daemon/engines.h"
#include "doctor/doctor.h"
#include "kube/config.h"
#include "store/migrate.h"

static struct kube_config *read_kube(const struct config *c, struct doctor_kube *out)
{
    struct kube_config *k = kube_config_load(c->kube_config, c->kube_context, &out->trouble);
    if (k)
        *out = (struct doctor_kube){ .source = k->source,
                                     .server = k->server,
                                     .insecure = k->insecure };
    return k;
}

int check_run(const struct config *c, const char *libexec)
{
    AUTO(buf_free) struct buf b = BUF(256u << 10);
    struct json_out w = { .b = &b };
    const char *path = getenv("PATH");
    size_t bad = 0;
    if (c->list) {
        doctor_print_reference(&b);
        return fputs(b.p, stdout) < 0;
    }
    bool is_kube = engines_is_kube(c);
    struct doctor_kube kube = { 0 };
    AUTO(kube_config_free_p) struct kube_config *server = is_kube ? read_kube(c, &kube) : NULL;
    struct doctor_in in = { .root = "",
                            .path = path ? path : "",
                            .program = "/proc/self/exe",
                            .state = c->state,
                            .run = c->run,
                            .libexec = libexec,
                            .listen = c->listen,
                            .tls_cert = c->tls_cert,
                            .tls_key = c->tls_key,
                            .nvml = c->nvml,
                            .containment = c->containment,
                            .keeper_mode = c->keeper_mode,
                            .keeper_external = strcmp(c->keeper, "external") == 0,
                            .network = c->network,
                            .logs_kept = c->logs_kept,
                            .audit = c->audit,
                            .store_damage = c->store_damage,
                            .clock = c->clock,
                            .engine_trouble = c->engine_trouble,
                            .networks = c->networks,
                            .keeper_silent = c->keeper_silent,
                            .mail_server = c->mail_server,
                            .mail_trouble = c->mail_trouble,
                            .kube = is_kube ? &kube : NULL,
                            .logs_max_bytes = c->keep_logs_bytes,
                            .simulated = c->simulate_gpus > 0,
                            .store_application = STORE_APPLICATION_ID,
                            .store_format = (uint32_t)migrations_n };
    AUTO(free_p) struct doctor_result *r = xcalloc(doctor_checks_n, sizeof *r);
    doctor_look(&in);
    bad = doctor_run(&in, r);
    if (c->json) {
        doctor_print_json(r, &w);
        buf_addc(&b, '\n');
    } else {
        doctor_print_text(r, &b);
        if (bad)
            buf_printf(&b, "\n%zu to fix\n", bad);
        else
            buf_addz(&b, "\nall is well\n");
    }
    return fputs(b.p, stdout) < 0 || bad > 0;
}
