"""slapd - a real LDAP server in a folder of its own, on loopback, with the people and groups of a small lab.

`reader` may read, people may only sign in, anonymous may do nothing else.
"""
import os
import shutil
import socket
import subprocess

import claims
from patience import wait_for

PROGRAM = "/usr/sbin/slapd"
ADMIN, ADMIN_PASSWORD = "cn=admin,dc=lab", "admin-pw"
READER, READER_PASSWORD = "cn=reader,dc=lab", "reader-pw"

CONF = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
pidfile {folder}/pid
argsfile {folder}/args
TLSCACertificateFile {folder}/cert.pem
TLSCertificateFile {folder}/cert.pem
TLSCertificateKeyFile {folder}/key.pem
database mdb
suffix "dc=lab"
rootdn "{admin}"
rootpw {admin_password}
directory {folder}/db
overlay memberof
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="{reader}" read by * none
"""

DATA = """
dn: dc=lab
objectClass: dcObject
objectClass: organization
o: lab
dc: lab

dn: cn=reader,dc=lab
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: reader
userPassword: reader-pw

dn: ou=people,dc=lab
objectClass: organizationalUnit
ou: people

dn: ou=guests,dc=lab
objectClass: organizationalUnit
ou: guests

dn: ou=groups,dc=lab
objectClass: organizationalUnit
ou: groups
"""


def missing():
    """What keeps it from running here, or None."""
    for program in (PROGRAM, "ldapmodify", "openssl"):
        if not shutil.which(program):
            return f"{os.path.basename(program)} is not installed"
    return None


def make_certificate(folder, name="cert"):
    """NAME.pem and its key: a certificate for 127.0.0.1 that is its own authority."""
    cert, key = os.path.join(folder, f"{name}.pem"), os.path.join(folder, f"{name}-key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


class Slapd:
    def __init__(self, folder):
        os.makedirs(os.path.join(folder, "db"))
        self.folder, self.log_path = folder, os.path.join(folder, "log")
        self.cert, key = make_certificate(folder)
        os.rename(key, os.path.join(folder, "key.pem"))
        self.port, self.tls_port = claims.port(), claims.port()
        self.url, self.tls_url = f"ldap://127.0.0.1:{self.port}", f"ldaps://127.0.0.1:{self.tls_port}"
        conf = os.path.join(folder, "slapd.conf")
        with open(conf, "w", encoding="utf-8") as f:
            f.write(CONF.format(folder=folder, admin=ADMIN, admin_password=ADMIN_PASSWORD, reader=READER))
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen([PROGRAM, "-d", "0", "-f", conf, "-h", f"{self.url} {self.tls_url}"],
                                            stdout=log, stderr=log)
        wait_for("slapd listens", self._answers)
        self.change(DATA, "-a")

    def _answers(self):
        assert self.process.poll() is None, "slapd ended: " + open(self.log_path, encoding="utf-8").read()
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def change(self, ldif, *options):
        """LDIF, as ldapmodify takes it."""
        done = subprocess.run(["ldapmodify", "-x", "-H", self.url, "-D", ADMIN, "-w", ADMIN_PASSWORD, *options],
                              input=ldif, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr

    def add_person(self, uid, password, *lines, where="people"):
        more = "".join(line + "\n" for line in lines)
        self.change(f"dn: uid={uid},ou={where},dc=lab\nobjectClass: inetOrgPerson\nobjectClass: posixAccount\n"
                    f"objectClass: shadowAccount\nuid: {uid}\ncn: {uid.capitalize()} Test\nsn: Test\n"
                    f"mail: {uid}@lab.example\nuidNumber: 5000\ngidNumber: 5000\nhomeDirectory: /home/{uid}\n"
                    f"userPassword: {password}\n{more}", "-a")

    def add_group(self, cn, *members):
        list_ = "".join(f"member: {m}\n" for m in members)
        self.change(f"dn: cn={cn},ou=groups,dc=lab\nobjectClass: groupOfNames\ncn: {cn}\n{list_}", "-a")

    def set_members(self, cn, *members):
        list_ = "".join(f"member: {m}\n" for m in members)
        self.change(f"dn: cn={cn},ou=groups,dc=lab\nchangetype: modify\nreplace: member\n{list_}")

    def remove(self, dn):
        self.change(f"dn: {dn}\nchangetype: delete\n")

    def stop(self):
        self.process.kill()
        self.process.wait()
