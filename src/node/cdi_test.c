#include "node/cdi.h"

#include "tests/fakes/host.h"
#include "tests/lib/test.h"

/* As nvidia-ctk writes it. */
static const char spec_yaml[] = "---\n"
                                "cdiVersion: 0.5.0\n"
                                "kind: nvidia.com/gpu\n"
                                "containerEdits:\n"
                                "  env:\n"
                                "  - NVIDIA_VISIBLE_DEVICES=void\n"
                                "  deviceNodes:\n"
                                "  - path: /dev/nvidiactl\n"
                                "  - path: /dev/nvidia-uvm\n"
                                "    hostPath: /host/dev/nvidia-uvm\n"
                                "    type: c\n"
                                "    major: 510\n"
                                "    minor: 0\n"
                                "    fileMode: 438\n"
                                "    permissions: rw\n"
                                "  mounts:\n"
                                "  - hostPath: /usr/lib/libcuda.so.1\n"
                                "    containerPath: /usr/lib/libcuda.so.1\n"
                                "    options: [ro, nosuid, bind]\n"
                                "  hooks:\n"
                                "  - hookName: createContainer\n"
                                "    path: /usr/bin/nvidia-ctk\n"
                                "    args: [nvidia-ctk, hook, update-ldcache]\n"
                                "  additionalGids: [44]\n"
                                "devices:\n"
                                "- name: \"0\"\n"
                                "  containerEdits:\n"
                                "    deviceNodes:\n"
                                "    - path: /dev/nvidia0\n"
                                "- name: GPU-1234\n"
                                "  annotations: {x: y}\n"
                                "  containerEdits:\n"
                                "    deviceNodes:\n"
                                "    - path: /dev/nvidia0\n"
                                "- name: \"1\"\n"
                                "  containerEdits:\n"
                                "    env: [A=1]\n"
                                "    deviceNodes:\n"
                                "    - path: /dev/nvidia1\n";

static void a_spec_is_read_in_full(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct cdi_spec s;
    struct err e = { 0 };
    int rc = cdi_parse(STR(spec_yaml), true, &a, &s, &e);
    CHECK_STR(e.msg, "");
    CHECK(rc == 0 && s.n_devices == 3);
    CHECK_STR(s.kind, "nvidia.com/gpu");
    CHECK(s.common.n_nodes == 2 && s.common.n_mounts == 1 && s.common.n_hooks == 1);
    const struct cdi_node *ctl = &s.common.nodes[0], *uvm = &s.common.nodes[1];
    CHECK_STR(ctl->path, "/dev/nvidiactl");
    CHECK_STR(ctl->host_path, "/dev/nvidiactl");
    CHECK_STR(ctl->permissions, "rwm");
    CHECK(ctl->type == 0 && ctl->major == CDI_UNSET && ctl->mode == CDI_UNSET);
    CHECK_STR(uvm->host_path, "/host/dev/nvidia-uvm");
    CHECK_STR(uvm->permissions, "rw");
    CHECK(uvm->type == 'c' && uvm->major == 510 && uvm->minor == 0 && uvm->mode == 0666);
    CHECK_STR(s.common.mounts[0].options[2], "bind");
    CHECK(s.common.mounts[0].options[3] == NULL);
    CHECK_STR(s.common.hooks[0].name, "createContainer");
    CHECK_STR(s.common.hooks[0].args[2], "update-ldcache");
    CHECK(s.common.hooks[0].env[0] == NULL);
    CHECK(s.common.n_env == 1 && s.common.n_gids == 1 && s.common.gids[0] == 44);
    CHECK_STR(s.devices[1].name, "GPU-1234");
    CHECK_STR(s.devices[1].edits.nodes[0].path, "/dev/nvidia0");
}

static void json_and_yaml_say_the_same(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct cdi_spec s;
    struct err e;
    CHECK(cdi_parse(STR("{\"cdiVersion\":\"0.6.0\",\"kind\":\"amd.com/gpu\",\"devices\":[{\"name\":"
                        "\"0\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/kfd\"}]}}]}"),
                    false, &a, &s, &e) == 0);
    CHECK(s.n_devices == 1 && s.common.n_nodes == 0);
    CHECK_STR(s.devices[0].edits.nodes[0].path, "/dev/kfd");
}

