#include "keeper/bundle.h"

#include "base/json.h"
#include "tests/lib/test.h"

static const char *const no_nodes[] = { NULL };
static const char *const two_nodes[] = { "nvidia3", "nvidiactl", NULL };
static const struct rootfs_plan host = {
    .folder = { { "/usr", "" }, { "/bin", "usr/bin" }, { "/etc", "" } },
    .n = 3
};

static const struct cdi_edits no_driver = { 0 };

/* A request and a place that a test may change before it asks for the text. */
struct world {
    struct arena a;
    struct start s;
    struct bundle_place p;
    struct buf text;
    struct json_doc *doc;
};

static void world_clear(struct world *w)
{
    w->doc = json_free(w->doc);
    buf_free(&w->text);
    arena_free(&w->a);
}

static void world_init(struct world *w)
{
    static const char *const argv[] = { "python", "-c", "print(\"hi\")", NULL };
    static const char *const env[] = { "A=b", "HOME=/elsewhere", NULL };
    static const uint32_t groups[] = { 1000, 44 };
    static const struct bundle_bind lent[] = { { "/run/ns/mnt/1", false },
                                               { "/run/ns/mnt/2", false } };
    *w = (struct world){ .text = BUF(BUNDLE_MAX) };
    w->s = (struct start){
        .task = "17.1.0",
        .tenant = "vision",
        .user = { .name = STR("ana"),
                  .home = STR("/home/ana"),
                  .uid = 1000,
                  .gid = 1001,
                  .groups = groups,
                  .n_groups = 2 },
        .argv = argv,
        .n_argv = 3,
        .env = env,
        .n_env = 2,
        .workdir = "/home/ana/x",
        .image = "host",
        .mem_mib = 512,
        .log_bytes = 1u << 20,
    };
    w->p = (struct bundle_place){
        .mode = KEEPER_MODE_ROOT,
        .rootfs = "/run/ns/mnt/rootfs",
        .host = &host,
        .scratch = "/var/lib/ns/scratch/17.1.0",
        .files = "/run/ns/tasks/17.1.0",
        .cover = 7,
        .init = "/usr/lib/ns/nightshift-init",
        .volume = lent,
        .dev = "/dev",
        .node = no_nodes,
        .driver = &no_driver,
        .nofile_max = 4096,
        .core_max = 1000,
    };
}

static const struct json *written(struct world *w)
{
    struct err e;
    const struct bundle_begin begin = { .folder = w->s.workdir };
    CHECK(bundle_write(&w->s, &w->p, &begin, &w->text, &e) == 0);
    w->doc = json_read(buf_str(&w->text), &e);
    CHECK(w->doc);
    return json_root(w->doc);
}

static struct str text_of(const struct json *o, const char *key)
{
    struct str s = STR("");
    struct err e;
    CHECK(json_get_str(o, key, 10000, &s, &e) == 0);
    return s;
}

static bool list_has(const struct json *list, const char *word)
{
    struct str s;
    struct err e;
    for (const struct json *v = json_first(list); v; v = json_next(list, v))
        if (json_as_str(v, 10000, &s, &e) == 0 && str_is(s, word))
            return true;
    return false;
}

static const struct json *mount_at(const struct json *root, const char *at)
{
    const struct json *list = json_find(root, "mounts"), *found = NULL;
    for (const struct json *v = json_first(list); v; v = json_next(list, v))
        if (str_is(text_of(v, "destination"), at))
            found = v;
    return found;
}

static const struct json *namespace_of(const struct json *root, const char *type)
{
    const struct json *list = json_find(json_find(root, "linux"), "namespaces");
    for (const struct json *v = json_first(list); v; v = json_next(list, v))
        if (str_is(text_of(v, "type"), type))
            return v;
    return NULL;
}

static void a_driver_has_its_hooks(void)
{
    static const char *const args[] = { "hook", NULL }, *const none[] = { NULL };
    struct cdi_hook hooks[] = { { "createContainer", "/usr/bin/hook", args, none },
                                { "startContainer", "/inside", args, none } };
    uint32_t gid = 44;
    const struct cdi_edits driver = {
        .hooks = hooks, .n_hooks = ARRAY_LEN(hooks), .gids = &gid, .n_gids = 1
    };
    AUTO(world_clear) struct world w;
    world_init(&w);
    w.p.driver = &driver;
    const struct json *root = written(&w);
    const struct json *run = json_find(json_find(root, "hooks"), "createContainer");
    CHECK(json_len(run) == 1 && str_is(text_of(json_first(run), "path"), "/usr/bin/hook"));
    CHECK(!json_find(json_find(root, "hooks"), "startContainer"));
}

