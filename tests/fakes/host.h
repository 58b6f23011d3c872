/* A folder that stands for a machine, and the fake NVIDIA library looking at it: for tests only. */
#ifndef NS_TESTS_FAKES_HOST_H
#define NS_TESTS_FAKES_HOST_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "sys/file.h"
#include "tests/lib/test.h"

struct fake_host {
    char root[64];
};

static inline int fake_remove(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

/* For AUTO. */
static inline void fake_clear(struct fake_host *h)
{
    nftw(h->root, fake_remove, 16, FTW_DEPTH | FTW_PHYS);
    unsetenv("NIGHTSHIFT_FAKE_NVML");
    unsetenv("NIGHTSHIFT_FAKE_DEV");
}

/* Writes <root><path>, making the folders on the way. */
static inline void fake_file(const struct fake_host *h, const char *path, const char *text)
{
    char full[512];
    struct err e;
    snprintf(full, sizeof full, "%s%s", h->root, path);
    for (char *p = full + strlen(h->root) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = '\0';
        mkdir(full, 0755);
    }
    CHECK(file_write(full, (struct str){ text, strlen(text) }, &e) == 0);
}

static inline void fake_init(struct fake_host *h)
{
    char path[128];
    snprintf(h->root, sizeof h->root, "/tmp/nightshift-fake-XXXXXX");
    CHECK(mkdtemp(h->root) != NULL);
    snprintf(path, sizeof path, "%s/gpus", h->root);
    setenv("NIGHTSHIFT_FAKE_NVML", path, 1);
    snprintf(path, sizeof path, "%s/dev", h->root);
    setenv("NIGHTSHIFT_FAKE_DEV", path, 1);
    mkdir(path, 0755);
}

/* What the fake library says from now on; see nvml.c. */
static inline void fake_gpus(const struct fake_host *h, const char *text)
{
    fake_file(h, "/gpus", text);
}

/* The devices nvidia0 … are there for the first `n` GPUs. */
static inline void fake_devices(const struct fake_host *h, int n)
{
    for (int i = 0; i < n; i++) {
        char path[32];
        snprintf(path, sizeof path, "/dev/nvidia%d", i);
        fake_file(h, path, "");
    }
}

/* Of the build folder, beside the test that runs. */
static inline const char *fake_library(const char *name, char out[static 512])
{
    char self[400];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK(n > 0);
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    snprintf(out, 512, "%s/tests/fakes/%s", self, name);
    CHECK(access(out, R_OK) == 0); /* ninja makes it for the test runner */
    return out;
}

#endif
