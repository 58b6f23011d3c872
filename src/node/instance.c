#include "node/instance.h"

#include <stdio.h>
#include <sys/random.h>

#include "base/buf.h"
#include "sys/file.h"

#define ID_LENGTH 5
#define FILE_BYTES 4096

static void name_it(const char *id, struct instance *out)
{
    const char *dash = id[0] ? "-" : "", *low = id[0] ? "_" : "";
    snprintf(out->id, sizeof out->id, "%.5s", id);
    snprintf(out->cgroup, sizeof out->cgroup, "nightshift%s%.5s", dash, id);
    /* Of one length, and none begins with the older one: rules name bridges by how they begin. */
    snprintf(out->net_prefix, sizeof out->net_prefix, "%s%.5s", id[0] ? "nsi" : "nsb", id);
    snprintf(out->net_table, sizeof out->net_table, "nightshift%s%.5s", low, id);
}

static bool is_id(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!(s.p[i] >= 'a' && s.p[i] <= 'z') && !(s.p[i] >= '0' && s.p[i] <= '9'))
            return false;
    return s.n == ID_LENGTH;
}

static void path_of(const char *state, struct buf *out)
{
    buf_printf(out, "%s/instance", state);
}

static bool read_file(const char *state, bool of_this_folder, struct instance *out)
{
    AUTO(buf_free) struct buf path = BUF(FILE_BYTES);
    AUTO(buf_free) struct buf text = BUF(FILE_BYTES);
    struct err ignored;
    struct str id = { "", 0 }, where = { "", 0 };
    char copy[ID_LENGTH + 1] = "";
    path_of(state, &path);
    bool found = !path.full && file_read(path.p, FILE_BYTES, &text, &ignored) == 0 &&
                 str_cut(str_trim(buf_str(&text)), ' ', &id, &where) && is_id(id) &&
                 (!of_this_folder || str_is(where, state));
    if (found)
        memcpy(copy, id.p, id.n);
    name_it(copy, out);
    return found;
}

bool instance_read(const char *state, struct instance *out)
{
    return read_file(state, false, out);
}

int instance_open(const char *state, struct instance *out, struct err *e)
{
    static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    AUTO(buf_free) struct buf path = BUF(FILE_BYTES);
    AUTO(buf_free) struct buf text = BUF(FILE_BYTES);
    unsigned char drawn[ID_LENGTH];
    char id[ID_LENGTH + 1] = "";
    if (read_file(state, true, out))
        return 0;
    if (getrandom(drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn)
        return err_set(e, ERR_UNAVAILABLE, "the kernel gives no random numbers");
    for (size_t i = 0; i < ID_LENGTH; i++)
        id[i] = letters[drawn[i] % (sizeof letters - 1)];
    path_of(state, &path);
    buf_printf(&text, "%s %s\n", id, state);
    if (buf_check(&path, e) < 0 || buf_check(&text, e) < 0 ||
        file_write(path.p, buf_str(&text), e) < 0)
        return err_wrap(e, "naming this instance");
    name_it(id, out);
    return 0;
}
