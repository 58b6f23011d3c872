/* nightshift-top: the board on the whole screen, live.  A program of its own, because ncurses is. */
#include <errno.h>
#include <locale.h>
#include <ncurses.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/act.h"
#include "cli/board.h"
#include "cli/field.h"
#include "sys/clock.h"
#include "sys/term.h"

#define REFRESH_MS 2000

struct top {
    struct cli *c;
    struct json_doc *nodes;
    struct jobs jobs;
    struct arena arena;
    struct board board;
    enum board_sort sort;
    size_t at;      /* line that is chosen */
    size_t scroll;  /* first line that is shown */
    uint64_t job;   /* that is chosen, 0: none */
    char said[320]; /* the last line */
    bool asks;      /* "cancel job …?" waits for y */
};

static void fetch(struct top *t)
{
    struct err e = { 0 };
    struct jobs jobs = { 0 };
    struct json_doc *nodes = cli_get(t->c, "/v1/nodes", &e);
    if (!nodes || jobs_fetch(t->c, &(struct job_filter){ .limit = 2000 }, &jobs, &e) < 0) {
        json_free(nodes);
        snprintf(t->said, sizeof t->said, "%s", e.msg);
        return;
    }
    json_free(t->nodes);
    jobs_clear(&t->jobs);
    t->nodes = nodes;
    t->jobs = jobs;
}

static void rebuild(struct top *t)
{
    arena_reset(&t->arena);
    struct board_want w = { .nodes = t->nodes ? json_find(json_root(t->nodes), "nodes") : NULL,
                            .jobs = &t->jobs,
                            .sort = t->sort,
                            .columns = (unsigned)COLS,
                            .now_ms = cli_now_ms() };
    board_build(&w, &t->arena, &t->board);
    /* The choice stays with its job, wherever that has moved. */
    t->at = t->board.first_job;
    for (size_t i = t->board.first_job; i < t->board.n; i++)
        if (t->board.line[i].job == t->job)
            t->at = i;
    t->job = t->at < t->board.n ? t->board.line[t->at].job : 0;
}

static attr_t look_of(enum tint tint)
{
    switch (tint) {
    case TINT_NONE: return A_NORMAL;
    case TINT_GOOD: return (attr_t)COLOR_PAIR(1);
    case TINT_BAD: return (attr_t)COLOR_PAIR(2);
    case TINT_WAIT: return (attr_t)COLOR_PAIR(3);
    case TINT_COLD: return (attr_t)COLOR_PAIR(4);
    case TINT_FAINT: return A_DIM;
    case TINT_STRONG: return A_BOLD;
    }
    return A_NORMAL;
}

static void draw_title(const struct top *t)
{
    size_t running = 0, waiting = 0;
    for (size_t i = 0; i < t->jobs.n; i++) {
        running += t->jobs.v[i].state == JOB_IS_RUNNING;
        waiting += t->jobs.v[i].state == JOB_IS_QUEUED;
    }
    attr_on(A_BOLD, NULL);
    mvprintw(0, 0, "nightshift  %zu running, %zu waiting", running, waiting);
    attr_off(A_BOLD, NULL);
    printw("   by %s   ", board_sort_name(t->sort));
}

static void draw(struct top *t)
{
    int room = LINES - 2;
    erase();
    draw_title(t);
    if (t->at >= t->scroll + (size_t)MAX(room, 1))
        t->scroll = t->at - (size_t)MAX(room, 1) + 1;
    if (t->at < t->scroll)
        t->scroll = t->at;
    if (t->at < (size_t)MAX(room, 1))
        t->scroll = 0;
    for (int y = 0; y < room && t->scroll + (size_t)y < t->board.n; y++) {
        size_t i = t->scroll + (size_t)y;
        const struct board_line *l = &t->board.line[i];
        attr_t look = look_of(l->tint) | (l->job && i == t->at ? A_REVERSE : 0);
        attr_on(look, NULL);
        mvaddnstr(y + 1, 0, l->text, -1);
        attr_off(look, NULL);
    }
    mvaddnstr(LINES - 1, 0,
              t->said[0] ? t->said : "q quit  s sort  up/down choose  c cancel  space refresh",
              COLS);
    refresh();
}

