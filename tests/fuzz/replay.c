/* replay - runs a fuzz target over its saved inputs, without a fuzzer: each file is one TAP
 * case.  One program has all targets: replay TARGET CORPUS_FOLDER. */
#include "tests/fuzz/target.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Filled by constructors, which cannot be handed anything. */
static struct {
    const char *file;
    fuzz_target *target;
} joined[128];
static size_t joined_n;

void replay_join(const char *file, fuzz_target *target)
{
    if (joined_n == sizeof joined / sizeof joined[0])
        abort();
    const char *slash = strrchr(file, '/');
    joined[joined_n].file = slash ? slash + 1 : file;
    joined[joined_n++].target = target;
}

/* "zone_fuzz.c" is called zone. */
static fuzz_target *find(const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < joined_n; i++)
        if (strncmp(joined[i].file, name, n) == 0 && strcmp(joined[i].file + n, "_fuzz.c") == 0)
            return joined[i].target;
    return NULL;
}

static void replay_file(fuzz_target *target, const char *path, int number)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (!f || fstat(fileno(f), &st) < 0) {
        printf("not ok %d - %s cannot be read\n", number, path);
        exit(1);
    }
    /* Exactly as large as the input, so that a sanitizer sees the first byte read past its end. */
    size_t size = (size_t)st.st_size;
    uint8_t *data = malloc(size ? size : 1);
    if (!data || fread(data, 1, size, f) != size)
        abort();
    fclose(f);
    printf("# %s\n", path);
    fflush(stdout); /* a target reports by abort(), which would swallow the name */
    target(data, size);
    printf("ok %d - %s\n", number, path);
    free(data);
}

static int visible(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

int main(int argc, char **argv)
{
    struct dirent **names;
    fuzz_target *target = argc == 3 ? find(argv[1]) : NULL;
    int n = target ? scandir(argv[2], &names, visible, alphasort) : -1;
    if (n < 0) {
        fprintf(stderr, "usage: fuzz_replay TARGET CORPUS_FOLDER\n");
        return 2;
    }
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", argv[2], names[i]->d_name);
        replay_file(target, path, i + 1);
        free(names[i]);
    }
    free(names);
    printf("1..%d\n", n);
    return n > 0 ? 0 : 1; /* an empty corpus tests nothing and must not look like success */
}
