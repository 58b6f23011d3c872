#include "engine/sim/life.h"

#include <signal.h>
#include <stdio.h>

#include "base/parse.h"

#define WORD_MAX (INT64_C(1) << 40)

static const struct {
    const char *name, *help;
    int64_t dflt;
} words[] = {
#define X(id, name, dflt, help) { name, help, dflt },
    SIM_WORDS(X)
#undef X
};

const char *sim_word_name(enum sim_word w)
{
    return (size_t)w < ARRAY_LEN(words) ? words[w].name : "?";
}

const char *sim_word_help(enum sim_word w)
{
    return (size_t)w < ARRAY_LEN(words) ? words[w].help : "?";
}

/* ---- the script ---- */

static const char *value_of(const struct spec *s, const char *key)
{
    size_t n = strlen(key);
    for (uint32_t i = 0; i < s->n_env; i++)
        if (strncmp(s->env[i], key, n) == 0 && s->env[i][n] == '=')
            return s->env[i] + n + 1;
    return NULL;
}

/* The programs it knows. */
static int read_argv(struct life *l, const struct spec *s, struct err *e)
{
    const char *program = s->n_args ? s->argv[0] : "";
    if (s->observed.n) {
        l->word[SIM_RUN_MS] = -1;
        return 0;
    }
    const char *slash = strrchr(program, '/');
    program = slash ? slash + 1 : program;
    bool is_false = strcmp(program, "false") == 0;
    if (is_false || strcmp(program, "true") == 0) {
        l->word[SIM_RUN_MS] = 0;
        l->word[SIM_EXIT] = is_false;
    }
    if (strcmp(program, "sleep") == 0 && s->n_args > 1)
        return parse_duration_ms(str_of(s->argv[1]), &l->word[SIM_RUN_MS], e);
    return 0;
}

/* What is said in words wins over what the program would do. */
static int read_words(struct life *l, const struct spec *s, struct err *e)
{
    char key[64];
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        snprintf(key, sizeof key, "%s_%u", words[i].name, l->id.replica);
        const char *v = value_of(s, key);
        if (!v)
            v = value_of(s, words[i].name);
        if (v && parse_i64(str_of(v), -1, WORD_MAX, &l->word[i], e) < 0)
            return err_wrap(e, "simulated task: %s", words[i].name);
    }
    return 0;
}

static void copy_start(struct life *l, const struct engine_start *s)
{
    size_t n = 0;
    while (s->env && s->env[n])
        n++;
    l->env = arena_array(&l->arena, const char *, n + 1);
    for (size_t i = 0; i < n; i++)
        l->env[i] = arena_strndup(&l->arena, s->env[i], strlen(s->env[i]));
    l->home = arena_strndup(&l->arena, s->user.home.p, s->user.home.n);
    l->uid = s->user.uid;
    l->gid = s->user.gid;
    l->max_time_ms = s->max_time_ms;
    l->grace_ms = s->spec->grace_ms;
    l->freeze_signal = s->spec->freeze_signal;
    if (s->slots && s->task.replica < s->n_slots)
        l->slot = s->slots[s->task.replica];
}

struct life *life_new(const struct engine_start *s, const struct life_luck *luck, int64_t now_ms,
                      struct err *e)
{
    struct life *l = xcalloc(1, sizeof *l);
    *l = (struct life){ .id = s->task,
                        .seen_ms = now_ms,
                        .die_at_ran_ms = INT64_MAX,
                        .kill_ms = INT64_MAX,
                        .pause_ms = INT64_MAX };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        l->word[i] = words[i].dflt;
    if (read_argv(l, s->spec, e) < 0 || read_words(l, s->spec, e) < 0) {
        free(l);
        return NULL;
    }
    copy_start(l, s);
    l->begin_ms = now_ms + (l->word[SIM_START_MS] >= 0 ? l->word[SIM_START_MS] : luck->start_ms);
    if (luck->fails)
        l->word[SIM_START_FAILS] = 1;
    if (luck->lost && l->word[SIM_LOST_MS] < 0 && l->word[SIM_RUN_MS] > 0)
        l->word[SIM_LOST_MS] = (int64_t)(luck->lost_at * (double)l->word[SIM_RUN_MS]);
    return l;
}

