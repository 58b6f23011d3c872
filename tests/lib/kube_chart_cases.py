"""kube_chart_cases - the Helm chart and tenants on a real API server: rendered, installed, upgraded, removed, and
every verb of every role executed."""
import base64
import json
import os
import subprocess
import sys
import tempfile

import yaml

import kube_site as ks
from cases import Cases, Skip, same
from patience import PATIENCE_S
from kube_site import BUILD, CHART, DAEMON, HOME, Site, helm, pod, print_tenant, spec, template

case = Cases()
VISION, SPEECH = "nightshift-vision", "nightshift-speech"

# Values that people may have, by what is special about them.
VALUES = {
    "none": {},
    "an address of MetalLB": {
        "service": {"type": "LoadBalancer", "annotations": {"metallb.io/address-pool": "lab"},
                    "loadBalancerSourceRanges": ["192.0.2.0/24"]},
        "externalURL": "https://gpu.lab.example", "tls": {"hosts": ["gpu.lab.example", "192.0.2.10"]}},
    "an ingress": {"ingress": {"enabled": True, "host": "gpu.lab.example", "className": "nginx", "tlsSecret": "gpu"},
                   "tls": {"mode": "none"}, "trustedProxies": ["10.42.0.0/16"]},
    "a certificate that is there": {"tls": {"mode": "existing", "secret": "gpu-lab"}, "service": {"type": "NodePort", "nodePort": 30443}},
    "cert-manager": {"tls": {"mode": "certManager", "issuer": {"name": "letsencrypt"}, "hosts": ["gpu.lab.example"]}},
    "everything": {
        "image": {"repository": "registry.lab.example/nightshift", "digest": "sha256:" + "0" * 64},
        "imagePullSecrets": ["registry"], "persistence": {"accessMode": "ReadWriteOnce", "storageClass": "fast", "size": "50Gi"},
        "jobs": {"image": "pytorch:2", "initImage": "init:1", "gpuResource": "amd.com/gpu", "storageClass": "nfs",
                 "stateSize": "2Gi", "homeSize": "0", "homeAccess": "ReadWriteMany", "scheduler": "night",
                 "suspendOwners": False},
        "tenants": {"namespacePrefix": "lab-", "userPrefix": "oidc:", "members": {"exec": False, "logs": False}},
        "settings": {"log_level": "debug", "tenants": {"vision": {"weight": 2}}}, "secrets": [{"name": "ldap", "secret": "ldap"}],
        "env": [{"name": "TZ", "value": "Europe/Berlin"}], "nodeSelector": {"role": "infra"},
        "tolerations": [{"key": "infra", "operator": "Exists"}], "podAnnotations": {"a": "b"}, "podLabels": {"c": "d"},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}}},
        "networkPolicy": {"from": [{"ipBlock": {"cidr": "192.0.2.0/24"}}],
                          "egress": [{"ports": [{"protocol": "TCP", "port": 8443}]}]},
        "agent": {"nodeSelector": {"gpu": "yes"}, "tolerations": [{"operator": "Exists"}], "runtimeClassName": "nvidia",
                  "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                      {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]}}}, "priorityClassName": "lab",
                  "capabilities": ["SYS_ADMIN"], "kubeletFolder": "/data/kubelet", "stateFolder": "/data/agent",
                  "metrics": {"port": 9400}, "args": ["--log-level=debug"], "podLabels": {"c": "d"}, "podAnnotations": {"a": "b"},
                  "caSecret": "authority", "server": "https://gpu.lab.example:443"},
        "priorityClassName": "lab", "serviceAccount": {"annotations": {"e": "f"}}},
    "the agent with a driver of its own": {"agent": {"driverLibrary": "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "privileged": True,
                                                     "tokenSecret": "agent-token", "metrics": {"enabled": False}}},
    "no agent": {"agent": {"enabled": False}},
    "no rules of admission": {"tenants": {"admission": False}, "networkPolicy": {"enabled": False}},
}