static void it_is_the_user_and_nothing_more(void)
{
    AUTO(world_clear) struct world w;
    world_init(&w);
    const struct json *process = json_find(written(&w), "process");
    const struct json *user = json_find(process, "user"),
                      *caps = json_find(process, "capabilities");
    uint64_t uid = 0, gid = 0;
    bool no_more = false;
    struct err e;
    CHECK(json_get_u64(user, "uid", 9999, &uid, &e) == 0 && uid == 1000);
    CHECK(json_get_u64(user, "gid", 9999, &gid, &e) == 0 && gid == 1001);
    CHECK(json_len(json_find(user, "additionalGids")) == 2);
    CHECK(json_get_bool(process, "noNewPrivileges", &no_more, &e) == 0 && no_more);
    static const char *const sets[] = { "bounding", "effective", "inheritable", "permitted",
                                        "ambient" };
    for (size_t i = 0; i < ARRAY_LEN(sets); i++)
        CHECK(json_is_array(json_find(caps, sets[i])) && json_len(json_find(caps, sets[i])) == 0);
    /* The runtime makes a working folder that is missing, as root: it gets none. */
    CHECK(str_is(text_of(process, "cwd"), "/"));
    const struct json *args = json_find(process, "args");
    CHECK(list_has(args, "--chdir") && list_has(args, "/home/ana/x"));
}

static void check_safe(const struct json *root)
{
    const struct json *list = json_find(root, "mounts");
    for (const struct json *v = json_first(list); v; v = json_next(list, v)) {
        const struct json *o = json_find(v, "options");
        CHECK(list_has(o, "nosuid") || list_has(o, "rnosuid"));
        bool dev = strncmp(text_of(v, "destination").p, "/dev", 4) == 0;
        CHECK(dev || list_has(o, "nodev") || list_has(o, "rnodev"));
    }
}

static void every_mount_is_safe(void)
{
    AUTO(world_clear) struct world w;
    world_init(&w);
    w.p.mode = KEEPER_MODE_ROOTLESS;
    w.s.n_volumes = 2;
    w.s.volume[0] = (struct start_volume){ "/data", "/data", true };
    w.s.volume[1] = (struct start_volume){ "/more", "/more", false };
    const struct json *root = written(&w);
    check_safe(root);
    CHECK(list_has(json_find(mount_at(root, "/usr"), "options"), "rro"));
    CHECK(list_has(json_find(mount_at(root, "/etc"), "options"), "rro"));
    CHECK(!mount_at(root, "/bin")); /* a link of the skeleton */
    CHECK(list_has(json_find(mount_at(root, "/data"), "options"), "rro"));
    CHECK(list_has(json_find(mount_at(root, "/more"), "options"), "rw"));
    CHECK(str_is(text_of(mount_at(root, "/more"), "source"), "/run/ns/mnt/2"));
    CHECK(str_is(text_of(mount_at(root, "/home/ana"), "source"), "/home/ana"));
    CHECK(str_is(text_of(mount_at(root, BUNDLE_INIT), "source"), "/usr/lib/ns/nightshift-init"));
    CHECK(list_has(json_find(mount_at(root, "/dev/shm"), "options"), "size=512m"));
    bool read_only = false;
    struct err e;
    CHECK(json_get_bool(json_find(root, "root"), "readonly", &read_only, &e) == 0 && read_only);
}

/* As root the runtime makes what is missing as root, wherever a link leads: it gets nothing of the user's. */
static void as_root_the_runtime_mounts_the_kernels_own_only(void)
{
    AUTO(world_clear) struct world w;
    world_init(&w);
    w.p.init = NULL;
    w.p.node = two_nodes;
    w.s.n_volumes = 1;
    w.s.volume[0] = (struct start_volume){ "/data", "/data", true };
    const struct json *root = written(&w), *list = json_find(root, "mounts");
    check_safe(root);
    for (const struct json *v = json_first(list); v; v = json_next(list, v)) {
        const char *at = text_of(v, "destination").p;
        CHECK(strncmp(at, "/proc", 5) == 0 || strncmp(at, "/dev", 4) == 0 ||
              strncmp(at, "/sys", 4) == 0);
    }
    CHECK(list_has(json_find(mount_at(root, "/sys"), "options"), "ro"));
    CHECK(list_has(json_find(json_find(root, "process"), "args"), "/proc/self/fd/9"));
}