void life_free(struct life *l)
{
    arena_free(&l->arena);
    free(l);
}

bool life_alive(const struct life *l)
{
    return l->state == LIFE_IS_RUNNING || l->state == LIFE_IS_PAUSED;
}

/* ---- what is due ---- */

static int64_t word_or_never(const struct life *l, enum sim_word w)
{
    return l->word[w] < 0 ? INT64_MAX : l->word[w];
}

/* In its own time: the first thing that will happen to it while it runs. */
static int64_t next_ran_ms(const struct life *l)
{
    int64_t at = MIN(word_or_never(l, SIM_RUN_MS), l->die_at_ran_ms);
    at = MIN(at, word_or_never(l, SIM_LOST_MS));
    at = MIN(at, word_or_never(l, SIM_OOM_MS));
    if (l->max_time_ms && !l->stopping)
        at = MIN(at, l->max_time_ms);
    return at;
}

int64_t life_next_ms(const struct life *l)
{
    if (l->state == LIFE_IS_OVER)
        return INT64_MAX;
    if (l->lost || l->resumed)
        return l->seen_ms;
    if (l->state == LIFE_IS_STARTING)
        return l->stopping ? l->seen_ms : l->begin_ms;
    int64_t at = MIN(l->kill_ms, l->pause_ms);
    if (l->state == LIFE_IS_PAUSED)
        return at;
    int64_t ran = next_ran_ms(l);
    int64_t left = MAX(ran - l->ran_ms, INT64_C(0));
    return ran == INT64_MAX ? at : MIN(at, l->seen_ms + left);
}

void life_seen(struct life *l, int64_t now_ms)
{
    int64_t more = MAX(now_ms - l->seen_ms, INT64_C(0));
    l->ran_ms += l->state == LIFE_IS_RUNNING ? more : 0;
    l->seen_ms += more;
}

/* ---- how it ends ---- */

static enum life_step end(struct life *l, struct life_end how)
{
    l->state = LIFE_IS_OVER;
    l->ended_ms = l->seen_ms;
    l->end = how;
    if (l->stopping && how.why == END_EXITED)
        l->end.why = l->stop_why;
    return LIFE_ENDED;
}

static enum life_step begin(struct life *l)
{
    if (l->stopping)
        return end(l, (struct life_end){ .signal = SIGKILL, .why = l->stop_why });
    if (l->word[SIM_START_FAILS])
        return LIFE_FAILED;
    l->state = LIFE_IS_RUNNING;
    return LIFE_BEGAN;
}

/* It runs, and its own time has come to something. */
static enum life_step run_on(struct life *l)
{
    struct life_end by_itself = { .code = l->word[SIM_SIGNAL] ? 0 : (int)l->word[SIM_EXIT],
                                  .signal = (int)l->word[SIM_SIGNAL] };
    if (l->ran_ms >= word_or_never(l, SIM_LOST_MS))
        return end(l, (struct life_end){ .signal = SIGKILL, .why = END_LOST });
    if (l->ran_ms >= l->die_at_ran_ms)
        return end(l, l->die);
    if (l->ran_ms >= word_or_never(l, SIM_OOM_MS))
        return end(l, (struct life_end){ .signal = SIGKILL, .why = END_MEMORY });
    if (l->ran_ms >= word_or_never(l, SIM_RUN_MS))
        return end(l, by_itself);
    if (l->max_time_ms && l->ran_ms >= l->max_time_ms && !l->stopping)
        life_stop(l, l->seen_ms, l->grace_ms, END_TIME_LIMIT);
    return LIFE_NOTHING;
}

