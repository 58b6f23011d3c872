#include "wire/audit.h"

#include <sodium.h>
#include <stdio.h>

#include "base/parse.h"

/* ---- words ---- */

static const struct {
    const char *name, *help;
} verbs[] = {
#define X(id, name, help) [AUDIT_##id] = { (name), (help) },
    AUDIT_VERBS(X)
#undef X
}, faults[] = {
#define X(id, name, help) [AUDIT_FAULT_##id] = { (name), (help) },
    AUDIT_FAULTS(X)
#undef X
};

const char *audit_verb_name(enum audit_verb v)
{
    return verbs[v].name;
}

const char *audit_fault_name(enum audit_fault f)
{
    return faults[f].name;
}

const char *audit_fault_help(enum audit_fault f)
{
    return faults[f].help;
}

void audit_print_reference(struct buf *out)
{
    buf_addz(out, "| what | |\n|---|---|\n");
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        buf_printf(out, "| `%s` | %s |\n", verbs[i].name, verbs[i].help);
}

/* ---- hashes ---- */

static void feed(crypto_generichash_blake2b_state *s, struct str text)
{
    char head[24];
    int n = snprintf(head, sizeof head, "%zu:", text.n);
    crypto_generichash_blake2b_update(s, (const unsigned char *)head, (unsigned long long)n);
    crypto_generichash_blake2b_update(s, (const unsigned char *)text.p, text.n);
    crypto_generichash_blake2b_update(s, (const unsigned char *)",", 1);
}

void audit_row_hash(const struct audit_hash *before, const struct audit_row *r,
                    struct audit_hash *out)
{
    crypto_generichash_blake2b_state s;
    char text[24];
    crypto_generichash_blake2b_init(&s, NULL, 0, sizeof out->b);
    crypto_generichash_blake2b_update(&s, before->b, sizeof before->b);
    snprintf(text, sizeof text, "%llu", (unsigned long long)r->number);
    feed(&s, str_of(text));
    snprintf(text, sizeof text, "%lld", (long long)r->t_ms);
    feed(&s, str_of(text));
#define X(name, max) feed(&s, r->name);
    AUDIT_TEXTS(X)
#undef X
    crypto_generichash_blake2b_final(&s, out->b, sizeof out->b);
}

bool audit_hash_eq(const struct audit_hash *a, const struct audit_hash *b)
{
    return memcmp(a->b, b->b, sizeof a->b) == 0;
}

static bool link_eq(const struct audit_link *a, const struct audit_link *b)
{
    return a->number == b->number && audit_hash_eq(&a->hash, &b->hash);
}

const char *audit_hash_format(const struct audit_hash *h, char out[static AUDIT_HASH_TEXT])
{
    return sodium_bin2hex(out, AUDIT_HASH_TEXT, h->b, sizeof h->b);
}

bool audit_hash_parse(struct str text, struct audit_hash *out)
{
    struct audit_hash h;
    size_t n;
    if (text.n != 2 * sizeof h.b ||
        sodium_hex2bin(h.b, sizeof h.b, text.p, text.n, NULL, &n, NULL) != 0 || n != sizeof h.b)
        return false;
    *out = h;
    return true;
}

const char *audit_link_format(const struct audit_link *l, char out[static AUDIT_LINK_TEXT])
{
    char hash[AUDIT_HASH_TEXT];
    snprintf(out, AUDIT_LINK_TEXT, "%llu %s", (unsigned long long)l->number,
             audit_hash_format(&l->hash, hash));
    return out;
}

bool audit_link_parse(struct str text, struct audit_link *out)
{
    struct str number, hash;
    struct audit_link l;
    struct err e;
    if (!str_cut(text, ' ', &number, &hash) || parse_u64(number, INT64_MAX, &l.number, &e) < 0 ||
        !audit_hash_parse(hash, &l.hash))
        return false;
    *out = l;
    return true;
}

/* ---- verifying ---- */

static bool broken(struct audit_chain *c, enum audit_fault why, uint64_t at)
{
    c->fault = why;
    c->fault_at = at;
    return false;
}

static void look_for_noted(struct audit_chain *c, const struct audit_link *l)
{
    if (c->has_noted && audit_hash_eq(&c->noted.hash, &l->hash) &&
        (c->noted.number == 0 || c->noted.number == l->number))
        c->found = true;
}

void audit_chain_begin(struct audit_chain *c, const struct audit_link *from,
                       const struct audit_link *noted)
{
    *c = (struct audit_chain){ .from = *from, .at = *from, .has_noted = noted != NULL };
    if (noted)
        c->noted = *noted;
    look_for_noted(c, from);
}

bool audit_chain_add(struct audit_chain *c, const struct audit_row *r, const struct audit_hash *h)
{
    struct audit_link next = { .number = r->number };
    if (c->fault)
        return false;
    if (r->number != c->at.number + 1)
        return broken(c, AUDIT_FAULT_GAP, c->at.number + 1);
    audit_row_hash(&c->at.hash, r, &next.hash);
    if (!audit_hash_eq(&next.hash, h))
        return broken(c, AUDIT_FAULT_HASH, r->number);
    if (str_is(r->what, audit_verb_name(AUDIT_AUDIT_CUT)) && !audit_link_parse(r->subject, &c->cut))
        return broken(c, AUDIT_FAULT_CUT, r->number);
    c->at = next;
    c->rows++;
    look_for_noted(c, &next);
    return true;
}

bool audit_chain_end(struct audit_chain *c, const struct audit_link *head)
{
    if (c->fault)
        return false;
    if (!link_eq(&c->at, head))
        return broken(c, AUDIT_FAULT_HEAD, c->at.number + 1);
    if (!link_eq(&c->cut, &c->from))
        return broken(c, AUDIT_FAULT_CUT, c->from.number + 1);
    if (c->has_noted && !c->found)
        return broken(c, AUDIT_FAULT_NOTED, c->noted.number ? c->noted.number : c->at.number);
    return true;
}
