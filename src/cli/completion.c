#include "cli/completion.h"

#include "cli/cli.h"

/* In single quotes of a shell. */
static void add_quoted(struct buf *b, const char *text)
{
    buf_addc(b, '\'');
    for (const char *p = text; *p; p++) {
        if (*p == '\'')
            buf_addz(b, "'\\''");
        else
            buf_addc(b, *p);
    }
    buf_addc(b, '\'');
}

#define POOL_VERBS "list show set open close regular rm"
#define RESERVATION_VERBS "list show rm"
#define TENANT_VERBS "list show members set rm add remove"
#define USER_VERBS "list show set disable enable rm own disown"

/* ---- bash ---- */

static const char *bash_words(enum word_kind k)
{
    switch (k) {
    case WORD_NONE: return "";
    case WORD_JOB:
        return "COMPREPLY=($(compgen -W \"$(nightshift ps -o name 2>/dev/null)\" -- \"$cur\"))";
    case WORD_NODE:
        return "COMPREPLY=($(compgen -W \"$(nightshift nodes -o name 2>/dev/null)\" -- \"$cur\"))";
    case WORD_POOL:
        return "COMPREPLY=($(compgen -W \"" POOL_VERBS
               " $(nightshift pools -o name 2>/dev/null)\" -- \"$cur\"))";
    case WORD_RESERVATION:
        return "COMPREPLY=($(compgen -W \"" RESERVATION_VERBS
               " $(nightshift reservations -o name 2>/dev/null)\" -- \"$cur\"))";
    case WORD_TENANT:
        return "COMPREPLY=($(compgen -W \"" TENANT_VERBS
               " $(nightshift tenants -o name 2>/dev/null)\" -- \"$cur\"))";
    case WORD_USER:
        return "COMPREPLY=($(compgen -W \"" USER_VERBS
               " $(nightshift users -o name 2>/dev/null)\" -- \"$cur\"))";
    case WORD_FILE: return "COMPREPLY=($(compgen -f -- \"$cur\"))";
    case WORD_PROGRAM: return "COMPREPLY=($(compgen -c -f -- \"$cur\"))";
    case WORD_COMMAND: return "COMPREPLY=($(compgen -W \"$commands\" -- \"$cur\"))";
    }
    return "";
}

static void bash_options(const struct command *c, struct buf *b)
{
    for (size_t i = 0; i < c->n_opts; i++) {
        buf_printf(b, "%s--%.*s", i ? " " : "", STR_ARG(opt_name(&c->opts[i])));
        if (opt_letter(&c->opts[i]))
            buf_printf(b, " -%c", opt_letter(&c->opts[i]));
    }
}

/* Values of options that have a list of words. */
static void bash_choices(const struct command *c, struct buf *b)
{
    for (size_t i = 0; i < c->n_opts; i++) {
        const struct opt *o = &c->opts[i];
        if (o->type != OPT_CHOICE)
            continue;
        buf_printf(b, "            %s:--%.*s", c->name, STR_ARG(opt_name(o)));
        if (opt_letter(o))
            buf_printf(b, "|%s:-%c", c->name, opt_letter(o));
        buf_addz(b, ") COMPREPLY=($(compgen -W \"");
        for (const char *p = o->value; *p; p++)
            buf_addc(b, *p == '|' ? ' ' : *p);
        buf_addz(b, "\" -- \"$cur\")); return ;;\n");
    }
}

