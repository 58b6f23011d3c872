"""schemathesis_hooks - what the API's schema cannot say, in one place.

Loaded by schemathesis itself (SCHEMATHESIS_HOOKS).  A request that is right by the schema must be taken
(positive_data_acceptance); where that depends on more than the schema can count or know, the request is
mended before it is sent.  Requests that are meant to be wrong go out as they are.
"""
import re

import schemathesis

YES = ("true", "yes", "on", "1", "", True, 1)
ARRAY = re.compile(r"^(\d+)(?:-(\d+))?(?::(\d+))?$")


def total_bytes(spec):
    """A pattern counts characters, the server bytes: what is longer than its bound in UTF-8 is cut."""
    for section in (spec, spec.get("resources") or {}):
        for key, most in (("name", 253), ("workdir", 4095), ("cwd", 4095), ("image", 1024)):
            value = section.get(key)
            if isinstance(value, str) and len(value.encode()) > most:
                section[key] = None


def known_names(spec):
    """Which tenants, reservations, profiles and GPU models there are, the site says and not the schema."""
    spec.pop("tenant", None)
    spec.pop("reservation", None)
    spec.pop("profile", None)
    if spec.get("resources"):
        spec["resources"].pop("gpu_type", None)
        spec["resources"].pop("devices", None)


def jobs_there_are(spec):
    """Which jobs one may start after, the store says and not the schema."""
    spec.pop("after", None)


def rising_arrays(spec):
    """That a range goes up is beyond a pattern; that it stays small is for this test's time."""
    found = ARRAY.match(spec.get("array") or "")
    if found and (int(found[2] or found[1]) < int(found[1]) or int(found[2] or found[1]) - int(found[1]) > 20):
        spec["array"] = f"{found[1]}-{int(found[1]) + 3}"


def one_way_to_ask_for_gpus(spec):
    """gpus, gpu_share and gpu_mem: each is right alone, some exclude each other."""
    wanted = spec.get("resources") or {}
    if wanted.get("gpus"):
        wanted.pop("gpu_share", None)
        if wanted["gpus"] >= 0.9995:
            wanted.pop("gpu_mem", None)


def fits_the_site(spec):
    """How many replicas there is room for, the machines say and not the schema.  One of any size fits here."""
    if spec.get("replicas"):
        spec["replicas"] = 1 if spec.get("resources") or spec.get("placement") else min(spec["replicas"], 4)


def one_terminal(spec):
    """A job with a terminal has one replica."""
    if spec.get("tty"):
        spec["replicas"] = 1


RULES = (total_bytes, known_names, jobs_there_are, rising_arrays, one_way_to_ask_for_gpus, fits_the_site, one_terminal)


def pools_there_may_be(case):
    """What a calendar and a list of machines look like is beyond a pattern, and a machine is in one pool only."""
    if case.operation.path == "/v1/pools/{name}" and isinstance(case.body, dict):
        if case.body.get("window"):
            case.body["window"] = "Mon-Fri 20:00-08:00"
        if case.body.get("nodes"):
            case.body["nodes"] = []


def reservations_there_may_be(case):
    """Which tenants and machines there are, what is free and what time it is, the schema cannot know."""
    if case.operation.path == "/v1/reservations/{name}" and isinstance(case.body, dict):
        case.body = {"tenant": "nobody", "for": "1h", "gpus": 1}


def clients_there_may_be(case):
    """What an address is, is beyond a pattern; a new client needs one; one without a secret gets no new one."""
    if case.operation.path == "/v1/clients/{client}" and isinstance(case.body, dict):
        case.body["redirect_uris"] = ["https://hub.example/back"]
        if case.body.get("secret") is not True:
            case.body.pop("new_secret", None)


def notices_there_may_be(case):
    """What an address of the web is, is beyond a pattern."""
    if case.operation.path == "/v1/notices" and isinstance(case.body, dict) and case.body.get("webhook") is not None:
        case.body["webhook"] = "https://hub.example/hook"


@schemathesis.hook
def before_call(_context, case, _kwargs):
    if isinstance(case.query, dict) and case.query.get("follow") in YES:
        case.query["follow"] = "false"  # it would wait for the end of a job that waits itself
    if isinstance(case.path_parameters, dict) and case.path_parameters.get("user") == "root":
        case.path_parameters["user"] = "nobody"  # disabled, who asks would be refused everything from then on
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    pools_there_may_be(case)
    reservations_there_may_be(case)
    clients_there_may_be(case)
    notices_there_may_be(case)
    if case.operation.path in ("/v1/jobs", "/v1/jobs/check") and isinstance(case.body, dict):
        for spec in case.body.get("jobs") or [case.body]:
            for rule in RULES:
                rule(spec)