# What is wrong, and what the message must say of it.
WRONG = [
    ({"servcie": {}}, ["servcie"]),
    ({"service": {"type": "Loadbalancer"}}, ["service/type", "LoadBalancer"]),
    ({"service": {"port": "https"}}, ["service/port", "integer"]),
    ({"persistence": {"size": "ten"}}, ["persistence/size"]),
    ({"persistence": {"accessMode": "ReadWriteMany"}}, ["persistence/accessMode", "ReadWriteOncePod"]),
    ({"tls": {"mode": "letsencrypt"}}, ["tls/mode", "certManager"]),
    ({"tls": {"mode": "existing"}}, ["tls.secret"]),
    ({"tls": {"mode": "certManager"}}, ["tls.issuer.name"]),
    ({"ingress": {"enabled": True}, "tls": {"mode": "none"}}, ["ingress.host"]),
    ({"ingress": {"enabled": True, "host": "a.example"}}, ["tls.mode", "ingress.backendTLS"]),
    ({"tls": {"mode": "none"}, "service": {"type": "LoadBalancer"}}, ["in the clear"]),
    ({"tenants": {"namespacePrefix": "Lab_"}}, ["tenants/namespacePrefix"]),
    ({"tenants": {"namespacePrefix": "a" * 21}}, ["tenants/namespacePrefix"]),
    ({"tenants": {"namespacePrefix": "kube-"}}, ["kube-"]),
    ({"tenants": {"members": {"exec": "yes"}}}, ["tenants/members/exec", "boolean"]),
    ({"agent": {"args": ["log"]}}, ["agent/args"]),
    ({"agent": {"driverLibrary": "libnvidia-ml.so.1"}}, ["agent/driverLibrary"]),
    ({"agent": {"metrics": {"port": 0}}}, ["agent/metrics/port"]),
    ({"agent": {"nodeselector": {}}}, ["nodeselector"]),
    ({"image": {"digest": "latest"}}, ["image/digest"]),
    ({"secrets": [{"name": "ldap"}]}, ["secrets/0", "secret"]),
    ({"uid": 0}, ["uid"]),
    ({"externalURL": "gpu.lab.example"}, ["externalURL"]),
    ({"jobs": {"gpuResource": "gpu"}}, ["jobs/gpuResource"]),
    ({"jobs": {"homeAccess": "ReadWriteOncePod"}}, ["jobs/homeAccess", "ReadWriteMany"]),
]


def rendered(values=None):
    """The objects, as the API server would read them."""
    return [one for one in yaml.safe_load_all(template(values)) if one]


def dry(path):
    return path + ("&" if "?" in path else "?") + "dryRun=All"


# ---- rendered ----

@case("the chart passes a strict lint with all values")
def _(_site):
    for values in VALUES.values():
        helm("lint", "--strict", CHART, values=values)


@case("values that are wrong are refused by name")
def _(_site):
    for values, words in WRONG:
        try:
            template(values)
        except ks.HelmFailed as e:
            missing = [word for word in words if word not in str(e)]
            assert not missing, f"{values}: {missing} not in: {e}"
        else:
            raise AssertionError(f"taken: {values}")


@case("the API server takes every object of every rendering")
def _(site):
    site.kubectl("create", "namespace", "dry")  # a StatefulSet that is there could not be any other
    for name, values in VALUES.items():
        text = template(values, "dry")
        objects = [part for part in text.split("\n---") if part.strip() and "kind: Certificate\n" not in part]
        assert len(objects) > 10, name
        site.kubectl("apply", "--server-side", "--dry-run=server", "--force-conflicts", "--field-manager=helm",
                     "-f", "-", input="\n---".join(objects))


@case("the pod passes the standard \"restricted\" with all values")
def _(site):
    site.kubectl("create", "namespace", "strict")
    site.kubectl("label", "namespace", "strict", "pod-security.kubernetes.io/enforce=restricted")
    site.wait(lambda: site.get("/api/v1/namespaces/strict/serviceaccounts/default"), "its account")
    for name, values in VALUES.items():
        one = next(o for o in rendered(values) if o["kind"] == "StatefulSet")["spec"]["template"]
        for field in ("serviceAccountName", "priorityClassName"):
            one["spec"].pop(field, None)
        one["spec"]["volumes"].append({"name": "state", "emptyDir": {}})
        site.post("/api/v1/namespaces/strict/pods?dryRun=All",
                  {"metadata": {"name": "x", "labels": one["metadata"]["labels"]}, "spec": one["spec"]})


@case("the agent has no rights in the cluster, no capability and nothing of the machine but what it reads")
def _(site):
    objects = rendered()
    one = next(o for o in objects if o["kind"] == "DaemonSet")["spec"]["template"]["spec"]
    same((one["serviceAccountName"], one["automountServiceAccountToken"], one["hostPID"], one.get("hostNetwork")),
         ("nightshift-agent", False, True, None))
    box = one["containers"][0]["securityContext"]
    same((box["capabilities"], box["allowPrivilegeEscalation"], box["readOnlyRootFilesystem"], box.get("privileged")),
         ({"drop": ["ALL"]}, False, True, None))
    writes = {m["name"] for m in one["containers"][0]["volumeMounts"] if not m.get("readOnly")}
    same(writes, {"state", "run"})
    bound = [s["name"] for o in objects if o["kind"] in ("ClusterRoleBinding", "RoleBinding") for s in o["subjects"]
             if s["kind"] == "ServiceAccount"]
    assert "nightshift-agent" not in bound, bound
    assert not [o for o in rendered({"agent": {"enabled": False}}) if "agent" in o["metadata"]["name"]]
    # Its pods are not the daemon's: neither its Service nor its NetworkPolicy means them.
    labels = next(o for o in objects if o["kind"] == "DaemonSet")["spec"]["template"]["metadata"]["labels"]
    service = next(o for o in objects if o["kind"] == "Service")["spec"]["selector"]
    assert not service.items() <= labels.items(), (service, labels)


