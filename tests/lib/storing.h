/* storing - a store in a folder of its own, for tests: made empty, removed at the end. */
#ifndef NS_TESTS_LIB_STORING_H
#define NS_TESTS_LIB_STORING_H

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "store/store.h"
#include "tests/lib/test.h"

#define STORING_WAIT_MS 60000u

struct storing {
    char dir[64], path[96];
    struct loop *loop;
    struct store *store;
    struct arena arena;
    int done; /* callbacks */
};

static const struct store_scope storing_all = { .everything = true };

static inline void storing_begin_in(struct storing *t, const char *folder)
{
    *t = (struct storing){ .loop = loop_new() };
    snprintf(t->dir, sizeof t->dir, "%.32s/nightshift-store-XXXXXX", folder);
    CHECK(mkdtemp(t->dir) != NULL);
    snprintf(t->path, sizeof t->path, "%s/store.db", t->dir);
}

static inline void storing_begin(struct storing *t)
{
    storing_begin_in(t, "/tmp");
}

/* In memory where the machine has such a folder: for hundreds of starts. */
static inline void storing_begin_often(struct storing *t)
{
    storing_begin_in(t, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
}

static inline void storing_open(struct storing *t)
{
    struct err e = { 0 };
    t->store = store_open(t->loop, t->path, NULL, &e);
    CHECK_STR(e.msg, "");
    CHECK(t->store != NULL);
}

static inline void storing_reopen(struct storing *t)
{
    t->store = store_close(t->store);
    storing_open(t);
}

static inline void storing_end(struct storing *t)
{
    t->store = store_close(t->store);
    t->loop = loop_free(t->loop);
    arena_free(&t->arena);
    DIR *d = opendir(t->dir);
    for (struct dirent *f; d && (f = readdir(d));)
        unlinkat(dirfd(d), f->d_name, 0);
    if (d)
        closedir(d);
    rmdir(t->dir);
}

static inline void storing_count(void *ctx)
{
    ++*(int *)ctx;
}

/* Hands b over and waits until it is durable. */
static inline void storing_commit(struct storing *t, struct store_batch *b)
{
    struct err e = { 0 };
    int before = t->done;
    store_commit(t->store, b, storing_count, &t->done);
    CHECK(store_flush(t->store, STORING_WAIT_MS, &e) == 0);
    CHECK(t->done == before + 1);
}

static inline struct store_job storing_job(uint64_t id, const char *tenant, const char *user,
                                           const char *name, enum job_state state)
{
    return (struct store_job){
        .fixed = { .id = id,
                   .tenant = str_of(tenant),
                   .user = str_of(user),
                   .name = str_of(name),
                   .uid = 1000,
                   .submitted_ms = 5000 + (int64_t)id,
                   .replicas = 1,
                   .gpu_milli = 1000,
                   .spec = STR("{\"command\":[\"true\"]}") },
        .now = { .state = state, .priority = PRIO_NORMAL, .state_ms = 6000 + (int64_t)id },
    };
}

static inline void storing_add(struct store_batch *b, const struct store_job *j)
{
    store_add_job(b, &j->fixed, &j->now);
}

#endif
