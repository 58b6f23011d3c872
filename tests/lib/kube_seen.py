"""kube_seen - what can be waited for instead of a time: changes of pods, passes of the daemon, answers of the API server.

What must not happen is looked for after an event after which it cannot happen any more: the daemon has decided so
often since, it has asked so often since, or it has placed a pod that was made later."""
import contextlib
import http.client
import itertools
import json
import re
import threading
import time

import cluster as cl
from kube_cluster import Refused, images

PASSES = re.compile(r"^nightshift_passes_total (\d+)$", re.M)
REVIEWED = 5  # passes; one that waits has been looked at again and again
ANSWERS = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.M)
LABEL = re.compile(r'(\w+)="([^"]*)"')
numbers = itertools.count(1)


class Pods:
    """Hears every change of pods, in order and none left out, whatever becomes of the connection.

    hear(kind, pod): ADDED, MODIFIED or DELETED, in a thread of its own; .there has them by uid."""

    def __init__(self, rig, hear, selector=""):
        self.rig, self.hear, self.selector = rig, hear, selector
        self.there, self.version, self.lock = {}, None, threading.Lock()
        self.over, self.connection = False, None
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        with contextlib.suppress(OSError, AttributeError):
            self.connection.sock.shutdown(2)
        self.thread.join(10)

    def _ask(self, path):
        self.connection = http.client.HTTPSConnection(self.rig.address, self.rig.ports["apiserver"], timeout=cl.PATIENCE_S,
                                                      context=self.rig.context)
        self.connection.request("GET", path)
        answer = self.connection.getresponse()
        if answer.status != 200:
            raise OSError(answer.status)
        return answer

    def _run(self):
        while not self.over:
            try:
                if self.version is None:
                    self._list()
                self._watch()
            except (OSError, http.client.HTTPException, ValueError, AttributeError):
                time.sleep(0.1)  # it is asked again
            finally:
                self.connection.close()

    def _path(self, more):
        return f"/api/v1/pods?labelSelector={self.selector}{more}"

    def _list(self):
        answer = json.loads(self._ask(self._path("")).read())
        now = {one["metadata"]["uid"]: one for one in answer["items"]}
        for uid in set(self.there) - set(now):
            self._take("DELETED", self.there[uid])
        for one in now.values():
            self._take("MODIFIED" if one["metadata"]["uid"] in self.there else "ADDED", one)
        self.version = answer["metadata"]["resourceVersion"]

    def _watch(self):
        answer = self._ask(self._path(f"&watch=1&timeoutSeconds=1800&resourceVersion={self.version}"))
        while not self.over:
            line = answer.readline()
            if not line:
                return
            event = json.loads(line)
            if event["type"] not in ("ADDED", "MODIFIED", "DELETED"):
                self.version = None  # it is too old: all of them anew
                return
            self._take(event["type"], event["object"])
            self.version = event["object"]["metadata"]["resourceVersion"]

    def _take(self, kind, pod):
        with self.lock:
            if kind == "DELETED":
                self.there.pop(pod["metadata"]["uid"], None)
            else:
                self.there[pod["metadata"]["uid"]] = pod
            self.hear(kind, pod)

    def _is_up_to_date(self):
        now = {one["metadata"]["uid"]: one["metadata"]["resourceVersion"] for one in self.rig.get(self._path(""))["items"]}
        with self.lock:
            return now == {uid: one["metadata"]["resourceVersion"] for uid, one in self.there.items()}

    def caught_up(self):
        """Returns when all that has happened by now was heard."""
        self.rig.wait(self._is_up_to_date, "all changes of pods are heard")


def passes(c):
    """How often the daemon that runs now has decided."""
    return int(PASSES.search(c.ask("GET", "/metrics"))[1])


def decided(c, times=REVIEWED):
    """Returns when the daemon has decided so often since, of itself: jobs wait, so it looks at them again and again."""
    until = passes(c) + times
    cl.wait_for(f"{times} passes", lambda: passes(c) >= until)


def answers(rig, verb, resource, **labels):
    """How many requests the API server that runs now has answered: subresource, code and so on."""
    wanted = {"verb": verb, "resource": resource, **labels}
    found = 0
    for text, value in ANSWERS.findall(rig.get("/metrics")):
        has = dict(LABEL.findall(text))
        if all(has[key] == what for key, what in wanted.items()):
            found += int(float(value))
    return found


def asked(rig, verb, resource, times=2, **labels):
    """Returns when so many more of them were answered; two, since the first may have been under way."""
    until = answers(rig, verb, resource, **labels) + times
    rig.wait(lambda: answers(rig, verb, resource, **labels) >= until, f"{times} more of {verb} {resource}")


def placed_another(c, ns="default"):
    """Returns when the daemon has placed a pod that is made now, and has let go of it: whatever waits was looked at."""
    name, path = f"marker{next(numbers)}", f"/api/v1/namespaces/{ns}/pods"
    sizes = {"cpu": "10m", "memory": "1Mi"}
    c.rig.post(path, {"metadata": {"name": name}, "spec": {
        "schedulerName": "nightshift", "terminationGracePeriodSeconds": 0,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "c", "image": images.BUSYBOX,
                        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                        "resources": {"requests": sizes, "limits": sizes}}]}})
    cl.wait_for(f"{name} is placed", lambda: c.rig.get(f"{path}/{name}")["spec"].get("nodeName"))
    with contextlib.suppress(Refused):
        c.rig.delete(f"{path}/{name}?gracePeriodSeconds=0")
    cl.wait_for(f"{name} is gone", lambda: name not in {p["metadata"]["name"] for p in c.pods(ns)})
    cl.wait_for(f"its job is over", lambda: not any(j["name"] == name and j["state"] not in cl.ENDED
                                                    for j in c.ask("GET", "/v1/jobs?limit=500")["jobs"]))
