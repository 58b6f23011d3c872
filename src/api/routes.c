/* Every call there is.  Checks, OpenAPI and the reference are made from here. */
#include "api/grep.h"
#include "api/state.h"

#define X(id, name, holds, ended) "|" name
#define STATE_WORDS &(JOB_STATES(X))[1]
#define YES_NO "true|false|yes|no|on|off|1|0"
#define UP_TO(n) PARAM_NUMBER, .max = (n)
#define ANY_NUMBER UP_TO(NUMBER_MAX)
#define FORMAT_HELP "by default as `Accept` says, else JSON"

static const struct api_param list_params[] = {
    { "state", PARAM_WORDS, .words = STATE_WORDS,
      .help = "states, separated by commas, or `all`; by default those not ended" },
    { "user", PARAM_TEXT, .help = "jobs of this user" },
    { "tenant", PARAM_TEXT, .help = "jobs of this tenant" },
    { "name", PARAM_TEXT, .help = "jobs of this name" },
    { "array", ANY_NUMBER, .help = "jobs of the array whose first job this is" },
    { "limit", PARAM_NUMBER, .min = 1, .max = PAGE_MAX, .help = "at most so many; by default 100" },
    { "before", ANY_NUMBER, .help = "jobs with smaller numbers: the `next` of the page before" },
    { "since_ms", ANY_NUMBER, .help = "ended jobs only when they ended after this" },
    { 0 },
};
static const struct api_param submit_params[] = {
    { "Idempotency-Key", PARAM_TEXT, .max = 256, .header = true,
      .help = "sent again with the same key, a submit is answered as the first time" },
    { 0 },
};
static const struct api_param why_params[] = {
    { "at_ms", PARAM_NUMBER, .min = 1, .max = UINT64_C(253402300799999), /* of the year 9999 */
      .help = "why it waited then, from the journal; by default now" },
    { 0 },
};
/* A word in a log: text, not a pattern. */
#define GREP_PARAM(needed, text)                                                                   \
    { "grep", PARAM_TEXT, .min = 1, .required = (needed), .help = (text) },                        \
    {                                                                                              \
        "ignore_case", PARAM_WORD,                                                                 \
            .words = YES_NO "|",                                                                   \
            .help = "with `grep`: the letters A to Z are alike, large or small"                    \
    }
