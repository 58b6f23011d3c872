/* Every call there is.  Checks, OpenAPI and the reference are made from here. */
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
#undef X

#define M ROLE_MEMBER
#define A ROLE_ADMIN
#define P ROLE_PUBLIC
#define FN(name) api_##name, #name
/* What changes a job or a machine: it may be asked for at the wrong time. */
#define VERB(schema)                                                                               \
    .body = "Verb", .body_optional = true, .answer = schema, .refuses = REFUSES_CONFLICT

const struct route api_routes[] = {
    { "GET", "/v1/jobs", M, FN(job_list), "List jobs", .param = list_params, .answer = "JobList" },
    { "POST", "/v1/jobs", M, FN(job_submit), "Submit a job, an array or a batch",
      .param = submit_params, .body = "Submit", .answer = "Submitted", .status = 201,
      .refuses = REFUSES_CONFLICT },
    { "POST", "/v1/jobs/check", M, FN(job_check), "Would this job be taken?", .body = "Submit",
      .answer = "Checked", .refuses = REFUSES_CONFLICT },
    { "GET", "/v1/jobs/:id", M, FN(job_get), "Show a job", .answer = "Job" },
    { "GET", "/v1/jobs/:id/why", M, FN(job_why), "Why does it wait, or did?", .param = why_params,
      .answer = "Why", .refuses = REFUSES_CONFLICT },
    { "GET", "/v1/jobs/:id/log", M, FN(job_log), "Its output", .param = log_params,
      .type = "text/plain; charset=utf-8", .other_type = "application/octet-stream" },
    { "GET", "/v1/jobs/:id/stream", M, FN(job_stream),
      "Attach or run a command inside: the frames that come out", .param = stream_params,
      .type = "application/octet-stream", .refuses = REFUSES_CONFLICT },
    { "POST", "/v1/jobs/:id/stream/:key", M, FN(job_stream_send), "Frames that go in",
      .param = send_params, .body_is_bytes = true, .status = 204, .refuses = REFUSES_CONFLICT },
    { "POST", "/v1/jobs/:id/cancel", M, FN(job_cancel), "End a job", VERB("Job") },
    { "POST", "/v1/jobs/:id/hold", M, FN(job_hold), "Keep a waiting job out of the queue",
      VERB("Job") },
    { "POST", "/v1/jobs/:id/release", M, FN(job_release), "Let a held job queue", VERB("Job") },
    { "POST", "/v1/jobs/:id/freeze", M, FN(job_freeze), "Make a running job stand still",
      VERB("Job") },
    { "POST", "/v1/jobs/:id/thaw", M, FN(job_thaw), "Let it go on", VERB("Job") },
    { "POST", "/v1/jobs/:id/signal", M, FN(job_signal), "Send a signal to a job", .body = "Signal",
      .answer = "Job", .refuses = REFUSES_CONFLICT },
    { "GET", "/v1/nodes", M, FN(node_list), "Machines, GPUs and who has them",
      .answer = "NodeList" },
    { "POST", "/v1/nodes/:name/drain", A, FN(node_drain),
      "Let a machine finish what runs and take nothing new", VERB("Node") },
    { "POST", "/v1/nodes/:name/resume", A, FN(node_resume), "Let a machine take jobs again",
      VERB("Node") },
    { "GET", "/v1/pools", M, FN(pool_list), "Machines that are lent at times",
      .answer = "PoolList" },
    { "GET", "/v1/pools/:name", M, FN(pool_get),
      "One of them: its machines, its week, what has to leave", .answer = "Pool" },
    { "PUT", "/v1/pools/:name", A, FN(pool_put), "Make a pool, or change its window and machines",
      .body = "PoolChange", .body_optional = true, .answer = "Pool", .refuses = REFUSES_CONFLICT },
    { "DELETE", "/v1/pools/:name", A, FN(pool_delete),
      "Remove a pool: its machines may always work", .answer = "Removed",
      .refuses = REFUSES_CONFLICT },
    { "POST", "/v1/pools/:name/open", A, FN(pool_open), "Open a pool for a while",
      .body = "PoolWhile", .answer = "Pool", .refuses = REFUSES_CONFLICT },
    { "POST", "/v1/pools/:name/close", A, FN(pool_close), "Close a pool for a while",
      .body = "PoolWhile", .answer = "Pool", .refuses = REFUSES_CONFLICT },
    { "POST", "/v1/pools/:name/regular", A, FN(pool_regular),
      "Drop what open and close have said: its window alone counts", VERB("Pool") },
    { "GET", "/v1/reservations", M, FN(reservation_list),
      "Machines that are reserved, now or later", .answer = "ReservationList" },
    { "GET", "/v1/reservations/:name", M, FN(reservation_get),
      "One of them: its machines, and what may still run there", .answer = "Reservation" },
    { "PUT", "/v1/reservations/:name", A, FN(reservation_put),
      "Reserve machines for a tenant, or change that", .body = "Reserve", .answer = "Reservation",
      .refuses = REFUSES_CONFLICT },
    { "DELETE", "/v1/reservations/:name", A, FN(reservation_delete),
      "Give a reservation up: its machines are everybody's", .answer = "Removed" },
    { "GET", "/v1/quota", M, FN(quota), "Tenants: what they may have, have and had",
      .answer = "Quota" },
    { "GET", "/v1/usage", M, FN(usage), "GPU-hours by day, tenant, user and model",
      .param = usage_params, .answer = "Usage", .other_type = "text/csv",
      .refuses = REFUSES_CONFLICT },
    { "GET", "/v1/fairness", M, FN(fairness),
      "Who was entitled to GPUs, who had them, and who lent them", .param = fairness_params,
      .answer = "Fairness", .other_type = "text/csv", .refuses = REFUSES_CONFLICT },
    { "GET", "/v1/profiles", M, FN(profiles), "Named bundles of resources",
      .answer = "ProfileList" },
    { "GET", "/v1/events", M, FN(events), "What happens, as it happens (SSE)",
      .param = events_params, .type = "text/event-stream" },
    { "GET", "/v1/journal", A, FN(journal), "What happened and what was decided, to be replayed",
      .param = journal_params, .type = "application/x-ndjson" },
    { "GET", "/v1/tokens", M, FN(token_list), "List tokens", .answer = "TokenList" },
    { "POST", "/v1/tokens", M, FN(token_create), "Make a token", .body = "NewToken",
      .body_optional = true, .answer = "MadeToken", .status = 201, .refuses = REFUSES_CONFLICT },
    { "DELETE", "/v1/tokens/:name", M, FN(token_delete), "Delete a token", .status = 204 },
    { "POST", "/v1/session", P, FN(session_open), "Sign a browser in with a token",
      .body = "Session", .status = 204, .refuses = REFUSES_DENIED },
    { "DELETE", "/v1/session", P, FN(session_close), "Sign a browser out", .status = 204 },
    { "GET", "/v1/whoami", M, FN(whoami), "Who am I?", .answer = "Whoami" },
    { "GET", "/v1/server", P, FN(server), "What runs here, and what it can do",
      .answer = "Server" },
    { "GET", "/v1/doctor", A, FN(doctor),
      "What is wrong with the server's machine, and how to fix it", .answer = "Doctor" },
    { "GET", "/v1/openapi.json", P, FN(openapi), "This API", .answer = "Document" },
    { "GET", "/healthz", P, FN(health), "Is the daemon alive?", .type = "text/plain" },
    { "GET", "/readyz", P, FN(ready), "Does it take work?", .type = "text/plain" },
    { "GET", "/metrics", P, FN(metrics), "Figures for Prometheus",
      .type = "application/openmetrics-text; version=1.0.0; charset=utf-8" },
    { "GET", "/", P, FN(page), "The live page", .type = "text/html; charset=utf-8" },
    { "GET", "/page.js", P, FN(page_script), "Its script",
      .type = "text/javascript; charset=utf-8" },
    { "GET", "/page.css", P, FN(page_style), "Its style", .type = "text/css; charset=utf-8" },
};
const size_t api_routes_n = ARRAY_LEN(api_routes);