static void cancel(struct top *t)
{
    struct err e = { 0 };
    AUTO(answer_free) struct answer a = { 0 };
    if (act_on_job(t->c, t->job, "cancel", STR("{}"), &a, &e) < 0)
        snprintf(t->said, sizeof t->said, "%s", e.msg);
    else
        snprintf(t->said, sizeof t->said, "cancelled job %llu", (unsigned long long)t->job);
    fetch(t);
}

static void move_choice(struct top *t, long by)
{
    long first = (long)t->board.first_job, last = (long)t->board.n - 1, to = (long)t->at + by;
    if (last < first)
        return;
    t->at = (size_t)(to < first ? first : MIN(to, last));
    t->job = t->board.line[t->at].job;
}

/* false: quit. */
static bool on_key(struct top *t, int key)
{
    if (t->asks) {
        t->asks = false;
        t->said[0] = '\0';
        if (key == 'y' || key == 'Y')
            cancel(t);
        return true;
    }
    t->said[0] = '\0';
    switch (key) {
    case 'q':
    case 'Q': return false;
    case 's': t->sort = (enum board_sort)((t->sort + 1) % SORT_COUNT); break;
    case 'c':
    case 'k':
        if (t->job) {
            t->asks = true;
            snprintf(t->said, sizeof t->said, "cancel job %llu? [y/N]", (unsigned long long)t->job);
        }
        break;
    case KEY_UP: move_choice(t, -1); break;
    case KEY_DOWN: move_choice(t, 1); break;
    case KEY_PPAGE: move_choice(t, -LINES / 2); break;
    case KEY_NPAGE: move_choice(t, LINES / 2); break;
    case ' ': fetch(t); break;
    default: break;
    }
    return true;
}

static void screen_begin(void)
{
    initscr();
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    curs_set(0);
    if (has_colors() && term_colour(STDOUT_FILENO)) {
        start_color();
        use_default_colors();
        init_pair(1, COLOR_GREEN, -1);
        init_pair(2, COLOR_RED, -1);
        init_pair(3, COLOR_YELLOW, -1);
        init_pair(4, COLOR_CYAN, -1);
    }
}

static void watch(struct top *t)
{
    int64_t next = 0;
    for (bool go = true; go;) {
        int64_t now = clock_mono_ns() / 1000000;
        if (now >= next) {
            fetch(t);
            next = now + REFRESH_MS;
        }
        rebuild(t);
        draw(t);
        struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
        (void)poll(&p, 1, (int)MAX(next - clock_mono_ns() / 1000000, INT64_C(0)));
        if (p.revents & (POLLHUP | POLLERR))
            break;
        for (int key; go && (key = getch()) != ERR;)
            go = on_key(t, key);
    }
}

int main(void)
{
    struct cli c = { .program = "nightshift" };
    struct top t = { .c = &c };
    struct err e = { 0 };
    const char *utf8 = setlocale(LC_ALL, "");
    if (!utf8 || !strstr(utf8, "UTF-8"))
        setlocale(LC_CTYPE, "C.UTF-8"); /* the bars are not ASCII */
    if (!term_is_tty(STDIN_FILENO) || !term_is_tty(STDOUT_FILENO)) {
        err_set(&e, ERR_INVALID, "top needs a terminal");
        err_hint(&e, "nightshift ps and nightshift nodes print the same once");
    } else {
        AUTO(json_free_p) struct json_doc *first = cli_get(&c, "/v1/server", &e);
        if (first) {
            screen_begin();
            watch(&t);
            endwin();
        }
    }
    if (e.code != ERR_NONE)
        cli_print_error(&c, &e);
    json_free(t.nodes);
    jobs_clear(&t.jobs);
    arena_free(&t.arena);
    client_free(c.client);
    arena_free(&c.arena);
    return err_info(e.code)->exit_code;
}
