/* replay - runs a fuzz target over its saved inputs, without a fuzzer: each file is one TAP
 * case. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay_file(const char *path, int number)
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
    LLVMFuzzerTestOneInput(data, size);
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
    int n = argc == 2 ? scandir(argv[1], &names, visible, alphasort) : -1;
    if (n < 0) {
        fprintf(stderr, "usage: replay CORPUS_FOLDER\n");
        return 2;
    }
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", argv[1], names[i]->d_name);
        replay_file(path, i + 1);
        free(names[i]);
    }
    free(names);
    printf("1..%d\n", n);
    return n > 0 ? 0 : 1; /* an empty corpus tests nothing and must not look like success */
}
