/* What `nvidia-smi -L` prints, of the GPUs that this process sees: tests run it inside jobs.  Every
 * line says that it is the fake. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/nvml_abi.h"

/* A function of the library; without it there is nothing to do. */
static void find(void *library, const char *name, void *out)
{
    void *p = dlsym(library, name);
    if (!p) {
        fprintf(stderr, "fake-nvidia-smi: no %s in libnvidia-ml.so.1\n", name);
        exit(12);
    }
    memcpy(out, &p, sizeof p);
}

int main(void)
{
    int (*init)(void), (*count)(unsigned *), (*handle)(unsigned, void **);
    int (*uuid)(void *, char *, unsigned), (*name)(void *, char *, unsigned);
    int (*memory)(void *, struct nvml_abi_memory *);
    unsigned n = 0;
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "fake-nvidia-smi: %s\n", dlerror());
        return 12;
    }
    find(library, "nvmlInit_v2", &init);
    find(library, "nvmlDeviceGetCount_v2", &count);
    find(library, "nvmlDeviceGetHandleByIndex_v2", &handle);
    find(library, "nvmlDeviceGetUUID", &uuid);
    find(library, "nvmlDeviceGetName", &name);
    find(library, "nvmlDeviceGetMemoryInfo", &memory);
    int rc = init();
    if (rc == 0)
        rc = count(&n);
    if (rc == 0 && n == 0)
        printf("No devices were found (fake)\n");
    for (unsigned i = 0; rc == 0 && i < n; i++) {
        struct nvml_abi_memory m = { 0 };
        char id[96], model[96];
        void *h;
        rc = handle(i, &h);
        if (rc == 0 && (rc = uuid(h, id, sizeof id)) == 0 &&
            (rc = name(h, model, sizeof model)) == 0 && (rc = memory(h, &m)) == 0)
            printf("GPU %u: %s (UUID: %s) %llu MiB (fake)\n", i, model, id, m.total >> 20);
    }
    if (rc)
        fprintf(stderr, "fake-nvidia-smi: NVML error %d\n", rc);
    return rc == 0 ? 0 : rc & 0x7f ? rc & 0x7f : 1;
}
