#include "spec/work.h"

static struct str base_name(struct str path)
{
    for (struct str rest = path, part; str_cut(rest, '/', &part, &rest);)
        path = rest;
    return path;
}

struct str work_program(const struct spec *s)
{
    struct str first = s->n_args ? str_of(s->argv[0]) : STR(""), line, word;
    if (s->n_args >= 3 && strcmp(s->argv[1], "-c") == 0) {
        line = str_of(s->argv[2]);
        if (str_next_word(&line, &word))
            first = word;
    }
    return base_name(first);
}

/* FNV-1a, of what is left without numbers and what sets them off: "train" is "train-1" is "train_02.1". */
static uint32_t add_words(uint32_t hash, struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] && !strchr("0123456789-_.", s.p[i]))
            hash = (hash ^ (uint8_t)s.p[i]) * 16777619u;
    return (hash ^ 0xff) * 16777619u; /* no byte of text: where it ends */
}

/* "docker://registry:5000/lab/train:v7" -> "docker://registry:5000/lab/train": what is built anew under a new
 * tag is the same work still. */
static struct str without_tag(struct str image)
{
    struct str name = base_name(image), tag, head;
    if (str_cut(name, '@', &head, &tag) || str_cut(name, ':', &head, &tag))
        image.n -= name.n - head.n;
    return image;
}

uint32_t work_family(const struct spec *s)
{
    bool on_host = str_is(s->image, "host") || s->image.n == 0;
    uint32_t hash = add_words(2166136261u, s->name);
    hash = add_words(hash, on_host ? work_program(s) : without_tag(s->image));
    return hash ? hash : 1;
}