static const struct api_param log_params[] = {
    { "follow", PARAM_WORD, .words = YES_NO "|", .help = "go on until the job ends" },
    { "replica", UP_TO(REPLICAS_MAX), .help = "of which replica; by default the first" },
    { "run", UP_TO(UINT32_MAX), .help = "of which run; by default the latest" },
    { "tail", ANY_NUMBER, .help = "begin with the last so many lines" },
    { "from", PARAM_PLACE, .help = "begin at this place, as a LOGGED frame has it" },
    { "until", PARAM_PLACE, .help = "end at this place" },
    { "format", PARAM_WORD, .words = "text|records|frames|framed-records",
      .help =
          "`text`; `records`: with times and streams; `frames`: as in a terminal's stream, with "
          "the places of what was sent; `framed-records`: both" },
    GREP_PARAM(false, "only lines with this text in them; those of `tail`, when both are said"),
    { "context", UP_TO(GREP_CONTEXT_MAX),
      .help = "with `grep`: so many lines before and after each; `--` stands where some are left "
              "out" },
    { 0 },
};
static const struct api_param search_params[] = {
    GREP_PARAM(true, "this text: not a pattern"),
    { "user", PARAM_TEXT, .help = "in jobs of this user" },
    { "tenant", PARAM_TEXT, .help = "in jobs of this tenant" },
    { "name", PARAM_TEXT, .help = "in jobs of this name" },
    { "limit", PARAM_NUMBER, .min = 1, .max = PAGE_MAX,
      .help = "in at most so many jobs, the newest; by default 100" },
    { "before", ANY_NUMBER, .help = "in jobs with smaller numbers: the `next` of an answer" },
    { 0 },
};
static const struct api_param stream_params[] = {
    { "replica", UP_TO(REPLICAS_MAX), .help = "which replica; by default the first" },
    { "key", PARAM_HEX, .min = 16, .max = STREAM_KEY_MAX, .required = true,
      .help = "names the stream when frames are sent: random, and new for each" },
    { 0 },
};
static const struct api_param send_params[] = {
    { "n", PARAM_NUMBER, .min = 1, .max = NUMBER_MAX, .required = true,
      .help = "1, 2, …: the same one twice is done once" },
    { 0 },
};
static const struct api_param usage_params[] = {
    { "from_ms", ANY_NUMBER, .help = "from this time on; by default 30 days ago" },
    { "to_ms", ANY_NUMBER, .help = "up to this time; by default now" },
    { "group", PARAM_WORDS, .words = "day|tenant|user|model",
      .help = "what it is summed by, separated by commas; by default tenant,user,model" },
    { "format", PARAM_WORD, .words = "json|csv", .help = FORMAT_HELP },
    { 0 },
};
static const struct api_param fairness_params[] = {
    { "from_ms", ANY_NUMBER,
      .help = "from the day on in which this time lies; by default 30 days ago" },
    { "to_ms", ANY_NUMBER, .help = "up to the end of the day of this time; by default now" },
    { "by", PARAM_WORD, .words = "total|day", .help = "one row for all days, or one a day" },
    { "format", PARAM_WORD, .words = "json|csv", .help = FORMAT_HELP },
    { 0 },
};
static const struct api_param events_params[] = {
    { "after", ANY_NUMBER, .help = "begin after the event of this number" },
    { "Last-Event-ID", ANY_NUMBER, .header = true,
      .help = "the same, as browsers say it; it has precedence" },
    { 0 },
};
static const struct api_param journal_params[] = {
    { "since_ms", ANY_NUMBER,
      .help = "from the segment on in which this time lies; by default all that is kept" },
    { 0 },
};
static const struct api_param history_params[] = {
    { "from_ms", ANY_NUMBER, .help = "from this time on; by default an hour before the end" },
    { "to_ms", ANY_NUMBER, .help = "up to this time; by default now" },
    { "step_ms", PARAM_NUMBER, .min = 1000, .max = UINT64_C(366) * 86400000,
      .help = "between points; by default a 360th of the time. Seconds are kept for an hour, "
              "minutes for 31 "
              "days, hours for five years" },
    { 0 },
};
static const struct api_param token_params[] = {
    { "user", PARAM_TEXT, .max = 200, .help = "whose; by default the caller's" },
    { 0 },
};
static const struct api_param door_params[] = {
    { "next", PARAM_TEXT, .max = 2048, .help = "a path of this server to go on to" },
    { "code", PARAM_TEXT, .help = "of a command line that waits" },
    { "why", PARAM_TEXT, .max = 4096, .help = "what went wrong" },
    { "hint", PARAM_TEXT, .max = 4096, .help = "and what to do" },
    { 0 },
};
static const struct api_param sso_params[] = {
    { "next", PARAM_TEXT, .max = 2048, .help = "a path of this server to go on to" },
    { 0 },
};
static const struct api_param sso_back_params[] = {
    { "code", PARAM_TEXT, .max = 4096, .help = "of the provider" },
    { "state", PARAM_TEXT, .help = "as it was sent there" },
    { "error", PARAM_TEXT, .help = "of the provider" },
    { 0 },
};
static const struct api_param audit_params[] = {
    { "who", PARAM_TEXT, .help = "what this user did" },
    { "what", PARAM_TEXT, .help = "this verb, or how it begins: `node.drain`, `pool.`" },
    { "subject", PARAM_TEXT, .help = "what was done to this: a machine, a pool, a job's number" },
    { "tenant", PARAM_TEXT, .help = "what was done to something of this tenant" },
    { "since_ms", ANY_NUMBER, .help = "from this time on" },
    { "until_ms", ANY_NUMBER, .help = "before this time" },
    { "limit", PARAM_NUMBER, .min = 1, .max = PAGE_MAX, .help = "at most so many; by default 100" },
    { "before", ANY_NUMBER, .help = "rows with smaller numbers: the `next` of the page before" },
    { 0 },
};
static const struct api_param verify_params[] = {
    { "head", PARAM_HEX, .min = 64, .max = 64,
      .help = "the hash of a row that was noted: it must be in the chain" },
    { "number", ANY_NUMBER, .help = "that row's number" },
    { 0 },
};
static const struct api_param authorize_params[] = {
    { "response_type", PARAM_WORD, .words = "code", .required = true, .help = "`code`" },
    { "client_id", PARAM_TEXT, .max = 64, .required = true, .help = "which client asks" },
    { "redirect_uri", PARAM_TEXT, .max = 500, .required = true,
      .help = "exactly one of those that are registered for it" },
    { "code_challenge", PARAM_TEXT, .max = 43, .required = true, .help = "of PKCE (RFC 7636)" },
    { "code_challenge_method", PARAM_WORD, .words = "S256", .required = true, .help = "`S256`" },
    { "state", PARAM_TEXT, .max = 2000, .help = "comes back as it is" },
    { "scope", PARAM_TEXT, .help = "let be: userinfo always tells the same" },
    { "prompt", PARAM_WORD, .words = "none",
      .help = "`none`: do not ask anybody to sign in, say login_required" },
    { 0 },
};
#undef X

