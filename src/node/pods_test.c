#include "node/pods.h"

#include <stdio.h>

#include "tests/lib/test.h"

#define UID "0f3a6b1c-7d52-4c86-9e52-a1b2c3d4e5f6"
#define UID_ "0f3a6b1c_7d52_4c86_9e52_a1b2c3d4e5f6"
#define HASH "d41d8cd98f00b204e9800998ecf8427e" /* of a pod that is a file on the node */
#define NUMBER "3f1d2c0b5a4e6f7d8c9b0a1f2e3d4c5b6a7f8e9d0c1b2a3f4e5d6c7b8a9f0e1d"

static void paths_of_both_drivers_name_the_container(void)
{
    static const struct {
        const char *path, *uid;
    } good[] = {
        { "/kubepods/burstable/pod" UID "/" NUMBER, UID },
        { "/kubepods/pod" UID "/" NUMBER, UID },
        { "/kubepods/besteffort/pod" UID "/" NUMBER "/init.scope", UID },
        { "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_
          ".slice/cri-containerd-" NUMBER ".scope",
          UID },
        { "/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" NUMBER ".scope", UID },
        { "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_
          ".slice/cri-containerd-" NUMBER ".scope/sub",
          UID },
        { "/system.slice/containerd.service/kubepods-besteffort-pod" UID_
          ".slice:cri-containerd:" NUMBER,
          UID },
        { "/kubepods/burstable/pod" HASH "/" NUMBER, HASH },
        { "/../../kubepods/pod" UID "/" NUMBER, UID },
    };
    static const char *const bad[] = {
        "",
        "/",
        "/user.slice/user-0.slice",
        "/kubepods/burstable/pod" UID,
        "/kubepods/burstable/" NUMBER,
        "/docker/" NUMBER,
        "/pod" UID "/" NUMBER,
        "/kubepods/podium/" NUMBER,
        "/kubepods/xpod" UID "/" NUMBER,
        "/kubepods/pod" UID "/not-a-number",
        "/nightshift/17.1.0",
    };
    char uid[40], container[72];
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        CHECK(pods_cgroup(str_of(good[i].path), uid, container));
        CHECK_STR(uid, good[i].uid);
        CHECK_STR(container, NUMBER);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(!pods_cgroup(str_of(bad[i]), uid, container));
}

static void pods_of_ours_are_their_tasks(void)
{
    static const char *const bad[] = { "nightshift-17-1",  "nightshift-17-1-0-0",
                                       "nightshift-a-1-0", "nightshift-17-01-0",
                                       "web-17-1-0",       "nightshift-17-1-",
                                       "nightshift",       "" };
    char task[40];
    CHECK(pods_task(STR("nightshift-17-1-0"), task));
    CHECK_STR(task, "17.1.0");
    CHECK(pods_task(STR("nightshift-18446744073709551615-4294967295-4294967295"), task));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(!pods_task(str_of(bad[i]), task));
}

static void a_machine_without_a_kubelet_has_no_pods(void)
{
    struct pods *p =
        pods_new(&(struct pods_places){ "/nowhere/kubelet.sock", "/nowhere", "/proc", "" });
    AUTO(free_p) struct report_head *h = report_head_new();
    AUTO(free_p) struct report_sample *s = report_sample_new();
    char who[REPORT_WHO_MAX];
    s->kubelet[REPORT_KUBELET_PODS] = 7;
    pods_refresh(p, 1);
    pods_add_given(p, h, NULL, s);
    CHECK(s->givens == 0 && s->kubelet[REPORT_KUBELET_PODS] == REPORT_UNKNOWN);
    CHECK(pods_of_process(p, 1, who) == PODS_NONE);
    pods_free(p);
}

static const struct test tests[] = {
    { "paths of both drivers name the container", paths_of_both_drivers_name_the_container },
    { "pods of ours are their tasks", pods_of_ours_are_their_tasks },
    { "a machine without a kubelet has no pods", a_machine_without_a_kubelet_has_no_pods },
};
TEST_CASES(tests)
