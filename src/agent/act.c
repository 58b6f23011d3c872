#include "agent/act.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "node/gpu_process.h"
#include "node/instance.h"
#include "sys/file.h"

#define PAUSED_MAX REPORT_TASKS_MAX

struct act {
    struct act_places at;
    bool v2;
    struct report_ack ack[REPORT_ACKS_MAX]; /* the oldest first */
    uint32_t acks;
    char paused[PAUSED_MAX][40];
    uint32_t n;
};

/* Which file says it, and how: of v1, of v2. */
static const struct {
    const char *name;
    struct {
        const char *controller, *file, *text; /* text NULL: the weight */
    } in[2];
} acts[] = {
    [ACT_PAUSE] = { "pause",
                    { { "freezer/", "freezer.state", "FROZEN" }, { "", "cgroup.freeze", "1" } } },
    [ACT_RESUME] = { "resume",
                     { { "freezer/", "freezer.state", "THAWED" }, { "", "cgroup.freeze", "0" } } },
    [ACT_THROTTLE] = { "throttle", { { "cpu/", "cpu.shares", NULL }, { "", "cpu.weight", NULL } } },
};
_Static_assert(ARRAY_LEN(acts) == ACT_COUNT, "an act was added without its row");

struct command {
    uint64_t id, weight;
    enum act_what what;
    char task[64];
};

/* ---- what is paused ---- */

static void read_paused(struct act *a)
{
    AUTO(buf_free) struct buf text = BUF(0);
    struct err ignored;
    struct str rest, line;
    if (file_read(a->at.file, 64u << 10, &text, &ignored) < 0)
        return;
    for (rest = buf_str(&text); str_next_line(&rest, &line) && a->n < PAUSED_MAX;)
        if (line.n && line.n < sizeof a->paused[0])
            snprintf(a->paused[a->n++], sizeof a->paused[0], "%.*s", STR_ARG(line));
}

static int write_paused(const struct act *a, struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(64u << 10);
    for (uint32_t i = 0; i < a->n; i++)
        buf_printf(&text, "%s\n", a->paused[i]);
    return file_write_private(a->at.file, buf_str(&text), e);
}

static uint32_t find_paused(const struct act *a, const char *task)
{
    uint32_t i = 0;
    while (i < a->n && strcmp(a->paused[i], task) != 0)
        i++;
    return i;
}

/* ---- the group ---- */