enum life_step life_step(struct life *l, int64_t now_ms)
{
    life_seen(l, now_ms);
    if (l->state == LIFE_IS_OVER)
        return LIFE_NOTHING;
    if (l->lost)
        return end(l, (struct life_end){ .signal = SIGKILL, .why = END_LOST });
    if (l->state == LIFE_IS_STARTING)
        return l->stopping || now_ms >= l->begin_ms ? begin(l) : LIFE_NOTHING;
    if (l->resumed) {
        l->resumed = false;
        return LIFE_RESUMED;
    }
    if (now_ms >= l->kill_ms)
        return end(l, (struct life_end){ .signal = SIGKILL });
    if (now_ms >= l->pause_ms) {
        l->pause_ms = INT64_MAX;
        l->state = LIFE_IS_PAUSED;
        return LIFE_PAUSED;
    }
    return l->state == LIFE_IS_RUNNING ? run_on(l) : LIFE_NOTHING;
}

/* ---- what is done to it ---- */

static void die_after(struct life *l, int64_t ms, struct life_end how)
{
    if (l->ran_ms + ms >= l->die_at_ran_ms)
        return;
    l->die_at_ran_ms = l->ran_ms + ms;
    l->die = how;
}

static bool is_harmless(int signo)
{
    return signo == SIGCHLD || signo == SIGCONT || signo == SIGURG || signo == SIGWINCH;
}

void life_signal(struct life *l, int64_t now_ms, int signo)
{
    life_seen(l, now_ms);
    if (l->state == LIFE_IS_PAUSED)
        l->held_signal = signo;
    if (l->state != LIFE_IS_RUNNING || is_harmless(signo))
        return;
    struct life_end by_signal = { .signal = signo };
    struct life_end saved = { .code = (int)l->word[SIM_SAVE_EXIT] };
    if (signo == SIGKILL) {
        die_after(l, 0, by_signal);
    } else if (signo == l->freeze_signal && l->word[SIM_SAVE_MS] >= 0) {
        die_after(l, l->word[SIM_SAVE_MS], saved);
    } else if (signo == SIGTERM) {
        if (l->word[SIM_TERM_EXIT] >= 0)
            by_signal = (struct life_end){ .code = (int)l->word[SIM_TERM_EXIT] };
        if (l->word[SIM_TERM_MS] >= 0)
            die_after(l, l->word[SIM_TERM_MS], by_signal);
    } else {
        die_after(l, 0, by_signal);
    }
}

void life_stop(struct life *l, int64_t now_ms, int64_t grace_ms, enum task_end why)
{
    life_seen(l, now_ms);
    if (l->state == LIFE_IS_OVER)
        return;
    bool again = l->stopping;
    if (!again)
        l->stop_why = why;
    l->stopping = true;
    l->kill_ms = MIN(l->kill_ms, now_ms + grace_ms);
    life_resume(l, now_ms); /* it could not hear the signal */
    if (grace_ms > 0 && !again)
        life_signal(l, now_ms, SIGTERM);
}

void life_pause(struct life *l, int64_t now_ms)
{
    life_seen(l, now_ms);
    if (l->state == LIFE_IS_RUNNING && !l->stopping)
        l->pause_ms = MIN(l->pause_ms, now_ms + l->word[SIM_PAUSE_MS]);
}

void life_resume(struct life *l, int64_t now_ms)
{
    life_seen(l, now_ms);
    l->pause_ms = INT64_MAX;
    if (l->state != LIFE_IS_PAUSED)
        return;
    l->state = LIFE_IS_RUNNING;
    l->resumed = true;
    int held = l->held_signal;
    l->held_signal = 0;
    if (held)
        life_signal(l, now_ms, held);
}

void life_lose(struct life *l, int64_t now_ms)
{
    life_seen(l, now_ms);
    l->lost = l->state != LIFE_IS_OVER;
}
