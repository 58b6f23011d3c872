"""pki - a certificate authority of the rig's own and what it signs, made with the openssl command."""
import os
import re
import subprocess

from parts import PATIENCE_S


def openssl(*args):
    done = subprocess.run(["openssl", *args], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode:
        raise OSError(f"openssl {args[0]}: {done.stderr.strip()}")


class Authority:
    def __init__(self, folder):
        self.folder, self.ca = folder, f"{folder}/ca.crt"
        os.makedirs(folder, mode=0o700)
        openssl("req", "-x509", *self._key("ca.key"), "-out", self.ca, "-days", "30", "-subj", "/CN=rig")

    def _key(self, name):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                f"{self.folder}/{name}"]

    def pair(self, name):
        """The paths of a certificate and its key."""
        stem = f"{self.folder}/{re.sub('[^A-Za-z0-9.-]', '_', name)}"
        return f"{stem}.crt", f"{stem}.key"

    def certificate(self, name, user, groups=(), addresses=(), names=()):
        """Makes a pair unless it is there: for a client, and for a server where it has an address."""
        certificate, key = self.pair(name)
        if os.path.exists(certificate):
            return certificate, key
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={user}"
        usage = "clientAuth"
        extensions = ["basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature"]
        places = [f"IP:{a}" for a in sorted(set(addresses))] + [f"DNS:{n}" for n in names]
        if places:
            usage = "serverAuth"
            extensions.append("subjectAltName=" + ",".join(places))
        extensions.append(f"extendedKeyUsage={usage}")
        added = [word for one in extensions for word in ("-addext", one)]
        request = f"{certificate}.csr"
        openssl("req", *self._key(os.path.basename(key)), "-subj", subject, *added, "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", f"{self.folder}/ca.key", "-CAcreateserial",
                "-days", "30", "-copy_extensions", "copy", "-out", certificate)
        return certificate, key

    def service_account_keys(self):
        openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", f"{self.folder}/sa.key")
        openssl("pkey", "-in", f"{self.folder}/sa.key", "-pubout", "-out", f"{self.folder}/sa.pub")