static void what_is_wrong_is_named(void)
{
#define HEAD "cdiVersion: 0.5.0\nkind: a.b/c\n"
#define NODE HEAD "devices:\n- name: x\n  containerEdits:\n    deviceNodes:\n    - "
    static const struct {
        const char *text, *msg;
    } cases[] = {
        { "kind: a/b\n", "field 'cdiVersion' is missing" },
        { "cdiVersion: 1\nkind: a/b\n", "field 'cdiVersion': must be a string, not a number" },
        { "cdiVersion: 0.5.0\nkind: gpu\n", "kind 'gpu' is not of the form vendor/class" },
        { "cdiVersion: 0.5.0\nkind: a/b=c\n", "kind 'a/b=c' is not of the form vendor/class" },
        { "[]", "is not an object with cdiVersion, kind and devices" },
        { HEAD "devices: 4\n", "field 'devices': must be a list" },
        { HEAD "devices:\n- containerEdits: {}\n", "devices, item 1: field 'name' is missing" },
        { HEAD "devices:\n- name: a=b\n", "devices, item 1: 'a=b' is not a name for a device" },
        { HEAD "containerEdits: 3\n", "field 'containerEdits': must be an object" },
        { HEAD "containerEdits: {env: [A]}\n", "env: 'A' is not NAME=value" },
        { HEAD "containerEdits: {env: [=A]}\n", "env: '=A' is not NAME=value" },
        { HEAD "containerEdits: {env: [1]}\n", "env, item 1: must be a string, not a number" },
        { HEAD "containerEdits: {env: [\"A=\\0\"]}\n", "env, item 1: has a NUL character in it" },
        { NODE "path: dev/x\n", "devices, item 1: device 'x': deviceNodes, item 1: field 'path': "
                                "'dev/x' is not an absolute path without '..'" },
        { NODE "path: /dev/../etc\n",
          "devices, item 1: device 'x': deviceNodes, item 1: field 'path': '/dev/../etc' is not an "
          "absolute path without '..'" },
        { NODE "path: /dev/..\n",
          "devices, item 1: device 'x': deviceNodes, item 1: field 'path': '/dev/..' is not an "
          "absolute path without '..'" },
        { NODE "{path: /d, permissions: rx}\n",
          "devices, item 1: device 'x': deviceNodes, item 1: permissions 'rx' are not made of r, w "
          "and m" },
        { NODE "{path: /d, type: cc}\n", "devices, item 1: device 'x': deviceNodes, item 1: device "
                                         "type 'cc' is not b, c, u or p" },
        { NODE "{path: /d, major: -1}\n",
          "devices, item 1: device 'x': deviceNodes, item 1: field 'major': must be a whole number "
          "from 0 to 4294967295" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(arena_free) struct arena a = { 0 };
        struct cdi_spec s;
        struct err e = { 0 };
        CHECK(cdi_parse(str_of(cases[i].text), true, &a, &s, &e) < 0);
        CHECK_STR(e.msg, cases[i].msg);
    }
    /* Two dots inside a name are no way up. */
    AUTO(arena_free) struct arena a = { 0 };
    struct cdi_spec s;
    struct err e;
    CHECK(cdi_parse(STR(NODE "path: /dev/..x/a..b\n"), true, &a, &s, &e) == 0);
}

static struct cdi *open_fake(const struct fake_host *h)
{
    static char etc[128], run[128];
    static const char *const folders[] = { etc, run };
    snprintf(etc, sizeof etc, "%s/etc/cdi", h->root);
    snprintf(run, sizeof run, "%s/run/cdi", h->root);
    return cdi_open(folders, ARRAY_LEN(folders));
}

static void devices_are_put_together_and_nothing_comes_twice(void)
{
    static const char *const names[] = { "nvidia.com/gpu=0", "nvidia.com/gpu=GPU-1234",
                                         "nvidia.com/gpu=1" };
    AUTO(fake_clear) struct fake_host h;
    AUTO(arena_free) struct arena a = { 0 };
    struct cdi_edits d;
    struct err e;
    fake_init(&h);
    fake_file(&h, "/etc/cdi/nvidia.yaml", spec_yaml);
    AUTO(cdi_close_p) struct cdi *c = open_fake(&h);
    CHECK(cdi_problem(c, 0) == NULL);
    CHECK(cdi_has(c, names[0]) && cdi_has(c, names[1]));
    CHECK(!cdi_has(c, "nvidia.com/gpu=7") && !cdi_has(c, "nvidia.com/gpu") && !cdi_has(c, ""));
    CHECK(cdi_resolve(c, names, 3, &a, &d, &e) == 0);
    CHECK(d.n_nodes == 4 && d.n_mounts == 1 && d.n_env == 2 && d.n_gids == 1 && d.n_hooks == 1);
    CHECK_STR(d.nodes[2].path, "/dev/nvidia0");
    CHECK_STR(d.nodes[3].path, "/dev/nvidia1");
    CHECK(cdi_resolve(c, names, 0, &a, &d, &e) == 0 && d.n_nodes == 0);
    const char *missing = "nvidia.com/gpu=9";
    CHECK(cdi_resolve(c, &missing, 1, &a, &d, &e) < 0 && e.code == ERR_NOT_FOUND);
    CHECK_STR(e.msg, "no CDI spec has the device 'nvidia.com/gpu=9'");
    CHECK(strstr(e.hint, "nvidia-ctk"));
}

static void a_later_folder_wins_and_rivals_in_one_are_refused(void)
{
    static const char one[] = HEAD "devices:\n- name: x\n  containerEdits: {env: [A=1]}\n";
    static const char two[] = HEAD "devices:\n- name: x\n  containerEdits: {env: [A=2]}\n";
    const char *name = "a.b/c=x";
    AUTO(fake_clear) struct fake_host h;
    AUTO(arena_free) struct arena a = { 0 };
    struct cdi_edits d;
    struct err e;
    fake_init(&h);
    fake_file(&h, "/etc/cdi/a.yaml", one);
    fake_file(&h, "/etc/cdi/b.yaml", one);
    AUTO(cdi_close_p) struct cdi *c = open_fake(&h);
    CHECK(!cdi_has(c, name) && cdi_resolve(c, &name, 1, &a, &d, &e) < 0 && e.code == ERR_CONFLICT);
    CHECK(strstr(e.msg, "a.yaml") && strstr(e.msg, "b.yaml"));
    fake_file(&h, "/run/cdi/a.yaml", two);
    cdi_close(c);
    c = open_fake(&h);
    CHECK(cdi_resolve(c, &name, 1, &a, &d, &e) == 0 && d.n_env == 1);
    CHECK_STR(d.env[0], "A=2");
}

static void a_broken_spec_is_told_and_hides_nothing(void)
{
    AUTO(fake_clear) struct fake_host h;
    fake_init(&h);
    fake_file(&h, "/etc/cdi/bad.yaml", "a: [\n");
    fake_file(&h, "/etc/cdi/nvidia.yaml", spec_yaml);
    fake_file(&h, "/etc/cdi/notes.txt", "not a spec");
    fake_file(&h, "/run/cdi/bad.json", "{}");
    AUTO(cdi_close_p) struct cdi *c = open_fake(&h);
    CHECK(cdi_has(c, "nvidia.com/gpu=0"));
    CHECK(cdi_problem(c, 0) && strstr(cdi_problem(c, 0)->msg, "/etc/cdi/bad.yaml: not valid YAML"));
    CHECK(cdi_problem(c, 1) && strstr(cdi_problem(c, 1)->msg, "bad.json: field 'cdiVersion'"));
    CHECK(cdi_problem(c, 2) == NULL);
}

static const struct test tests[] = {
    { "a spec is read in full", a_spec_is_read_in_full },
    { "JSON and YAML say the same", json_and_yaml_say_the_same },
    { "what is wrong is named", what_is_wrong_is_named },
    { "devices are put together and nothing comes twice",
      devices_are_put_together_and_nothing_comes_twice },
    { "a later folder wins, and rivals in one are refused",
      a_later_folder_wins_and_rivals_in_one_are_refused },
    { "a broken spec is told and hides nothing", a_broken_spec_is_told_and_hides_nothing },
};
TEST_CASES(tests)