static void an_image_may_be_written_to(void)
{
    AUTO(world_clear) struct world w;
    world_init(&w);
    w.p.host = NULL;
    const struct json *root = written(&w);
    bool read_only = true;
    struct err e;
    CHECK(!mount_at(root, "/usr"));
    CHECK(json_get_bool(json_find(root, "root"), "readonly", &read_only, &e) == 0 && !read_only);
}

static void networks_are_given_or_empty(void)
{
    AUTO(world_clear) struct world none, tenant, rootless;
    world_init(&none);
    world_init(&tenant);
    world_init(&rootless);
    CHECK(!json_find(namespace_of(written(&none), "network"), "path"));
    tenant.p.netns = "/run/ns/netns/x";
    CHECK(str_is(text_of(namespace_of(written(&tenant), "network"), "path"), "/run/ns/netns/x"));
    rootless.p.mode = KEEPER_MODE_ROOTLESS;
    const struct json *root = written(&rootless), *map;
    CHECK(!namespace_of(root, "network") && namespace_of(root, "user"));
    map = json_first(json_find(json_find(root, "linux"), "uidMappings"));
    uint64_t v = 0;
    struct err e;
    CHECK(json_get_u64(map, "containerID", 9999, &v, &e) == 0 && v == 1000);
    CHECK(json_get_u64(map, "hostID", 9999, &v, &e) == 0 && v == 1000);
    CHECK(json_get_u64(map, "size", 9999, &v, &e) == 0 && v == 1);
    CHECK(!json_find(json_find(json_find(root, "process"), "user"), "additionalGids"));
    CHECK(str_is(text_of(mount_at(root, "/sys"), "type"), "none"));
}

static bool env_has(const char *const *env, const char *want)
{
    for (; *env; env++)
        if (strcmp(*env, want) == 0)
            return true;
    return false;
}

static void the_environment_is_completed(void)
{
    AUTO(world_clear) struct world w;
    world_init(&w);
    static const char *const given[] = { "CUDA_VISIBLE_DEVICES=9", "HOME=/elsewhere", "A=b", NULL };
    w.s.env = given;
    w.s.n_env = 3;
    const char *const *env = bundle_env(&w.s, &w.a);
    CHECK(env_has(env, "A=b") && env_has(env, "HOME=/elsewhere") && env_has(env, "USER=ana"));
    CHECK(!env_has(env, "HOME=/home/ana"));
    CHECK(env_has(env, "CUDA_VISIBLE_DEVICES=") && env_has(env, "NVIDIA_VISIBLE_DEVICES=void"));
    CHECK(!env_has(env, "CUDA_VISIBLE_DEVICES=9")); /* which GPUs is not the job's to say */
    w.s.n_gpus = 2;
    w.s.gpu[0].uuid = "GPU-a";
    w.s.gpu[1].uuid = "GPU-b";
    CHECK(env_has(bundle_env(&w.s, &w.a), "CUDA_VISIBLE_DEVICES=GPU-a,GPU-b"));
}

static void only_its_own_nodes(void)
{
    AUTO(world_clear) struct world w;
    world_init(&w);
    w.p.node = two_nodes;
    w.p.dev = "/fake";
    const struct json *root = written(&w);
    CHECK(str_is(text_of(mount_at(root, "/dev/nvidia3"), "source"), "/fake/nvidia3"));
    CHECK(mount_at(root, "/dev/nvidiactl") && !mount_at(root, "/dev/nvidia0"));
    CHECK(!list_has(json_find(mount_at(root, "/dev/nvidia3"), "options"), "nodev"));
}

static void the_supervisor_is_called_rightly(void)
{
    AUTO(world_clear) struct world w;
    world_init(&w);
    w.s.tty = true;
    const struct bundle_begin begin = { .folder = "/x", .note = "so" };
    const char *const *argv = bundle_argv(&w.s, "/i", &begin, &w.a);
    static const char *const want[] = { "/i", "--tty",         "--log-bytes", "1048576", "--chdir",
                                        "/x", "--note",        "so",          "--",      "python",
                                        "-c", "print(\"hi\")", NULL };
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        CHECK_STR(argv[i], want[i]);
    char name[64];
    CHECK_STR(bundle_hostname("17.1.0", name), "job-17");
    CHECK_STR(bundle_hostname("17.3.12", name), "job-17-12");
}

