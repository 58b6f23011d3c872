/* Every call there is.  OpenAPI and the reference are printed from here. */
#include "api/state.h"

/* Any of the states, with commas between; nothing at all is the default. */
#define X(id, name, holds, ended) name "|"
#define QUERY_STATES                                                                               \
    "{\"type\":\"string\",\"pattern\":\"^(all|(" JOB_STATES(X) "x{0})(,(" JOB_STATES(              \
        X) "x{0}))*)$\"}"

#define QUERY_PLACE "{\"type\":\"string\",\"pattern\":\"^[0-9]{1,9}[.][0-9]{1,18}[.][0-9]{1,18}$\"}"

static const struct api_query list_query[] = {
    { "state", QUERY_STATES, "states, separated by commas, or 'all'; by default those not ended" },
    { "user", QUERY_TEXT, "jobs of this user" },
    { "tenant", QUERY_TEXT, "jobs of this tenant" },
    { "name", QUERY_TEXT, "jobs of this name" },
    { "array", QUERY_NUMBER, "jobs of the array whose first job this is" },
    { "limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000}",
      "at most so many, up to 1000" },
    { "before", QUERY_NUMBER, "jobs with smaller numbers: the `next` of the page before" },
    { "since_ms", QUERY_NUMBER, "ended jobs only when they ended after this" },
    { 0 },
};
static const struct api_query log_query[] = {
    { "follow", QUERY_FLAG, "go on until the job ends" },
    { "replica", "{\"type\":\"integer\",\"minimum\":0,\"maximum\":4096}",
      "of which replica; by default the first" },
    { "run", "{\"type\":\"integer\",\"minimum\":0,\"maximum\":4294967295}",
      "of which run; by default the latest" },
    { "tail", QUERY_NUMBER, "begin with the last so many lines" },
    { "from", QUERY_PLACE, "begin at this place, as a LOGGED frame has it: RUN.SEGMENT.BYTE" },
    { "until", QUERY_PLACE, "end at this place" },
    { "format", "{\"enum\":[\"text\",\"records\",\"frames\",\"framed-records\"]}",
      "text; records: with time and stream; frames: of wire/stream.h" },
    { 0 },
};
static const struct api_query stream_query[] = {
    { "replica", "{\"type\":\"integer\",\"minimum\":0,\"maximum\":4096}",
      "which replica; by default the first" },
    { "key", "{\"type\":\"string\",\"pattern\":\"^[0-9a-f]{16,64}$\"}",
      "names the stream when frames are sent: random, and new for each" },
    { 0 },
};
static const struct api_query send_query[] = {
    { "n", QUERY_NUMBER, "1, 2, …: the same one twice is done once" },
    { 0 },
};
static const struct api_query usage_query[] = {
    { "from_ms", QUERY_NUMBER, "from this time on; by default 30 days ago" },
    { "to_ms", QUERY_NUMBER, "up to this time; by default now" },
    { 0 },
};
static const struct api_query events_query[] = {
    { "after", QUERY_NUMBER, "begin after the event of this number, as Last-Event-ID does" },
    { 0 },
};

#undef X

