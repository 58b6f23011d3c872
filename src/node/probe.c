#include "node/probe.h"

#include <stdio.h>
#include <string.h>

static int simulate(const struct node_want *want, struct node_facts *f, struct err *e)
{
    struct gpu_sim sim = want->simulated;
    sim.model = sim.model ? sim.model : "SIM-GPU";
    sim.mem_mib = sim.mem_mib ? sim.mem_mib : 24u << 10;
    f->simulated = true;
    f->fault = NVML_NONE;
    return gpu_list_simulate(&sim, f->name, &f->gpus, e);
}

/* What is wrong with the GPUs does not keep the machine from running jobs without them. */
static void read_gpus(const struct node_want *want, struct node_facts *f)
{
    struct err why = { 0 };
    AUTO(nvml_close_p) struct nvml *n = nvml_open(want->nvml_path, &f->fault, &why);
    if (!n) {
        if (f->fault != NVML_NO_LIBRARY)
            f->gpu_trouble = why;
        return;
    }
    snprintf(f->driver, sizeof f->driver, "%s", nvml_driver_version(n));
    if (gpu_list_read(n, &f->gpus, &why) < 0) {
        f->fault = NVML_OTHER;
        f->gpu_trouble = why;
    } else if (f->gpus.n_broken) {
        f->gpu_trouble = f->gpus.broken;
    }
}

static bool name_is_good(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");
    return n > 0 && n < sizeof(((struct node_facts *)0)->name) && !name[n];
}

int node_probe(const struct node_want *want, struct node_facts *out, struct err *e)
{
    AUTO(free_p) struct node_facts *f = xcalloc(1, sizeof *f); /* too large for small stacks */
    if (machine_read(want->root ? want->root : "", &f->machine, e) < 0)
        return -1;
    const char *name = want->name ? want->name : f->machine.host;
    if (!name_is_good(name)) {
        err_set(e, ERR_INVALID, "'%.80s' is not a name for a machine", name);
        return err_hint(e, "use at most 64 letters, digits, '.', '-' and '_'");
    }
    snprintf(f->name, sizeof f->name, "%s", name);
    f->cpu_milli = want->cpu_milli ? want->cpu_milli : f->machine.cpu_milli;
    f->mem_mib = want->mem_mib ? want->mem_mib : f->machine.mem_mib;
    if (want->simulated.count && simulate(want, f, e) < 0)
        return -1;
    if (!want->simulated.count && !want->no_gpus)
        read_gpus(want, f);
    *out = *f;
    return 0;
}
