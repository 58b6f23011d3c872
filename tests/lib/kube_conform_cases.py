"""kube_conform_cases - the conformance suite of all engines, on a real node: starts the cluster, then the program."""
import os
import subprocess
import sys

import cluster as cl
from kube_cluster import INIT_IMAGE, INIT_PATH, Rig, grant, images, init_image, why_not


def main():
    why = why_not(real=True)
    if why:
        strict = os.environ.get("NIGHTSHIFT_STRICT")
        print(f"1..1\nnot ok 1 - nothing is skipped here: {why}" if strict else f"1..0 # SKIP {why}")
        return bool(strict)
    with Rig(real=True) as rig:
        rig.real_node("real1", images=[init_image(rig.folder)])
        env = {**os.environ, "KUBECONFIG": grant(rig), "CONFORM_IMAGE": images.BUSYBOX, "CONFORM_NODE": "real1",
               "CONFORM_INIT_IMAGE": INIT_IMAGE, "CONFORM_INIT_PATH": INIT_PATH}
        return subprocess.run([f"{cl.BUILD}/conform_kube", *sys.argv[1:]], env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