#define M ROLE_MEMBER
const struct route api_routes[] = {
    { "GET", "/v1/jobs", M, api_job_list, "List jobs", BODY_NONE, list_query, 200, NULL },
    { "POST", "/v1/jobs", M, api_job_submit, "Submit a job, an array or a batch", BODY_SPEC, NULL,
      201, NULL },
    { "POST", "/v1/jobs/check", M, api_job_check, "Would this job be taken?", BODY_SPEC, NULL, 200,
      NULL },
    { "GET", "/v1/jobs/:id", M, api_job_get, "Show a job", BODY_NONE, NULL, 200, NULL },
    { "GET", "/v1/jobs/:id/why", M, api_job_why, "Why does it wait?", BODY_NONE, NULL, 200, NULL },
    { "GET", "/v1/jobs/:id/log", M, api_job_log, "Its output", BODY_NONE, log_query, 200,
      "text/plain" },
    { "GET", "/v1/jobs/:id/stream", M, api_job_stream,
      "Attach or run a command inside: the frames that come out", BODY_NONE, stream_query, 200,
      "application/octet-stream" },
    { "POST", "/v1/jobs/:id/stream/:key", M, api_job_stream_send, "Frames that go in", BODY_FRAMES,
      send_query, 204, NULL },
    { "POST", "/v1/jobs/:id/cancel", M, api_job_cancel, "End a job", BODY_OPTIONAL, NULL, 200,
      NULL },
    { "POST", "/v1/jobs/:id/hold", M, api_job_hold, "Keep a waiting job out of the queue",
      BODY_OPTIONAL, NULL, 200, NULL },
    { "POST", "/v1/jobs/:id/release", M, api_job_release, "Let a held job queue", BODY_OPTIONAL,
      NULL, 200, NULL },
    { "POST", "/v1/jobs/:id/freeze", M, api_job_freeze, "Make a running job stand still",
      BODY_OPTIONAL, NULL, 200, NULL },
    { "POST", "/v1/jobs/:id/thaw", M, api_job_thaw, "Let it go on", BODY_OPTIONAL, NULL, 200,
      NULL },
    { "POST", "/v1/jobs/:id/signal", M, api_job_signal, "Send a signal to a job", BODY_SIGNAL, NULL,
      200, NULL },
    { "GET", "/v1/nodes", M, api_node_list, "Machines, GPUs and who has them", BODY_NONE, NULL, 200,
      NULL },
    { "POST", "/v1/nodes/:name/drain", ROLE_ADMIN, api_node_drain,
      "Let a machine finish what runs and take nothing new", BODY_OPTIONAL, NULL, 200, NULL },
    { "POST", "/v1/nodes/:name/resume", ROLE_ADMIN, api_node_resume,
      "Let a machine take jobs again", BODY_OPTIONAL, NULL, 200, NULL },
    { "GET", "/v1/quota", M, api_quota, "Tenants: what they may have, have and had", BODY_NONE,
      NULL, 200, NULL },
    { "GET", "/v1/usage", M, api_usage, "GPU-hours by tenant, user and model", BODY_NONE,
      usage_query, 200, NULL },
    { "GET", "/v1/profiles", M, api_profiles, "Named bundles of resources", BODY_NONE, NULL, 200,
      NULL },
    { "GET", "/v1/events", M, api_events, "What happens, as it happens (SSE)", BODY_NONE,
      events_query, 200, "text/event-stream" },
    { "GET", "/v1/tokens", M, api_token_list, "List tokens", BODY_NONE, NULL, 200, NULL },
    { "POST", "/v1/tokens", M, api_token_create, "Make a token", BODY_TOKEN, NULL, 201, NULL },
    { "DELETE", "/v1/tokens/:name", M, api_token_delete, "Delete a token", BODY_NONE, NULL, 204,
      NULL },
    { "POST", "/v1/session", ROLE_PUBLIC, api_session_open, "Sign a browser in with a token",
      BODY_SESSION, NULL, 204, NULL },
    { "DELETE", "/v1/session", ROLE_PUBLIC, api_session_close, "Sign a browser out", BODY_NONE,
      NULL, 204, NULL },
    { "GET", "/v1/whoami", M, api_whoami, "Who am I?", BODY_NONE, NULL, 200, NULL },
    { "GET", "/v1/server", ROLE_PUBLIC, api_server, "What runs here, and what it can do", BODY_NONE,
      NULL, 200, NULL },
    { "GET", "/v1/doctor", ROLE_ADMIN, api_doctor,
      "What is wrong with the server's machine, and how to fix it", BODY_NONE, NULL, 200, NULL },
    { "GET", "/v1/openapi.json", ROLE_PUBLIC, api_openapi, "This API", BODY_NONE, NULL, 200, NULL },
    { "GET", "/healthz", ROLE_PUBLIC, api_health, "Is the daemon alive?", BODY_NONE, NULL, 200,
      "text/plain" },
    { "GET", "/readyz", ROLE_PUBLIC, api_ready, "Does it take work?", BODY_NONE, NULL, 200,
      "text/plain" },
    { "GET", "/metrics", ROLE_PUBLIC, api_metrics, "Figures for Prometheus", BODY_NONE, NULL, 200,
      "application/openmetrics-text; version=1.0.0; charset=utf-8" },
    { "GET", "/", ROLE_PUBLIC, api_page, "The live page", BODY_NONE, NULL, 200, "text/html" },
    { "GET", "/page.js", ROLE_PUBLIC, api_page_script, "Its script", BODY_NONE, NULL, 200,
      "text/javascript" },
    { "GET", "/page.css", ROLE_PUBLIC, api_page_style, "Its style", BODY_NONE, NULL, 200,
      "text/css" },
};
#undef M
const size_t api_routes_n = ARRAY_LEN(api_routes);
