#include "keeper/driver.h"

#define CDI_KIND "nvidia.com/gpu"

const char *const driver_hooks[] = { "prestart", "createRuntime", "createContainer", NULL };

/* The specs name GPUs by UUID or by index, as the toolkit was told. */
static const char *name_of(const struct cdi *specs, const struct start_gpu *g, struct arena *a)
{
    const char *names[] = {
        arena_printf(a, CDI_KIND "=%s", g->uuid),
        arena_printf(a, CDI_KIND "=%u", g->index),
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (cdi_has(specs, names[i]))
            return names[i];
    return NULL;
}

static int no_spec(const struct cdi *specs, const struct start *s, const char *uuid, struct err *e)
{
    const struct err *left_out = cdi_problem(specs, 0);
    err_set(e, ERR_UNAVAILABLE, "image '%.80s' would find no driver for GPU %.40s: %.100s",
            s->image, uuid, left_out ? left_out->msg : "no CDI spec of this machine names it");
    return err_hint(e, "let NVIDIA's container toolkit write one (nvidia-ctk cdi generate "
                       "--output=/etc/cdi/nvidia.yaml), or use image: host");
}

int driver_find(const struct env *env, const struct start *s, struct arena *a,
                struct cdi **out_specs, struct cdi_edits *out, struct err *e)
{
    *out_specs = NULL;
    *out = (struct cdi_edits){ 0 };
    if (s->n_gpus == 0 || env->node.simulated || strcmp(s->image, "host") == 0)
        return 0;
    AUTO(cdi_close_p) struct cdi *specs = cdi_open(env->cdi ? &env->cdi : NULL, env->cdi ? 1 : 0);
    const char **names = arena_array(a, const char *, s->n_gpus);
    for (uint32_t i = 0; i < s->n_gpus; i++)
        if (!(names[i] = name_of(specs, &s->gpu[i], a)))
            return no_spec(specs, s, s->gpu[i].uuid, e);
    if (cdi_resolve(specs, names, s->n_gpus, a, out, e) < 0)
        return -1;
    *out_specs = TAKE(specs);
    return 0;
}
