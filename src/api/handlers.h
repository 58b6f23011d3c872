/* handlers - what answers each call, by noun; routes.c names them. */
#ifndef NS_API_HANDLERS_H
#define NS_API_HANDLERS_H

#include "base/err.h"

struct call;
typedef int api_fn(struct call *c, struct err *e); /* -1: the error is the answer */

api_fn api_job_list, api_job_submit, api_job_check, api_job_get, api_job_cancel, api_job_hold,
    api_job_release, api_job_freeze, api_job_thaw, api_job_signal; /* jobs.c */
api_fn api_job_act;                                                /* acts.c */
api_fn api_job_why;                                                /* why.c */
api_fn api_job_events;                                             /* life.c */
api_fn api_job_log;                                                /* log.c */
api_fn api_log_search;                                             /* search.c */
api_fn api_job_stream, api_job_stream_send;                        /* stream.c */
api_fn api_node_command, api_node_commands;                        /* commands.c */
api_fn api_node_list, api_node_drain, api_node_resume;             /* nodes.c */
api_fn api_node_report, api_node_load, api_gpu_list;               /* load.c */
api_fn api_node_history, api_job_history;                          /* charts.c */
api_fn api_pool_list, api_pool_get, api_pool_put, api_pool_delete, api_pool_open, api_pool_close,
    api_pool_regular; /* pools.c */
api_fn api_reservation_list, api_reservation_get, api_reservation_put,
    api_reservation_delete;     /* reservations.c */
api_fn api_quota;               /* shares.c */
api_fn api_usage, api_fairness; /* usage.c */
api_fn api_events;              /* events.c */
api_fn api_tenant_list, api_tenant_get, api_tenant_put, api_tenant_delete, api_member_put,
    api_member_delete; /* tenants.c */
api_fn api_user_list, api_user_get, api_user_put, api_user_delete, api_owner_put,
    api_owner_delete;                                                         /* users.c */
api_fn api_token_list, api_token_create, api_token_delete, api_token_give_up; /* tokens.c */
api_fn api_signin, api_session_open, api_session_close, api_session_list,
    api_session_close_all;                                                          /* signin.c */
api_fn api_setup, api_user_password;                                                /* setup.c */
api_fn api_sso, api_sso_back;                                                       /* sso.c */
api_fn api_login, api_login_get, api_login_approve, api_login_deny, api_login_poll; /* login.c */
api_fn api_notices_get, api_notices_put, api_notices_test, api_notices_log;         /* notices.c */
api_fn api_whoami, api_default_tenant_put, api_notice_accept;                       /* me.c */
api_fn api_server, api_clock_confirm, api_health, api_ready, api_metrics, api_openapi,
    api_profiles;                                          /* server.c */
api_fn api_audit_list, api_audit_verify, api_audit_export; /* audit.c */
api_fn api_apply, api_export;                              /* apply.c */
api_fn api_permissions;                                    /* permissions.c */
api_fn api_journal;                                        /* journal.c */
api_fn api_doctor;                                         /* doctor.c */
api_fn api_client_list, api_client_put, api_client_delete; /* oauth_clients.c */
api_fn api_oauth_authorize, api_oauth_token, api_oauth_userinfo, api_oauth_metadata; /* oauth.c */
api_fn api_page, api_page_script, api_page_style, api_door_page, api_door_script;    /* page.c */

#endif