static void print_bash(struct buf *b)
{
    const struct command *c;
    buf_addz(b, "# bash completion of nightshift; printed by: nightshift completion bash\n"
                "_nightshift() {\n"
                "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                "    local command=${COMP_WORDS[1]} commands=\"");
    for (size_t i = 0; (c = command_at(i)); i++)
        buf_printf(b, "%s%s", i ? " " : "", c->name);
    buf_addz(b, "\"\n    COMPREPLY=()\n"
                "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
                "        COMPREPLY=($(compgen -W \"$commands\" -- \"$cur\"))\n"
                "        return\n    fi\n"
                "    case $command:$prev in\n");
    for (size_t i = 0; (c = command_at(i)); i++)
        bash_choices(c, b);
    buf_addz(b, "    esac\n    case $command in\n");
    for (size_t i = 0; (c = command_at(i)); i++) {
        buf_printf(b,
                   "        %s)\n            if [[ $cur == -* ]]; then\n"
                   "                COMPREPLY=($(compgen -W \"",
                   c->name);
        bash_options(c, b);
        buf_addz(b, "\" -- \"$cur\"))\n            else\n                ");
        buf_addz(b, c->word == WORD_NONE ? ":" : bash_words(c->word));
        buf_addz(b, "\n            fi ;;\n");
    }
    buf_addz(b, "    esac\n}\ncomplete -o filenames -F _nightshift nightshift\n");
}

/* ---- zsh ---- */

static const char *zsh_words(enum word_kind k)
{
    switch (k) {
    case WORD_NONE: return NULL;
    case WORD_JOB: return "*:job:_nightshift_jobs";
    case WORD_NODE: return "*:node:_nightshift_nodes";
    case WORD_POOL: return "*:pool:_nightshift_pools";
    case WORD_RESERVATION: return "*:reservation:_nightshift_reservations";
    case WORD_TENANT: return "*:tenant:_nightshift_tenants";
    case WORD_USER: return "*:user:_nightshift_users";
    case WORD_FILE: return "*:file:_files";
    case WORD_PROGRAM: return "*::program:_normal";
    case WORD_COMMAND: return "*:command:_nightshift_commands";
    }
    return NULL;
}

/* Brackets and colons mean something inside a specification of _arguments. */
static void zsh_text(struct buf *b, const char *text)
{
    for (const char *p = text; *p; p++) {
        if (strchr("[]:\\", *p))
            buf_addc(b, '\\');
        buf_addz(b, *p == '\'' ? "'\\''" : (char[]){ *p, '\0' });
    }
}

static void zsh_option(const struct opt *o, struct buf *b)
{
    struct str name = opt_name(o);
    bool value = o->type != OPT_FLAG;
    buf_printf(b, " \\\n            '%s", o->type == OPT_LIST ? "*" : "");
    buf_printf(b, "--%.*s%s[", STR_ARG(name), value ? "=" : "");
    zsh_text(b, o->help);
    buf_addc(b, ']');
    if (value) {
        buf_addc(b, ':');
        zsh_text(b, o->type == OPT_CHOICE ? "choice" : o->value);
        buf_addc(b, ':');
    }
    if (o->type == OPT_CHOICE) {
        buf_addc(b, '(');
        for (const char *p = o->value; *p; p++)
            buf_addc(b, *p == '|' ? ' ' : *p);
        buf_addc(b, ')');
    }
    buf_addc(b, '\'');
}

static void print_zsh(struct buf *b)
{
    const struct command *c;
    buf_addz(
        b, "#compdef nightshift\n# printed by: nightshift completion zsh\n"
           "_nightshift_jobs() { compadd -- ${(f)\"$(nightshift ps -o name 2>/dev/null)\"} }\n"
           "_nightshift_pools() { compadd -- " POOL_VERBS
           " ${(f)\"$(nightshift pools -o name 2>/dev/null)\"} }\n"
           "_nightshift_reservations() { compadd -- " RESERVATION_VERBS
           " ${(f)\"$(nightshift reservations -o name 2>/dev/null)\"} }\n"
           "_nightshift_tenants() { compadd -- " TENANT_VERBS
           " ${(f)\"$(nightshift tenants -o name 2>/dev/null)\"} }\n"
           "_nightshift_users() { compadd -- " USER_VERBS
           " ${(f)\"$(nightshift users -o name 2>/dev/null)\"} }\n"
           "_nightshift_nodes() { compadd -- ${(f)\"$(nightshift nodes -o name 2>/dev/null)\"} }\n"
           "_nightshift_commands() {\n    local -a commands\n    commands=(\n");
    for (size_t i = 0; (c = command_at(i)); i++) {
        buf_printf(b, "        '%s:", c->name);
        zsh_text(b, c->help);
        buf_addz(b, "'\n");
    }
    buf_addz(
        b, "    )\n    _describe command commands\n}\n"
           "_nightshift() {\n"
           "    if (( CURRENT == 2 )); then\n        _nightshift_commands\n        return\n    fi\n"
           "    local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n"
           "    case $command in\n");
    for (size_t i = 0; (c = command_at(i)); i++) {
        buf_printf(b, "        %s)\n            _arguments -s", c->name);
        for (size_t k = 0; k < c->n_opts; k++)
            zsh_option(&c->opts[k], b);
        if (zsh_words(c->word))
            buf_printf(b, " \\\n            '%s'", zsh_words(c->word));
        buf_addz(b, " ;;\n");
    }
    buf_addz(b, "    esac\n}\n_nightshift \"$@\"\n");
}