@case("no secret is in the settings, and none is rendered but the certificate's own")
def _(_site):
    for name, values in VALUES.items():
        kinds = [o["metadata"]["name"] for o in rendered(values) if o["kind"] == "Secret"]
        same(kinds, ["nightshift-tls"] if values.get("tls", {}).get("mode", "selfSigned") == "selfSigned" else [])


@case("the daemon takes the settings that the chart writes")
def _(_site):
    if not os.path.exists(f"{BUILD}/nightshiftd"):
        raise Skip("nightshiftd is not built")
    options = subprocess.run([f"{BUILD}/nightshiftd", "--help"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if "--kube-namespace" not in options.stdout:
        raise Skip("this nightshiftd has no engine kube")
    for name, values in VALUES.items():
        text = next(o for o in rendered(values) if o["kind"] == "ConfigMap")["data"]["nightshift.yaml"]
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            f.write(text)
            f.flush()
            done = subprocess.run([f"{BUILD}/nightshiftd", "--config", f.name, "--print-config"], capture_output=True,
                                  text=True, timeout=PATIENCE_S, check=False)
            assert done.returncode == 0, f"{name}: {done.stderr}"


# ---- installed ----

@case("an upgrade keeps the certificate and the claim, and restarts for new settings")
def _(site):
    secret, claim = f"/api/v1/namespaces/{HOME}/secrets/nightshift-tls", f"/api/v1/namespaces/{HOME}/persistentvolumeclaims/state-nightshift-0"
    states = f"/apis/apps/v1/namespaces/{HOME}/statefulsets/nightshift"
    before = site.get(secret)
    uid = site.wait(lambda: site.get(claim), "the claim is made")["metadata"]["uid"]
    same(site.get(claim)["spec"]["accessModes"], ["ReadWriteOncePod"])
    mark = site.get(states)["spec"]["template"]["metadata"]["annotations"]
    site.helm("upgrade", "nightshift", CHART, values={"settings": {"log_level": "debug"}})
    same(site.get(secret)["data"], before["data"])
    same(site.get(claim)["metadata"]["uid"], uid)
    after = site.get(states)["spec"]["template"]["metadata"]["annotations"]
    assert mark != after, "the pod would keep its old settings"
    site.helm("upgrade", "nightshift", CHART, values={"settings": {"log_level": "debug"}})
    same(site.get(states)["spec"]["template"]["metadata"]["annotations"], after)
    site.helm("upgrade", "nightshift", CHART, values={})


@case("its own certificate is for the service's name, by an authority that people can trust")
def _(site):
    data = site.get(f"/api/v1/namespaces/{HOME}/secrets/nightshift-tls")["data"]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("ca.crt", "tls.crt", "tls.key"):
            with open(f"{folder}/{name}", "wb") as f:
                f.write(base64.b64decode(data[name]))
        done = subprocess.run(["openssl", "verify", "-CAfile", f"{folder}/ca.crt", "-verify_hostname",
                               f"nightshift.{HOME}.svc", f"{folder}/tls.crt"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@case("an upgrade touches no pod but the daemon's")
def _(site):
    def pods():
        return {(p["metadata"]["namespace"], p["metadata"]["name"]): p["metadata"]["uid"]
                for p in site.get("/api/v1/pods")["items"] if p["metadata"]["namespace"] != HOME}
    before = pods()
    site.helm("upgrade", "nightshift", CHART, values={"settings": {"log_level": "warn"}})
    site.helm("upgrade", "nightshift", CHART, values={})
    same(pods(), before)


# ---- who may do what ----

def within(namespace):
    """Rows: verb, what, path, body; and who may: v(iewer), m(ember), l(ead)."""
    core = f"/api/v1/namespaces/{namespace}"
    rows = [
        ("get", "pods", f"{core}/pods/there", None, "vml"),
        ("list", "pods", f"{core}/pods", None, "vml"),
        ("create", "pods", f"{core}/pods", pod("new"), "ml"),
        ("delete", "pods", f"{core}/pods/there", None, "ml"),
        ("deletecollection", "pods", f"{core}/pods", None, "l"),
        ("patch", "pods", f"{core}/pods/there", {"metadata": {"labels": {"a": "b"}}}, ""),
        ("patch", "pods/status", f"{core}/pods/there/status", {"status": {"message": "x"}}, ""),
        ("get", "pods/log", f"{core}/pods/there/log", None, "ml"),
        ("get", "pods/exec", f"{core}/pods/there/exec?command=id&stdout=true", None, "ml"),
        ("create", "pods/exec", f"{core}/pods/there/exec?command=id&stdout=true", None, "ml"),
        ("create", "pods/attach", f"{core}/pods/there/attach?stdout=true", None, "ml"),
        ("create", "pods/portforward", f"{core}/pods/there/portforward", None, "ml"),
        ("create", "pods/binding", f"{core}/pods/there/binding", {"target": {"kind": "Node", "name": "n0"}}, ""),
        ("create", "pods/eviction", f"{core}/pods/there/eviction", {"metadata": {"name": "there"}}, ""),
        ("list", "services", f"{core}/services", None, "vml"),
        ("create", "services", f"{core}/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}, "ml"),
        ("list", "configmaps", f"{core}/configmaps", None, "ml"),
        ("create", "configmaps", f"{core}/configmaps", {"metadata": {"name": "c"}}, "ml"),
        ("list", "secrets", f"{core}/secrets", None, "l"),
        ("get", "secrets", f"{core}/secrets/x", None, "ml"),
        ("create", "secrets", f"{core}/secrets", {"metadata": {"name": "x"}}, "ml"),
        ("list", "persistentvolumeclaims", f"{core}/persistentvolumeclaims", None, "vml"),
        ("delete", "persistentvolumeclaims", f"{core}/persistentvolumeclaims/x", None, "ml"),
        ("list", "events", f"{core}/events", None, "vml"),
        ("create", "events", f"{core}/events", {"metadata": {"name": "e"}}, ""),
        ("get", "resourcequotas", f"{core}/resourcequotas/nightshift", None, "vml"),
        ("patch", "resourcequotas", f"{core}/resourcequotas/nightshift", {"spec": {"hard": {"pods": "9"}}}, ""),
        ("delete", "resourcequotas", f"{core}/resourcequotas/nightshift", None, ""),
        ("patch", "limitranges", f"{core}/limitranges/nightshift", {"spec": {"limits": []}}, ""),
        ("create", "serviceaccounts", f"{core}/serviceaccounts", {"metadata": {"name": "a"}}, ""),
        ("create", "serviceaccounts/token", f"{core}/serviceaccounts/default/token", {"spec": {}}, ""),
        ("patch", "namespaces", core, {"metadata": {"labels": {"a": "b"}}}, ""),
        ("delete", "namespaces", core, None, ""),
    ]
    groups = [("networking.k8s.io/v1", "networkpolicies", "l", "", ""),
              ("rbac.authorization.k8s.io/v1", "rolebindings", "l", "", ""),
              ("rbac.authorization.k8s.io/v1", "roles", "", "", ""),
              ("apps/v1", "daemonsets", "", "", ""),
              ("apps/v1", "deployments", "", "", ""),
              ("coordination.k8s.io/v1", "leases", "", "", ""),
              ("batch/v1", "jobs", "vml", "ml", "l"),
              ("kubeflow.org/v1", "pytorchjobs", "vml", "ml", "l"),
              ("jobset.x-k8s.io/v1alpha2", "jobsets", "vml", "ml", "l"),
              ("ray.io/v1", "rayjobs", "vml", "ml", "l"),
              ("scheduling.x-k8s.io/v1alpha1", "podgroups", "vml", "ml", "l")]
    for version, kind, look, change, collection in groups:
        base = f"/apis/{version}/namespaces/{namespace}/{kind}"
        rows += [("list", kind, base, None, look), ("get", kind, f"{base}/nightshift-deny", None, look),
                 ("create", kind, base, {"metadata": {"name": "x"}}, change),
                 ("patch", kind, f"{base}/x", {"metadata": {"labels": {"a": "b"}}}, change),
                 ("delete", kind, f"{base}/x", None, change), ("deletecollection", kind, base, None, collection)]
    return rows


CLUSTER = [
    ("list", "nodes", "/api/v1/nodes", None), ("list", "namespaces", "/api/v1/namespaces", None),
    ("create", "namespaces", "/api/v1/namespaces", {"metadata": {"name": "mine"}}),
    ("list", "pods of all", "/api/v1/pods", None), ("list", "persistentvolumes", "/api/v1/persistentvolumes", None),
    ("list", "secrets of the daemon", f"/api/v1/namespaces/{HOME}/secrets", None),
    ("get", "its certificate", f"/api/v1/namespaces/{HOME}/secrets/nightshift-tls", None),
    ("get", "its settings", f"/api/v1/namespaces/{HOME}/configmaps/nightshift", None),
    ("create", "exec in its pod", f"/api/v1/namespaces/{HOME}/pods/nightshift-0/exec?command=id", None),
    ("create", "its token", f"/api/v1/namespaces/{HOME}/serviceaccounts/nightshift/token", {"spec": {}}),
    ("patch", "its ClusterRole", "/apis/rbac.authorization.k8s.io/v1/clusterroles/nightshift-tenant-member", {"rules": []}),
    ("create", "a ClusterRoleBinding", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
     {"metadata": {"name": "x"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}}),
    ("delete", "a policy of admission",
     "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/nightshift-tenants", None),
]
METHODS = {"get": "GET", "list": "GET", "create": "POST", "patch": "PATCH", "delete": "DELETE", "deletecollection": "DELETE"}
PEOPLE = {"v": "vera", "m": "max", "l": "lea", "o": "sam"}


def try_row(site, user, verb, path, body):
    if verb == "get" and "/exec" not in path:
        target = path
    elif "/exec" in path or "/attach" in path or "/portforward" in path:
        target = path  # nothing to try dry: no kubelet answers
    else:
        target = dry(path)
    kind = "application/merge-patch+json" if verb == "patch" else "application/json"
    return site.ask_as(user, METHODS[verb], target, body, kind)


@case("every verb on every kind is for those roles that the table says, and for nobody of another tenant")
def _(site):
    wrong, tried = [], 0
    for verb, kind, path, body, who in within(VISION):
        for letter, user in PEOPLE.items():
            answer = try_row(site, user, verb, path, body)
            tried += 1
            if answer.unauthorized == (letter in who):
                wrong.append(f"{user} {verb} {kind}: {answer}")
            if letter in who and answer.status == 403:
                wrong.append(f"{user} {verb} {kind}: {answer}")
    assert not wrong, "\n".join(wrong)
    print(f"# {tried} requests", flush=True)


@case("nobody of a tenant reads or changes what is the cluster's or the daemon's")
def _(site):
    wrong = []
    for verb, kind, path, body in CLUSTER:
        for user in PEOPLE.values():
            answer = try_row(site, user, verb, path, body)
            if not answer.unauthorized:
                wrong.append(f"{user} {verb} {kind}: {answer}")
    assert not wrong, "\n".join(wrong)


@case("nobody makes themselves more than they are")
def _(site):
    body = {"metadata": {"name": "up"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                                                   "name": "nightshift-tenant-lead"},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "max"}]}
    for user in ("max", "lea"):
        answer = site.ask_as(user, "POST", dry(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{VISION}/rolebindings"), body)
        assert answer.unauthorized, f"{user}: {answer}"


@case("with members.exec and members.logs off, members do neither with kubectl")
def _(_site):
    for role in ("member", "lead"):
        rules = next(o for o in rendered(VALUES["everything"]) if o["metadata"]["name"] == f"nightshift-tenant-{role}")["rules"]
        resources = {r for rule in rules for r in rule["resources"]}
        assert "pods/exec" not in resources and "pods/attach" not in resources, role
        same("pods/log" in resources, role == "lead")


# ---- what bounds a tenant ----

@case("a quota cannot be passed")
def _(site):
    path = f"/api/v1/namespaces/{VISION}/pods"
    answer = site.ask_as("max", "POST", dry(path), pod("three", gpus=3))
    assert answer.status == 403 and "exceeded quota: nightshift" in answer.message, answer
    made = site.ask_as("max", "POST", path, pod("two", gpus=2))
    assert made.good, made
    answer = site.ask_as("max", "POST", dry(path), pod("one", gpus=1))
    assert answer.status == 403 and "exceeded quota" in answer.message, answer
    answer = site.ask_as(DAEMON, "POST", dry(path), pod("nightshift-7-1-0", gpus=1))
    assert answer.status == 403 and "exceeded quota" in answer.message, answer
    site.delete(f"{path}/two?gracePeriodSeconds=0")


@case("what a container does not ask for it gets by default, and more than that it may ask for")
def _(site):
    path = dry(f"/api/v1/namespaces/{VISION}/pods")
    resources = site.ask_as("max", "POST", path, pod("plain")).body["spec"]["containers"][0]["resources"]
    same(resources, {"requests": {"cpu": "500m", "memory": "1Gi"}})
    large = pod("large")
    large["spec"]["containers"][0]["resources"] = {"requests": {"memory": "64Gi"}, "limits": {"cpu": "9"}}
    answer = site.ask_as("max", "POST", path, large)
    assert answer.good, answer
    same(answer.body["spec"]["containers"][0]["resources"]["requests"], {"cpu": "9", "memory": "64Gi"})


@case("pods that are not restricted are refused")
def _(site):
    path = dry(f"/api/v1/namespaces/{VISION}/pods")
    for change in ({"hostNetwork": True}, {"hostPID": True}, {"securityContext": {}},
                   {"volumes": [{"name": "h", "hostPath": {"path": "/"}}]}):
        for user in ("max", DAEMON):
            answer = site.ask_as(user, "POST", path, pod("bad", **change))
            assert answer.status == 403 and "violates PodSecurity" in answer.message, f"{change}: {answer}"


def sentence_of(answer):
    assert answer.status in (403, 422), answer
    return answer.message


@case("people's pods do not pass by the scheduler, pretend to be its own or outstay a hand-back")
def _(site):
    path = dry(f"/api/v1/namespaces/{VISION}/pods")
    back = "nightshift.dev/handed-back"
    for words, one in [
            ("schedulerName: nightshift", pod("a", schedulerName="default-scheduler")),
            ("nodeName", pod("b", nodeName="n0")),
            ("system-", pod("c", priorityClassName="system-node-critical")),
            ("names of pods that begin with nightshift-", pod("nightshift-1-1-0")),
            ("nightshift.dev/job", pod("d", metadata={"labels": {"nightshift.dev/job": "1"}})),
            ("another tenant", pod("e", metadata={"annotations": {"nightshift.dev/tenant": "speech"}})),
            (back, pod("f", tolerations=[{"key": back, "operator": "Exists"}])),
            (back, pod("g", tolerations=[{"operator": "Exists"}])),
            (back, pod("h", tolerations=[{"operator": "Exists", "effect": "NoExecute"}]))]:
        answer = site.ask_as("max", "POST", path, one)
        assert words in sentence_of(answer), f"{one['metadata']['name']}: {answer}"
        # And a controller that makes it from their template.
        answer = site.ask_as("system:serviceaccount:kube-system:job-controller", "POST", path, one)
        assert words in sentence_of(answer), f"{one['metadata']['name']}: {answer}"
    ours = pod("nightshift-1-1-0", metadata={"labels": {"nightshift.dev/job": "1"}, "finalizers": ["nightshift.dev/exit"]})
    for user, one in [("max", pod("same", metadata={"labels": {"nightshift.dev/tenant": "vision", "nightshift.dev/user": "max"}})),
                      ("max", pod("i", tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}])), (DAEMON, ours)]:
        answer = site.ask_as(user, "POST", path, one)
        assert answer.good, answer


@case("nobody but the daemon marks a pod as a run of a job, in whatever namespace")
def _(site):
    marks = [{kind: {f"nightshift.dev/{name}": "1"}} for kind in ("labels", "annotations") for name in ("job", "run", "replica")]
    marks.append({"finalizers": ["nightshift.dev/exit"]})
    for mark in marks:  # as an administrator
        for method, path, body in [("post", "/api/v1/namespaces/default/pods", pod("x", metadata=mark)),
                                   ("patch", f"/api/v1/namespaces/{VISION}/pods/there", {"metadata": mark})]:
            try:
                getattr(site, method)(dry(path), body)
            except ks.rigs.Refused as e:
                assert "Nightshift's own jobs" in str(e), e
            else:
                raise AssertionError(f"{method} {mark} went through")
    path = f"/api/v1/namespaces/{VISION}/pods"
    ours = pod("nightshift-2-1-0", metadata={"labels": {"nightshift.dev/job": "2"}, "finalizers": ["nightshift.dev/exit"]})
    made = site.ask_as(DAEMON, "POST", path, ours)
    assert made.good, made
    site.patch(f"{path}/nightshift-2-1-0", {"metadata": {"annotations": {"a": "b"}}})  # by whoever may: the marks are as they were
    site.patch(f"{path}/nightshift-2-1-0", {"metadata": {"finalizers": None}})
    site.delete(f"{path}/nightshift-2-1-0?gracePeriodSeconds=0")


@case("a toleration of a hand-back is not added later, and other updates of a pod go through")
def _(site):
    path = dry(f"/api/v1/namespaces/{VISION}/pods/there")
    tolerations = site.get(f"/api/v1/namespaces/{VISION}/pods/there")["spec"].get("tolerations", [])
    added = {"spec": {"tolerations": tolerations + [{"key": "nightshift.dev/handed-back", "operator": "Exists"}]}}
    try:
        site.patch(path, added)
    except ks.rigs.Refused as e:
        assert "its owner has back" in str(e), e
    else:
        raise AssertionError("it was added")
    site.patch(path, {"metadata": {"labels": {"a": "b"}}})


@case("the network of a tenant lets through names and itself, and nothing else")
def _(site):
    found = {one["metadata"]["name"]: one["spec"] for one in
             site.get(f"/apis/networking.k8s.io/v1/namespaces/{VISION}/networkpolicies")["items"]}
    kube = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
    same(found, {
        "nightshift-deny": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
        "nightshift-dns": {"podSelector": {}, "policyTypes": ["Egress"], "egress": [
            {"to": [kube], "ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]}]},
        "nightshift-tenant": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"],
                              "ingress": [{"from": [{"podSelector": {}}]}], "egress": [{"to": [{"podSelector": {}}]}]}})


# ---- the daemon ----

@case("what the daemon makes of a tenant does not change when it is made again")
def _(site):
    objects = print_tenant("--limit", "gpus=2000", "--member", "vera=viewer", "--member", "max=member",
                           "--member", "lea=lead", "vision")
    paths = [one["path"].split("?")[0] for one in objects]

    def versions():
        return [site.get(path)["metadata"]["resourceVersion"] for path in paths if not path.endswith("resourcequotas/nightshift")]
    before = versions()
    site.send(objects)
    same(versions(), before)


@case("people who left a tenant are out, and limits that were lifted are gone")
def _(site):
    site.send(print_tenant("--limit", "gpus=1000", "--limit", "cpus=4000", "--member", "ida=member", "--member", "leo=lead", "brief"))
    assert site.ask_as("ida", "GET", "/api/v1/namespaces/nightshift-brief/pods").good
    site.send(print_tenant("--limit", "cpus=4000", "--member", "leo=lead", "brief"))
    site.wait(lambda: site.ask_as("ida", "GET", "/api/v1/namespaces/nightshift-brief/pods").unauthorized, "she is out")
    same(site.get("/api/v1/namespaces/nightshift-brief/resourcequotas/nightshift")["spec"]["hard"], {"requests.cpu": "4"})


@case("of a removed tenant the data stays, nobody is in it and nothing starts")
def _(site):
    site.send(print_tenant("--member", "una=lead", "gone"))
    site.send(print_tenant("--claim", "una", "gone"))
    ns = "/api/v1/namespaces/nightshift-gone"
    site.wait(lambda: site.ask_as("una", "POST", dry(f"{ns}/pods"), pod("x")).good, "she may start something")
    site.send(print_tenant("--member", "una=lead", "--removed", "gone"))
    site.wait(lambda: site.ask_as("una", "GET", f"{ns}/pods").unauthorized, "she is out")
    same(site.get(f"{ns}")["metadata"]["labels"]["nightshift.dev/removed"], "true")
    same(site.get(f"{ns}/persistentvolumeclaims/home-una")["spec"]["resources"]["requests"], {"storage": "1Gi"})
    site.wait(lambda: site.get(f"{ns}/resourcequotas/nightshift")["status"].get("hard") == {"pods": "0"}, "it is counted")
    answer = site.ask_as(DAEMON, "POST", dry(f"{ns}/pods"), pod("nightshift-1-1-0"))
    assert answer.status == 403 and "exceeded quota" in answer.message, answer
    site.send(print_tenant("--member", "una=lead", "gone"))  # and it can come back
    same(site.get(f"{ns}")["metadata"]["labels"].get("nightshift.dev/removed"), None)


@case("the daemon does nothing outside of tenants' namespaces but place, evict, note and suspend")
def _(site):
    site.kubectl("create", "namespace", "other")
    site.kubectl("create", "namespace", "nightshift-elses")
    site.wait(lambda: site.get("/api/v1/namespaces/other/serviceaccounts/default"), "its account")
    site.post("/api/v1/namespaces/other/pods", pod("foreign"))
    site.post("/api/v1/namespaces/other/persistentvolumeclaims",
              {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
    site.post("/apis/batch/v1/namespaces/other/jobs", {"metadata": {"name": "j"}, "spec": {"template": {"spec": spec()}}})
    site.post("/api/v1/nodes", {"metadata": {"name": "bare"}})
    bind = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "nightshift-tenant-lead"},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "max"}]}
    admin = {**bind, "roleRef": {**bind["roleRef"], "name": "cluster-admin"}}
    roles = "/apis/rbac.authorization.k8s.io/v1"
    merge, strategic = "application/merge-patch+json", "application/strategic-merge-patch+json"
    core = "/api/v1/namespaces/other"
    may = [
        ("PATCH", f"{core}/pods/foreign/status", {"status": {"conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Waiting", "message": "no GPU is free"}]}}, strategic),
        ("POST", f"{core}/pods/foreign/binding", {"metadata": {"name": "foreign"}, "target": {"kind": "Node", "name": "bare"}}, None),
        ("POST", f"{core}/pods/foreign/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "foreign"}}, None),
        ("POST", f"{core}/events", {"metadata": {"name": "e", "namespace": "other"}, "involvedObject":
                                    {"kind": "Pod", "name": "foreign", "namespace": "other"}, "reason": "Waiting", "type": "Normal"}, None),
        ("PATCH", f"{core}/persistentvolumeclaims/data",
         {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "bare"}}}, merge),
        ("PATCH", "/apis/batch/v1/namespaces/other/jobs/j", {"spec": {"suspend": True}}, merge),
        ("PATCH", "/api/v1/nodes/bare", {"spec": {"taints": [{"key": "nightshift.dev/handed-back", "effect": "NoExecute"}]}}, merge),
        ("GET", "/api/v1/persistentvolumes", None, None),
        ("GET", "/apis/storage.k8s.io/v1/storageclasses", None, None),
        ("POST", f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases", {"metadata": {"name": "nightshift"}}, None),
        ("POST", f"/api/v1/namespaces/{HOME}/configmaps", {"metadata": {"name": "nightshift-job-17-5f3a9c01"}, "data": {}}, None),
        ("GET", f"/api/v1/namespaces/{HOME}/configmaps", None, None),
    ]
    may_not = [
        ("POST", f"{core}/pods", pod("mine"), None),
        ("DELETE", f"{core}/pods/foreign", None, None),
        ("PATCH", f"{core}/pods/foreign", {"metadata": {"labels": {"a": "b"}}}, merge),
        ("POST", f"{core}/pods/foreign/exec?command=id", None, None),
        ("POST", f"{core}/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}]}}, None),
        ("DELETE", f"{core}/persistentvolumeclaims/data", None, None),
        ("POST", f"{roles}/namespaces/kube-system/rolebindings", {"metadata": {"name": "x"}, **bind}, None),
        ("POST", f"{roles}/namespaces/{HOME}/rolebindings", {"metadata": {"name": "x"}, **bind}, None),
        ("POST", f"{roles}/namespaces/{VISION}/rolebindings", {"metadata": {"name": "x"}, **admin}, None),
        ("POST", f"{roles}/clusterrolebindings", {"metadata": {"name": "x"}, **bind}, None),
        ("POST", f"/api/v1/namespaces/{HOME}/pods", pod("x"), None),
        ("POST", f"/api/v1/namespaces/{HOME}/configmaps", {"metadata": {"name": "mine"}}, None),
        ("PUT", f"/api/v1/namespaces/{HOME}/configmaps/nightshift", {"metadata": {"name": "nightshift"}, "data": {}}, None),
        ("DELETE", f"/api/v1/namespaces/{HOME}/configmaps/nightshift", None, None),
        ("POST", f"/api/v1/namespaces/{VISION}/configmaps", {"metadata": {"name": "nightshift-job-1-5f3a9c01"}}, None),
        ("GET", f"/api/v1/namespaces/{VISION}/configmaps", None, None),
        ("GET", f"/api/v1/namespaces/{HOME}/secrets", None, None),
        ("GET", f"/api/v1/namespaces/{VISION}/secrets", None, None),
        ("POST", "/api/v1/namespaces", {"metadata": {"name": "elsewhere"}}, None),
        ("PATCH", "/api/v1/namespaces/kube-system", {"metadata": {"labels": {"nightshift.dev/tenant": "x"}}}, merge),
        ("PATCH", "/api/v1/namespaces/nightshift-elses", {"metadata": {"labels": {"nightshift.dev/tenant": "x"}}}, merge),
        ("DELETE", f"/api/v1/namespaces/{VISION}", None, None),
        ("DELETE", "/api/v1/nodes/bare", None, None),
        ("PUT", f"{roles}/clusterroles/nightshift-tenant-member", {"metadata": {"name": "nightshift-tenant-member"}, "rules": []}, None),
        ("POST", f"/api/v1/namespaces/{VISION}/serviceaccounts/default/token", {"spec": {}}, None),
    ]
    for method, path, body, kind in may:
        answer = site.ask_as(DAEMON, method, dry(path) if method != "GET" else path, body, kind or "application/json")
        assert answer.good, f"{method} {path}: {answer}"
    for method, path, body, kind in may_not:
        target = dry(path) if method != "GET" and "/exec" not in path else path
        answer = site.ask_as(DAEMON, method, target, body, kind or "application/json")
        assert answer.status in (403, 422), f"{method} {path}: {answer}"


@case("a namespace that somebody else made is not taken")
def _(site):
    site.kubectl("create", "namespace", "nightshift-taken")
    answer = site.ask_as(DAEMON, "PATCH", (one := print_tenant("taken")[0])["path"], one["body"], ks.APPLY)
    assert answer.status in (403, 422) and "somebody else" in answer.message, answer


@case("every name of a tenant is a namespace that the API server takes")
def _(site):
    names = ["a", "A", "a_b", "a.b", "-", "--", "ø", "0", "x" * 63, "x" * 253, "Großes Labor / Süd", "nightshift", "kube-system"]
    seen = set()
    for name in names:
        first = print_tenant("--", name)[0]
        answer = site.ask_as(DAEMON, "PATCH", dry(first["path"]), first["body"], ks.APPLY)
        assert answer.good, f"{name}: {answer}"
        seen.add(first["path"])
    same(len(seen), len(names))


# ---- and gone ----

@case("after an uninstall tenants and the claim are still there, and an install finds them")
def _(site):
    claim = f"/api/v1/namespaces/{HOME}/persistentvolumeclaims/state-nightshift-0"
    uid = site.wait(lambda: site.get(claim), "the claim is made")["metadata"]["uid"]
    site.helm("uninstall", "nightshift", "--wait")
    left = json.loads(site.kubectl("get", "-A", "-o", "json", "-l", "app.kubernetes.io/instance=nightshift",
                                   "sts,svc,cm,secret,sa,netpol,clusterrole,clusterrolebinding,role,rolebinding,"
                                   "validatingadmissionpolicy,validatingadmissionpolicybinding"))["items"]
    same([f"{o['kind']}/{o['metadata']['name']}" for o in left], [])
    for ns in (VISION, SPEECH):
        same(site.get(f"/api/v1/namespaces/{ns}/pods/there")["metadata"]["name"], "there")
        assert site.get(f"/api/v1/namespaces/{ns}/resourcequotas/nightshift")
    same(site.get(claim)["metadata"]["uid"], uid)
    site.wait(lambda: site.ask_as("max", "GET", f"/api/v1/namespaces/{VISION}/pods").unauthorized, "roles are gone")
    site.install()
    same(site.get(claim)["metadata"]["uid"], uid)
    site.wait(lambda: site.ask_as("max", "GET", f"/api/v1/namespaces/{VISION}/pods").good, "roles are there again")


if __name__ == "__main__":
    sys.exit(case.on(Site, ks.why_not))
