/* make-trace - writes a small valid data folder for tests: make-trace openb|philly|swf|shockwave DIR SEED */
#include <stdio.h>
#include <sys/stat.h>

#include "base/parse.h"
#include "sys/file.h"
#include "tests/lib/gen_trace.h"

static int put(const char *dir, const char *name, const struct buf *text, struct err *e)
{
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", dir, name) >= sizeof path)
        return err_set(e, ERR_INVALID, "the path is too long");
    return file_write(path, buf_str(text), e);
}

static int put_openb(const char *dir, uint64_t seed, struct err *e)
{
    AUTO(gen_openb_free) struct gen_openb g;
    gen_openb(seed, &g);
    if (put(dir, "openb_node_list_gpu_node.csv", &g.nodes, e) < 0 ||
        put(dir, "openb_pod_list_default.csv", &g.pods, e) < 0 ||
        put(dir, "seq_default.txt", &g.seq, e) < 0 ||
        put(dir, "noderank_default.txt", &g.ranks, e) < 0)
        return -1;
    return put(dir, "published_results.csv", &g.published, e);
}

static int put_philly(const char *dir, uint64_t seed, struct err *e)
{
    AUTO(gen_philly_free) struct gen_philly g;
    gen_philly(seed, &g);
    if (put(dir, "philly_vc_nodes.csv", &g.vcs, e) < 0)
        return -1;
    return put(dir, "s2_window_jobs.csv", &g.jobs, e);
}

static int put_swf(const char *dir, uint64_t seed, struct err *e)
{
    AUTO(buf_free) struct buf text;
    gen_swf(seed, &text);
    return put(dir, "small.swf", &text, e);
}

static int put_shockwave(const char *dir, uint64_t seed, struct err *e)
{
    AUTO(buf_free) struct buf text;
    gen_shockwave(seed, &text);
    return put(dir, "tacc32_120jobs.csv", &text, e);
}

static const struct format {
    const char *name;
    int (*put)(const char *dir, uint64_t seed, struct err *e);
} formats[] = { { "openb", put_openb },
                { "philly", put_philly },
                { "swf", put_swf },
                { "shockwave", put_shockwave } };

int main(int argc, char **argv)
{
    struct err e = { 0 };
    uint64_t seed;
    const struct format *f = NULL;
    for (size_t i = 0; i < ARRAY_LEN(formats) && argc == 4; i++)
        if (str_is(str_of(argv[1]), formats[i].name))
            f = &formats[i];
    if (!f) {
        fprintf(stderr, "usage: make-trace openb|philly|swf|shockwave DIR SEED\n");
        return 2;
    }
    mkdir(argv[2], 0777); /* there already is as good; a real failure shows when writing */
    if (parse_u64(str_of(argv[3]), UINT64_MAX, &seed, &e) < 0 || f->put(argv[2], seed, &e) < 0) {
        fprintf(stderr, "make-trace: %s\n", e.msg);
        return err_info(e.code)->exit_code;
    }
    return 0;
}