/* who may: auth/role.h */
#define A(access) ACCESS_##access
#define JOB .about = ABOUT_JOB
#define TENANT .about = ABOUT_TENANT
#define USER .about = ABOUT_USER
#define FN(name) api_##name, #name
/* What changes a job or a machine: it may be asked for at the wrong time. */
#define VERB(schema)                                                                               \
    .body = "Verb", .body_optional = true, .answer = schema, .refuses = REFUSES_CONFLICT

const struct route api_routes[] = {
    { "GET", "/v1/jobs", A(SEE), FN(job_list), "List jobs", .param = list_params,
      .answer = "JobList" },
    { "POST", "/v1/jobs", A(SUBMIT), FN(job_submit), "Submit a job, an array or a batch",
      .param = submit_params, .body = "Submit", .answer = "Submitted", .status = 201,
      .refuses = REFUSES_CONFLICT },
    { "POST", "/v1/jobs/check", A(SUBMIT), FN(job_check),
      "Would this job be taken, and when would it start?", .body = "Submit", .answer = "Checked",
      .refuses = REFUSES_CONFLICT },
    { "GET", "/v1/jobs/:id", A(SEE), FN(job_get), "Show a job", JOB, .answer = "Job" },
    { "GET", "/v1/jobs/:id/why", A(SEE), FN(job_why), "Why does it wait, or did?", JOB,
      .param = why_params, .answer = "Why", .refuses = REFUSES_CONFLICT },
    { "GET", "/v1/jobs/:id/log", A(READ_LOG), FN(job_log), "Its output", JOB, .param = log_params,
      .type = "text/plain; charset=utf-8", .other_type = "application/octet-stream" },
    { "GET", "/v1/logs", A(READ_LOG), FN(log_search),
      "Search the latest output of all jobs whose output one may read", .param = search_params,
      .answer = "LogsFound" },
    { "GET", "/v1/jobs/:id/stream", A(ENTER), FN(job_stream),
      "Attach or run a command inside: the frames that come out", JOB, .param = stream_params,
      .type = "application/octet-stream", .refuses = REFUSES_CONFLICT },
    { "POST", "/v1/jobs/:id/stream/:key", A(ENTER), FN(job_stream_send), "Frames that go in", JOB,
      .param = send_params, .body_is_bytes = true, .status = 204, .refuses = REFUSES_CONFLICT },
    { "POST", "/v1/jobs/:id/cancel", A(STEER), FN(job_cancel), "End a job", JOB, VERB("Job") },
    { "POST", "/v1/jobs/:id/hold", A(STEER), FN(job_hold), "Keep a waiting job out of the queue",
      JOB, VERB("Job") },
    { "POST", "/v1/jobs/:id/release", A(STEER), FN(job_release), "Let a held job queue", JOB,
      VERB("Job") },
    { "POST", "/v1/jobs/:id/freeze", A(STEER), FN(job_freeze), "Make a running job stand still",
      JOB, VERB("Job") },
    { "POST", "/v1/jobs/:id/thaw", A(STEER), FN(job_thaw), "Let it go on", JOB, VERB("Job") },
    { "POST", "/v1/jobs/:id/signal", A(STEER), FN(job_signal), "Send a signal to a job", JOB,
      .body = "Signal", .answer = "Job", .refuses = REFUSES_CONFLICT },
    { "GET", "/v1/nodes", A(LOOK), FN(node_list), "Machines, GPUs and who has them",
      .answer = "NodeList" },
    { "POST", "/v1/nodes/:name/drain", A(MACHINE), FN(node_drain),
      "Let a machine finish what runs and take nothing new", .about = ABOUT_NODE, VERB("Node") },
    { "POST", "/v1/nodes/:name/resume", A(MACHINE), FN(node_resume),
      "Let a machine take jobs again", .about = ABOUT_NODE, VERB("Node") },
    { "GET", "/v1/nodes/:name/load", A(LOOK), FN(node_load),
      "What a machine does now: processors, memory, disk, network, GPUs, jobs, health",
      .answer = "NodeLoad", .refuses = REFUSES_NOT_FOUND },
    { "GET", "/v1/nodes/:name/history", A(LOOK), FN(node_history),
      "Charts of a machine and of all its GPUs, in one call", .param = history_params,
      .answer = "NodeHistory", .refuses = REFUSES_NOT_FOUND },
    { "POST", "/v1/nodes/:name/report", A(REPORT), FN(node_report),
      "What the machine's agent measured; the answer acknowledges it", .about = ABOUT_NODE,
      .body_is_bytes = true, .answer = "Reported", .refuses = REFUSES_NOT_FOUND },
    { "POST", "/v1/nodes/:name/commands", A(OPERATE), FN(node_command),
      "Have a machine's agent pause, resume or throttle a task", .about = ABOUT_NODE,
      .body = "CommandAsk", .answer = "Command", .status = 202, .refuses = REFUSES_CONFLICT },
    { "GET", "/v1/nodes/:name/commands", A(INSPECT), FN(node_commands),
      "What its agent was asked for, and what became of it", .about = ABOUT_NODE,
      .answer = "CommandList", .refuses = REFUSES_NOT_FOUND },
    { "GET", "/v1/gpus", A(LOOK), FN(gpu_list), "Every GPU: what it does, and whose work that is",
      .answer = "GpuList" },
    { "GET", "/v1/pools", A(LOOK), FN(pool_list), "Machines that are lent at times",
      .answer = "PoolList" },
    { "GET", "/v1/pools/:name", A(LOOK), FN(pool_get),
      "One of them: its machines, its week, what has to leave", .answer = "Pool" },
    { "PUT", "/v1/pools/:name", A(OPERATE), FN(pool_put),
      "Make a pool, or change its window and machines", .body = "PoolChange", .body_optional = true,
      .answer = "Pool", .refuses = REFUSES_CONFLICT },
    { "DELETE", "/v1/pools/:name", A(OPERATE), FN(pool_delete),
      "Remove a pool: its machines may always work", .answer = "Removed",
      .refuses = REFUSES_CONFLICT },
    { "POST", "/v1/pools/:name/open", A(OPERATE), FN(pool_open), "Open a pool for a while",
      .body = "PoolWhile", .answer = "Pool", .refuses = REFUSES_CONFLICT },
    { "POST", "/v1/pools/:name/close", A(OPERATE), FN(pool_close), "Close a pool for a while",
      .body = "PoolWhile", .answer = "Pool", .refuses = REFUSES_CONFLICT },
    { "POST", "/v1/pools/:name/regular", A(OPERATE), FN(pool_regular),
      "Drop what open and close have said: its window alone counts", VERB("Pool") },
    { "GET", "/v1/reservations", A(LOOK), FN(reservation_list),
      "Machines that are reserved, now or later", .answer = "ReservationList" },
    { "GET", "/v1/reservations/:name", A(SEE), FN(reservation_get),
      "One of them: its machines, and what may still run there", .about = ABOUT_RESERVATION,
      .answer = "Reservation" },
    { "PUT", "/v1/reservations/:name", A(OPERATE), FN(reservation_put),
      "Reserve machines for a tenant, or change that", .body = "Reserve", .answer = "Reservation",
      .refuses = REFUSES_CONFLICT },
    { "DELETE", "/v1/reservations/:name", A(OPERATE), FN(reservation_delete),
      "Give a reservation up: its machines are everybody's", .answer = "Removed" },
    { "GET", "/v1/tenants", A(SEE), FN(tenant_list), "Tenants: who shares the machines",
      .answer = "TenantList" },
    { "GET", "/v1/tenants/:name", A(SEE), FN(tenant_get), "One of them, with its members", TENANT,
      .answer = "Tenant" },
    { "PUT", "/v1/tenants/:name", A(ADMIN), FN(tenant_put),
      "Make a tenant, or change what is said of it", TENANT, .makes = true, .body = "TenantChange",
      .body_optional = true, .answer = "Tenant", .refuses = REFUSES_CONFLICT },
    { "DELETE", "/v1/tenants/:name", A(ADMIN), FN(tenant_delete),
      "Remove a tenant that runs nothing", TENANT, .status = 204, .refuses = REFUSES_CONFLICT },
    { "PUT", "/v1/tenants/:name/members/:user", A(LEAD), FN(member_put),
      "Take somebody into a tenant, or change their role in it", TENANT, .body = "Member",
      .body_optional = true, .answer = "Tenant", .refuses = REFUSES_CONFLICT },
    { "DELETE", "/v1/tenants/:name/members/:user", A(LEAD), FN(member_delete),
      "Take somebody out of a tenant", TENANT, .answer = "Tenant", .refuses = REFUSES_CONFLICT },
    { "GET", "/v1/users", A(INSPECT), FN(user_list), "People: their roles, and how they sign in",
      .answer = "UserList" },
    { "GET", "/v1/users/:user", A(PERSON), FN(user_get), "One of them", USER, .answer = "User" },
    { "PUT", "/v1/users/:user", A(ADMIN), FN(user_put), "Make a user, or change one", USER,
      .body = "UserChange", .body_optional = true, .answer = "User", .refuses = REFUSES_CONFLICT },
    { "DELETE", "/v1/users/:user", A(ADMIN), FN(user_delete),
      "Remove a user, with all that lets them in", USER, .status = 204,
      .refuses = REFUSES_CONFLICT },
    { "PUT", "/v1/nodes/:name/owners/:user", A(ADMIN), FN(owner_put),
      "Say who owns a machine that is lent", .about = ABOUT_NODE, .status = 204 },
    { "DELETE", "/v1/nodes/:name/owners/:user", A(ADMIN), FN(owner_delete),
      "Say who owns it no more", .about = ABOUT_NODE, .status = 204 },
    { "GET", "/v1/apply", A(ADMIN_LOOK), FN(export),
      "Tenants and people as a document that can be applied", .answer = "Roster" },
    { "POST", "/v1/apply", A(ADMIN), FN(apply),
      "Make tenants and people as a document says: all of it or nothing", .body = "Apply",
      .body_optional = true, .answer = "Applied", .refuses = REFUSES_CONFLICT },
    { "GET", "/v1/quota", A(SEE), FN(quota), "Tenants: what they may have, have and had",
      .answer = "Quota" },
    { "GET", "/v1/usage", A(SEE), FN(usage), "GPU-hours by day, tenant, user and model",
      .param = usage_params, .answer = "Usage", .other_type = "text/csv",
      .refuses = REFUSES_CONFLICT },
    { "GET", "/v1/fairness", A(SEE), FN(fairness),
      "Who was entitled to GPUs, who had them, and who lent them", .param = fairness_params,
      .answer = "Fairness", .other_type = "text/csv", .refuses = REFUSES_CONFLICT },
    { "GET", "/v1/profiles", A(LOOK), FN(profiles), "Named bundles of resources",
      .answer = "ProfileList" },
    { "GET", "/v1/events", A(SEE), FN(events), "What happens, as it happens (SSE)",
      .param = events_params, .type = "text/event-stream" },
    { "GET", "/v1/journal", A(ADMIN_LOOK), FN(journal),
      "What happened and what was decided, to be replayed", .param = journal_params,
      .type = "application/x-ndjson" },
    { "GET", "/v1/audit", A(ADMIN_LOOK), FN(audit_list), "Who did what, the newest first",
      .param = audit_params, .answer = "AuditList" },
    { "GET", "/v1/audit/verify", A(ADMIN_LOOK), FN(audit_verify), "Is the audit as it was written?",
      .param = verify_params, .answer = "AuditVerified" },
    { "GET", "/v1/audit/export", A(ADMIN_LOOK), FN(audit_export),
      "All of it, to be kept and verified elsewhere", .type = "application/x-ndjson" },
    { "GET", "/v1/tokens", A(TOKENS_LOOK), FN(token_list), "List tokens", .answer = "TokenList" },
    { "POST", "/v1/tokens", A(TOKENS), FN(token_create), "Make a token", .body = "NewToken",
      .body_optional = true, .answer = "MadeToken", .status = 201,
      .refuses = REFUSES_CONFLICT | REFUSES_NOT_FOUND },
    { "DELETE", "/v1/tokens/:name", A(TOKENS), FN(token_delete), "Delete a token",
      .param = token_params, .status = 204 },
    { "DELETE", "/v1/token", A(SELF_LOOK), FN(token_give_up), "Give up the token one comes with",
      .status = 204, .refuses = REFUSES_CONFLICT },
    { "GET", "/v1/signin", A(PUBLIC), FN(signin), "How people sign in here", .answer = "Signin" },
    { "POST", "/v1/session", A(PUBLIC), FN(session_open),
      "Sign a browser in, with a name and a password, or with a token", .body = "Session",
      .status = 204, .refuses = REFUSES_DENIED },
    { "DELETE", "/v1/session", A(PUBLIC), FN(session_close), "Sign a browser out", .status = 204 },
    { "GET", "/v1/sessions", A(SELF_LOOK), FN(session_list), "Where one is signed in",
      .answer = "SessionList" },
    { "DELETE", "/v1/sessions", A(SELF), FN(session_close_all), "Sign out everywhere",
      .status = 204 },
    { "POST", "/v1/setup", A(PUBLIC), FN(setup),
      "Become the first administrator, with the one-time code", .body = "Setup", .status = 204,
      .refuses = REFUSES_DENIED | REFUSES_CONFLICT },
    { "POST", "/v1/users/:user/password", A(PASSWORD), FN(user_password),
      "Set a password; one's own with the old one", USER, .body = "Password", .status = 204,
      .refuses = REFUSES_CONFLICT },
    { "POST", "/v1/notice", A(SELF), FN(notice_accept),
      "Accept the notice for those who try this out", .status = 204, .refuses = REFUSES_CONFLICT },
    { "GET", "/v1/signin/sso", A(PUBLIC), FN(sso), "Go to the identity provider",
      .param = sso_params, .status = 303, .type = "text/plain", .refuses = REFUSES_NOT_FOUND },
    { "GET", "/v1/signin/sso/back", A(PUBLIC), FN(sso_back), "Come back from it",
      .param = sso_back_params, .lenient = true, .status = 303, .type = "text/plain",
      .refuses = REFUSES_NOT_FOUND },
    { "POST", "/v1/login", A(PUBLIC), FN(login), "Begin to sign a command line in", .body = "Login",
      .body_optional = true, .answer = "LoginBegun", .refuses = REFUSES_CONFLICT },
    { "POST", "/v1/login/poll", A(PUBLIC), FN(login_poll), "Has somebody said yes to it?",
      .body = "LoginPoll", .answer = "LoginState", .refuses = REFUSES_DENIED | REFUSES_NOT_FOUND },
    { "GET", "/v1/login/:code", A(SELF_LOOK), FN(login_get), "The command line that waits",
      .answer = "LoginShown" },
    { "POST", "/v1/login/:code/approve", A(SELF), FN(login_approve), "Say yes to it",
      .status = 204 },
    { "POST", "/v1/login/:code/deny", A(SELF), FN(login_deny), "Say no to it", .status = 204 },
    { "GET", "/v1/clients", A(ADMIN_LOOK), FN(client_list),
      "Tools that people sign in to through this server", .answer = "ClientList" },
    { "PUT", "/v1/clients/:client", A(ADMIN), FN(client_put),
      "Register such a tool, or change what is said of it", .body = "ClientChange",
      .answer = "Client", .refuses = REFUSES_CONFLICT },
    { "DELETE", "/v1/clients/:client", A(ADMIN), FN(client_delete), "Register it no more",
      .status = 204 },
    { "GET", "/oauth/authorize", A(PUBLIC), FN(oauth_authorize),
      "OAuth 2: send whoever is signed in back to a client, with a code", .param = authorize_params,
      .status = 303, .oauth = true },
    { "POST", "/oauth/token", A(PUBLIC), FN(oauth_token), "OAuth 2: a code for a token",
      .body = "OAuthTokenRequest", .answer = "OAuthToken", .oauth = true },
    { "GET", "/oauth/userinfo", A(PUBLIC), FN(oauth_userinfo),
      "OAuth 2: whom such a token is about", .answer = "OAuthUser", .oauth = true },
    { "GET", "/.well-known/oauth-authorization-server", A(PUBLIC), FN(oauth_metadata),
      "OAuth 2: where all of it is (RFC 8414)", .answer = "OAuthServer",
      .refuses = REFUSES_NOT_FOUND },
    { "GET", "/v1/whoami", A(SELF_LOOK), FN(whoami), "Who am I?", .answer = "Whoami" },
    { "GET", "/v1/server", A(PUBLIC), FN(server), "What runs here, and what it can do",
      .answer = "Server" },
    { "GET", "/v1/doctor", A(INSPECT), FN(doctor),
      "What is wrong with the server's machine, and how to fix it", .answer = "Doctor" },
    { "GET", "/v1/permissions", A(PUBLIC), FN(permissions), "Who may do what",
      .answer = "Permissions" },
    { "GET", "/v1/openapi.json", A(PUBLIC), FN(openapi), "This API", .answer = "Document" },
    { "GET", "/healthz", A(PUBLIC), FN(health), "Is the daemon alive?", .type = "text/plain" },
    { "GET", "/readyz", A(PUBLIC), FN(ready), "Does it take work?", .type = "text/plain" },
    { "GET", "/metrics", A(PUBLIC), FN(metrics),
      "Figures for Prometheus; those of tenants for whoever may see them", .tells_more = true,
      .type = "application/openmetrics-text; version=1.0.0; charset=utf-8" },
    { "GET", "/", A(PUBLIC), FN(page), "The web page", .type = "text/html; charset=utf-8" },
    { "GET", "/signin", A(PUBLIC), FN(door_page), "The page to sign in on", .param = door_params,
      .type = "text/html; charset=utf-8" },
    { "GET", "/signin.js", A(PUBLIC), FN(door_script), "Its script",
      .type = "text/javascript; charset=utf-8" },
    { "GET", "/page.js", A(PUBLIC), FN(page_script), "Its script",
      .type = "text/javascript; charset=utf-8" },
    { "GET", "/page.css", A(PUBLIC), FN(page_style), "Its style",
      .type = "text/css; charset=utf-8" },
};
const size_t api_routes_n = ARRAY_LEN(api_routes);