/* Which answer the call gets, "" when no rule names it alone. */
static int refused_with(const struct json *seccomp, const char *call)
{
    const struct json *rules = json_find(seccomp, "syscalls");
    uint64_t errno_ret = 0;
    struct err e;
    for (const struct json *r = json_first(rules); r; r = json_next(rules, r))
        if (!json_find(r, "args") && list_has(json_find(r, "names"), call) &&
            json_find(r, "errnoRet"))
            CHECK(json_get_u64(r, "errnoRet", 9999, &errno_ret, &e) == 0);
    return (int)errno_ret;
}

static bool is_allowed(const struct json *seccomp, const char *call)
{
    const struct json *rules = json_find(seccomp, "syscalls");
    for (const struct json *r = json_first(rules); r; r = json_next(rules, r))
        if (!json_find(r, "args") && str_is(text_of(r, "action"), "SCMP_ACT_ALLOW"))
            return list_has(json_find(r, "names"), call);
    return false;
}

static void dangerous_calls_are_refused(void)
{
    AUTO(world_clear) struct world w;
    world_init(&w);
    const struct json *s = json_find(json_find(written(&w), "linux"), "seccomp");
    static const char *const denied[] = {
        "mount",           "unshare",     "setns",       "bpf",
        "keyctl",          "reboot",      "init_module", "open_by_handle_at",
        "perf_event_open", "userfaultfd", "kexec_load",  "swapon",
        "clock_settime",   "socketcall"
    };
    for (size_t i = 0; i < ARRAY_LEN(denied); i++)
        CHECK_AT(i, refused_with(s, denied[i]) == 1);
    CHECK(refused_with(s, "clone3") == 38 && refused_with(s, "io_uring_setup") == 38);
    CHECK(is_allowed(s, "ptrace") && is_allowed(s, "openat2") && is_allowed(s, "mbind"));
    for (size_t i = 0; i < ARRAY_LEN(denied); i++)
        CHECK_AT(i, !is_allowed(s, denied[i]));
    CHECK(!is_allowed(s, "clone3") && !is_allowed(s, "io_uring_enter"));
    static const char *const by_argument[] = { "clone", "socket", "ioctl", "personality" };
    for (size_t i = 0; i < ARRAY_LEN(by_argument); i++)
        CHECK_AT(i, !is_allowed(s, by_argument[i]));
    CHECK(str_is(text_of(s, "defaultAction"), "SCMP_ACT_ERRNO"));
}

static void limits_do_not_pass_ours(void)
{
    AUTO(world_clear) struct world w;
    world_init(&w);
    const struct json *list = json_find(json_find(written(&w), "process"), "rlimits");
    const struct json *files = json_first(list), *core = json_next(list, files);
    uint64_t v = 0;
    struct err e;
    CHECK(json_get_u64(files, "hard", 9999, &v, &e) == 0 && v == 4096);
    CHECK(json_get_u64(files, "soft", 9999, &v, &e) == 0 && v == 4096);
    CHECK(json_get_u64(core, "soft", 9999, &v, &e) == 0 && v == 0);
    CHECK(json_get_u64(core, "hard", 9999, &v, &e) == 0 && v == 1000);
}

static const struct test tests[] = {
    { "a driver's hooks are run, those that are the driver's", a_driver_has_its_hooks },
    { "it runs as its user, without capabilities", it_is_the_user_and_nothing_more },
    { "no mount lets setuid files or devices count", every_mount_is_safe },
    { "as root the runtime mounts /proc, /sys and /dev only",
      as_root_the_runtime_mounts_the_kernels_own_only },
    { "an image's root may be written to", an_image_may_be_written_to },
    { "a network is given, empty, or the host's without root", networks_are_given_or_empty },
    { "the environment is completed; GPUs are ours to name", the_environment_is_completed },
    { "only the nodes of its own GPUs are there", only_its_own_nodes },
    { "the supervisor is called as it expects", the_supervisor_is_called_rightly },
    { "dangerous system calls are refused, debuggers are not", dangerous_calls_are_refused },
    { "limits do not pass our own", limits_do_not_pass_ours },
};
TEST_CASES(tests)