/* ---- fish ---- */

static void fish_option(const struct command *c, const struct opt *o, struct buf *b)
{
    buf_printf(b, "complete -c nightshift -n '__fish_seen_subcommand_from %s' -l %.*s", c->name,
               STR_ARG(opt_name(o)));
    if (opt_letter(o))
        buf_printf(b, " -s %c", opt_letter(o));
    if (o->type != OPT_FLAG)
        buf_addz(b, " -x");
    if (o->type == OPT_CHOICE) {
        buf_addz(b, " -a '");
        for (const char *p = o->value; *p; p++)
            buf_addc(b, *p == '|' ? ' ' : *p);
        buf_addc(b, '\'');
    }
    buf_addz(b, " -d ");
    add_quoted(b, o->help);
    buf_addc(b, '\n');
}

static const char *fish_words(enum word_kind k)
{
    switch (k) {
    case WORD_JOB: return "-f -a '(nightshift ps -o name 2>/dev/null)'";
    case WORD_NODE: return "-f -a '(nightshift nodes -o name 2>/dev/null)'";
    case WORD_POOL: return "-f -a '" POOL_VERBS " (nightshift pools -o name 2>/dev/null)'";
    case WORD_RESERVATION:
        return "-f -a '" RESERVATION_VERBS " (nightshift reservations -o name 2>/dev/null)'";
    case WORD_TENANT: return "-f -a '" TENANT_VERBS " (nightshift tenants -o name 2>/dev/null)'";
    case WORD_USER: return "-f -a '" USER_VERBS " (nightshift users -o name 2>/dev/null)'";
    case WORD_PROGRAM: return "-a '(__fish_complete_subcommand --fcs-skip=2)'";
    case WORD_NONE: return "-f";
    case WORD_FILE:
    case WORD_COMMAND: return NULL;
    }
    return NULL;
}

static void print_fish(struct buf *b)
{
    const struct command *c;
    buf_addz(b, "# printed by: nightshift completion fish\n");
    for (size_t i = 0; (c = command_at(i)); i++) {
        buf_printf(b, "complete -c nightshift -n __fish_use_subcommand -f -a %s -d ", c->name);
        add_quoted(b, c->help);
        buf_addc(b, '\n');
        for (size_t k = 0; k < c->n_opts; k++)
            fish_option(c, &c->opts[k], b);
        if (fish_words(c->word))
            buf_printf(b, "complete -c nightshift -n '__fish_seen_subcommand_from %s' %s\n",
                       c->name, fish_words(c->word));
    }
}

int completion_print(const char *shell, struct buf *out, struct err *e)
{
    static const struct {
        const char *name;
        void (*print)(struct buf *b);
    } shells[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };
    for (size_t i = 0; i < ARRAY_LEN(shells); i++)
        if (strcmp(shells[i].name, shell) == 0) {
            shells[i].print(out);
            return buf_check(out, e);
        }
    err_set(e, ERR_INVALID, "'%s' is no shell that is known here", shell);
    return err_hint(e, "choose bash, zsh or fish");
}
