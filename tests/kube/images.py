"""images - container images made on the spot from files of this machine, without any registry.

  images.busybox(folder)                                    the path of an archive of rig.test/busybox:1
  images.make(path, "rig.test/mine:1", files, ["/mine"])    files: (path inside, file here or bytes, mode)

A mode of LINK makes a symbolic link to the second.  The archives are OCI layouts, for
`ctr images import` and `skopeo copy oci-archive:`.
"""
import glob
import hashlib
import io
import json
import os
import platform
import re
import subprocess
import tarfile

from parts import PATIENCE_S

LINK = -1
DOMAIN = "rig.test"
PAUSE, BUSYBOX, PYTHON = (f"{DOMAIN}/{name}:1" for name in ("pause", "busybox", "python"))
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

# The first process of a pod and of a whole node: waits, reaps, and ends when it is told to.
PAUSE_SOURCE = r"""
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int signal)
{
    (void)signal;
    _exit(0);
}

static void reap(int signal)
{
    (void)signal;
    while (waitpid(-1, 0, WNOHANG) > 0)
        ;
}

int main(void)
{
    signal(SIGINT, end);
    signal(SIGTERM, end);
    signal(SIGCHLD, reap);
    for (;;)
        pause();
}
"""


def make(path, name, files, command=None):
    """Writes an archive of one layer; returns its path."""
    layer = _layer(files)
    settings = {"Env": [PATH], "WorkingDir": "/"}
    if command:
        settings["Entrypoint"] = list(command)
    config = _json({"architecture": ARCHITECTURES.get(platform.machine(), platform.machine()), "os": "linux",
                    "config": settings, "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]}})
    kind = "application/vnd.oci.image"
    manifest = _json({"schemaVersion": 2, "mediaType": f"{kind}.manifest.v1+json",
                      "config": _describe(f"{kind}.config.v1+json", config),
                      "layers": [_describe(f"{kind}.layer.v1.tar", layer)]})
    names = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]}
    index = _json({"schemaVersion": 2,
                   "manifests": [{**_describe(f"{kind}.manifest.v1+json", manifest), "annotations": names}]})
    with tarfile.open(path, "w") as archive:
        _add(archive, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}), 0o644)
        _add(archive, "index.json", index, 0o644)
        for blob in (layer, config, manifest):
            _add(archive, "blobs/" + _digest(blob).replace(":", "/"), blob, 0o644)
    return path


def pause_program(folder):
    """The path of the program; compiled unless it is there."""
    path = f"{folder}/pause"
    if not os.path.exists(path):
        subprocess.run(["gcc", "-x", "c", "-Os", "-static", "-s", "-o", path, "-"], input=PAUSE_SOURCE.encode(),
                       timeout=PATIENCE_S, check=True)
    return path


def pause(folder):
    return make(f"{folder}/pause.tar", PAUSE, [("pause", pause_program(folder), 0o755)], ["/pause"])


def busybox(folder):
    return make(f"{folder}/busybox.tar", BUSYBOX, busybox_files(), None)


def busybox_files():
    """A system that runs scripts, to add to."""
    names = subprocess.run(["/bin/busybox", "--list"], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return [("bin/busybox", "/bin/busybox", 0o755), ("tmp/.keep", b"", 0o644), ("root/.keep", b"", 0o644),
            ("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n", 0o644),
            ("etc/group", b"root:x:0:\nnogroup:x:65534:\n", 0o644)] + \
           [(f"bin/{one}", "busybox", LINK) for one in names.stdout.split() if one != "busybox"]


def python(folder):
    """The Python of this machine and its standard library, with busybox."""
    return make(f"{folder}/python.tar", PYTHON, busybox_files() + python_files(), None)


def python_files():
    program = os.path.realpath("/usr/bin/python3")
    library = f"/usr/lib/{os.path.basename(program)}"
    files = [("usr/bin/python3", os.path.basename(program), LINK), (program[1:], program, 0o755)]
    for folder, below, names in os.walk(library):
        below[:] = [one for one in below if one not in ("__pycache__", "test", "idlelib", "config", "ensurepip")]
        files += [(f"{folder}/{one}"[1:], os.path.realpath(f"{folder}/{one}"), 0o644) for one in sorted(names)
                  if os.path.isfile(f"{folder}/{one}") and not one.endswith(".a")]
    return files + shared_libraries([program, *glob.glob(f"{library}/lib-dynload/*.so")])


def shared_libraries(programs):
    """The libraries of programs, at the paths where the loader looks for them."""
    found = subprocess.run(["ldd", *programs], capture_output=True, text=True, timeout=PATIENCE_S, check=False).stdout
    paths = sorted(set(re.findall(r"(/\S+) \(0x", found)))
    return [(path[1:], os.path.realpath(path), 0o755) for path in paths]


def _layer(files):
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for path, source, mode in files:
            if mode == LINK:
                one = tarfile.TarInfo(path)
                one.type, one.linkname = tarfile.SYMTYPE, source
                tar.addfile(one)
                continue
            if isinstance(source, str):
                with open(source, "rb") as f:
                    source = f.read()
            _add(tar, path, source, mode)
    return layer.getvalue()


def _add(tar, path, data, mode):
    one = tarfile.TarInfo(path)
    one.size, one.mode = len(data), mode
    tar.addfile(one, io.BytesIO(data))


def _json(value):
    return json.dumps(value).encode()


def _digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _describe(kind, data):
    return {"mediaType": kind, "digest": _digest(data), "size": len(data)}
