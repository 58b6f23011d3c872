/* commands - the rows of the table, where they are defined. */
#ifndef NS_CLI_COMMANDS_H
#define NS_CLI_COMMANDS_H

#include "cli/cli.h"

extern const struct command command_run;                                     /* cmd_run.c */
extern const struct command command_submit;                                  /* cmd_submit.c */
extern const struct command command_ps;                                      /* cmd_ps.c */
extern const struct command command_show, command_why;                       /* cmd_show.c */
extern const struct command command_logs;                                    /* cmd_logs.c */
extern const struct command command_cancel, command_hold, command_release;   /* cmd_act.c */
extern const struct command command_freeze, command_thaw, command_signal;    /* cmd_act.c */
extern const struct command command_attach, command_exec;                    /* cmd_attach.c */
extern const struct command command_cp;                                      /* cmd_cp.c */
extern const struct command command_pools;                                   /* cmd_pools.c */
extern const struct command command_reservations, command_reserve;           /* cmd_reserve.c */
extern const struct command command_nodes, command_drain, command_resume;    /* cmd_nodes.c */
extern const struct command command_quota, command_usage;                    /* cmd_share.c */
extern const struct command command_events;                                  /* cmd_events.c */
extern const struct command command_tenants;                                 /* cmd_tenants.c */
extern const struct command command_users;                                   /* cmd_users.c */
extern const struct command command_notices;                                 /* cmd_notices.c */
extern const struct command command_tokens;                                  /* cmd_tokens.c */
extern const struct command command_login, command_logout;                   /* cmd_login.c */
extern const struct command command_apply, command_diff;                     /* cmd_apply.c */
extern const struct command command_docs;                                    /* cmd_docs.c */
extern const struct command command_status, command_doctor;                  /* cmd_server.c */
extern const struct command command_audit;                                   /* cmd_audit.c */
extern const struct command command_backup, command_restore, command_verify; /* cmd_save.c */
extern const struct command command_simulate;                                /* cmd_simulate.c */
extern const struct command command_help, command_version;                   /* cmd_help.c */
extern const struct command command_completion, command_top;                 /* cmd_help.c */
extern const struct command command_sbatch, command_srun;                    /* cmd_sbatch.c */
extern const struct command command_squeue, command_scancel;                 /* cmd_squeue.c */
extern const struct command command_sinfo, command_sacct;                    /* cmd_sinfo.c */

#endif