/* The folder of a task, opened as it is: its name has digits and dots only, and no link is followed. */
static int open_group(const struct act *a, const char *controller, const char *task)
{
    char path[600];
    struct instance in;
    if (!a->at.cgroup)
        (void)instance_read(a->at.state, &in);
    snprintf(path, sizeof path, "%s/%s%s", a->at.cgroup_root, controller,
             a->at.cgroup ? a->at.cgroup : in.cgroup);
    AUTO(file_close_p) int all = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return all < 0 ? -1 : openat(all, task, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool write_in(int folder, const char *file, const char *text)
{
    AUTO(file_close_p) int fd = openat(folder, file, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static bool stands_still(int folder, bool v2)
{
    char text[32] = "";
    AUTO(file_close_p)
    int fd = openat(folder, v2 ? "cgroup.freeze" : "freezer.state", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    return n > 0 && (v2 ? text[0] == '1' : text[0] == 'F');
}

/* ---- commands ---- */

static bool refuse(char out[static 160], const char *why)
{
    snprintf(out, 160, "%.159s", why);
    return false;
}

static bool may(const struct act *a, const struct command *c, bool held, int folder, bool *out_done,
                char out[static 160])
{
    bool ours = find_paused(a, c->task) < a->n;
    bool still = c->what != ACT_THROTTLE && stands_still(folder, a->v2);
    *out_done = false;
    if (c->what == ACT_RESUME && held)
        return refuse(out, "the owner holds the machine");
    if (c->what == ACT_PAUSE && still && !ours)
        return refuse(out, "it stands still already, and not by the agent");
    if (c->what == ACT_PAUSE && !ours && a->n == PAUSED_MAX)
        return refuse(out, "too many tasks are paused");
    if (c->what == ACT_RESUME && !ours && still)
        return refuse(out, "it was not the agent that paused it");
    *out_done = c->what == ACT_RESUME && !ours; /* it runs */
    return true;
}

/* What is paused is written down before it is, so that no restart forgets it. */
static bool note(struct act *a, const struct command *c, char out[static 160])
{
    uint32_t i = find_paused(a, c->task);
    struct err e;
    if (c->what == ACT_PAUSE && i == a->n)
        snprintf(a->paused[a->n++], sizeof a->paused[0], "%.39s", c->task);
    else if (c->what == ACT_RESUME && i < a->n)
        memmove(a->paused[i], a->paused[i + 1], (--a->n - i) * sizeof a->paused[0]);
    else
        return true;
    if (write_paused(a, &e) == 0)
        return true;
    if (c->what == ACT_PAUSE)
        a->n--;
    return refuse(out, e.msg);
}

static bool carry_out(struct act *a, const struct command *c, bool held, char out[static 160])
{
    const char *file = acts[c->what].in[a->v2].file, *text = acts[c->what].in[a->v2].text;
    char weight[24];
    bool done;
    AUTO(file_close_p)
    int folder = open_group(a, acts[c->what].in[a->v2].controller, c->task);
    if (folder < 0)
        return refuse(out, "there is no such task on this machine");
    if (!may(a, c, held, folder, &done, out))
        return false;
    /* 100 is what a group has that nobody changed: 1024 shares of v1 */
    snprintf(weight, sizeof weight, "%llu",
             (unsigned long long)(a->v2 ? c->weight : MAX(c->weight * 1024 / 100, UINT64_C(2))));
    if (c->what == ACT_PAUSE && !note(a, c, out))
        return false;
    if (!done && !write_in(folder, file, text ? text : weight)) {
        snprintf(out, 160, "%s: %s", file, strerror(errno));
        return false;
    }
    if (c->what == ACT_RESUME)
        (void)note(a, c, out); /* it runs: a file that still has it does no harm */
    snprintf(out, 160, "%s: done", acts[c->what].name);
    return true;
}

static bool read_command(const struct json *j, struct command *out, struct err *e)
{
    struct str what = { 0 }, task = { 0 };
    char path[96];
    *out = (struct command){ .weight = 100, .what = ACT_COUNT };
    if (json_need_u64(j, "id", UINT64_C(1) << 53, &out->id, e) < 0)
        return false;
    if (json_get_str(j, "what", 32, &what, e) < 0 || json_get_str(j, "task", 39, &task, e) < 0)
        return true; /* it is answered: refused */
    for (int i = 0; i < ACT_COUNT; i++)
        if (str_is(what, acts[i].name))
            out->what = (enum act_what)i;
    if (out->what == ACT_THROTTLE &&
        (json_need_u64(j, "weight", 10000, &out->weight, e) < 0 || out->weight == 0))
        out->what = ACT_COUNT;
    snprintf(path, sizeof path, "/nightshift/%.*s", STR_ARG(task));
    if (!gpu_process_task(str_of(path), out->task) || !str_is(task, out->task))
        out->task[0] = '\0';
    return true;
}

static void answer(struct act *a, const struct command *c, bool held)
{
    struct report_ack ack = { .id = c->id };
    if (c->what == ACT_COUNT)
        refuse(ack.text, "this agent does not know such a command");
    else if (!c->task[0])
        refuse(ack.text, "that is no task");
    else
        ack.done = carry_out(a, c, held, ack.text);
    if (a->acks == REPORT_ACKS_MAX)
        memmove(a->ack, a->ack + 1, --a->acks * sizeof a->ack[0]);
    a->ack[a->acks++] = ack;
}

void act_take(struct act *a, const struct json *commands, bool held)
{
    for (size_t i = 0; json_is_array(commands) && i < MIN(json_len(commands), REPORT_ACKS_MAX);
         i++) {
        struct command c;
        struct err e;
        uint32_t k = 0;
        if (!read_command(json_at(commands, i), &c, &e))
            continue;
        while (k < a->acks && a->ack[k].id != c.id)
            k++;
        if (k == a->acks) /* sent again it is done already */
            answer(a, &c, held);
    }
}

void act_put_acks(const struct act *a, struct report_sample *out)
{
    out->acks = a->acks;
    if (a->acks)
        memcpy(out->ack, a->ack, a->acks * sizeof a->ack[0]);
}

struct act *act_new(const struct act_places *p)
{
    struct act *a = xcalloc(1, sizeof *a);
    char path[600];
    a->at = *p;
    snprintf(path, sizeof path, "%s/cgroup.controllers", p->cgroup_root);
    a->v2 = access(path, R_OK) == 0;
    read_paused(a);
    return a;
}

struct act *act_free(struct act *a)
{
    free(a);
    return NULL;
}
