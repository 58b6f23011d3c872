"""log_search_cases - words in the output of jobs: one job's, and all that somebody may read."""
import glob
import os
import subprocess
import sys
import threading
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
from cases import Cases, same  # noqa: E402
from cluster import wait_for  # noqa: E402

NIGHTSHIFT = f"{cl.BUILD}/nightshift"
SMALL = {"cpus": 1, "mem": "64Mi"}
PEOPLE = {"ada": ("ours", "member"), "bob": ("ours", "member"), "lena": ("ours", "lead"), "vic": ("ours", "viewer"),
          "eve": ("theirs", "lead")}
LINES = "echo epoch 1; echo loss 0.5; echo epoch 2; echo LOSS 0.4; echo epoch 3; echo epoch 4; echo done loss"
case = Cases()


class World:
    def __init__(self, c):
        self.c, self.token, self.serial = c, {}, 0
        for tenant in ("ours", "theirs"):
            c.ask("PUT", f"/v1/tenants/{tenant}", {})
        for user, (tenant, role) in PEOPLE.items():
            c.ask("PUT", f"/v1/users/{user}", {})
            c.ask("PUT", f"/v1/tenants/{tenant}/members/{user}", {"role": role})
            self.token[user] = c.ask("POST", "/v1/tokens", {"user": user, "name": "test", "scopes": ["read", "jobs"]})["token"]

    def word(self):
        """That no other case has."""
        self.serial += 1
        return f"needle{self.serial}x"

    def begin(self, line, user="ada", **spec):
        return self.c.ask("POST", "/v1/jobs", {"command": ["sh", "-c", line], "tenant": PEOPLE[user][0], "resources": SMALL, **spec},
                          token=self.token[user])["id"]

    def run(self, line, user="ada", **spec):
        number = self.begin(line, user, **spec)
        same(self.c.wait_end(number)["state"], "succeeded")
        return number

    def grep(self, number, word, who="ada", **query):
        query = urllib.parse.urlencode({"grep": word, **query})
        status, said = self.c.call("GET", f"/v1/jobs/{number}/log?{query}", token=self.token[who])
        return said if status == 200 else status

    def search(self, word, who="ada", **query):
        query = urllib.parse.urlencode({"grep": word, **query})
        return self.c.call("GET", f"/v1/logs?{query}", token=self.token[who])

    def found(self, word, who="ada", **query):
        status, said = self.search(word, who, **query)
        same((who, status), (who, 200))
        return said

    def type(self, user, *words):
        """What the command line prints: exit code, output, notes."""
        env = {**os.environ, "NIGHTSHIFT_SERVER": f"http://127.0.0.1:{self.c.port()}", "NIGHTSHIFT_TOKEN": self.token[user],
               "HOME": self.c.folder}
        done = subprocess.run([NIGHTSHIFT, "logs", *map(str, words)], capture_output=True, text=True, check=False, env=env,
                              timeout=cl.PATIENCE_S)
        return done.returncode, done.stdout, done.stderr


def ids(found):
    return [j["id"] for j in found["jobs"]]


def texts(found):
    return [line["text"] for j in found["jobs"] for line in j["lines"]]


# ---- one job ----

@case("only lines with the text come out, by the API and by the command line")
def _(w):
    number = w.run(LINES)
    same(w.grep(number, "loss"), "loss 0.5\ndone loss\n")
    same(w.grep(number, "loss", ignore_case="true"), "loss 0.5\nLOSS 0.4\ndone loss\n")
    same(w.grep(number, "l.ss"), "")
    same(w.grep(number, "epoch", tail=3), "epoch 3\nepoch 4\n")
    same(w.grep(number, ""), 400)
    same(w.type("ada", "--grep", "loss", number), (0, "loss 0.5\ndone loss\n", ""))
    same(w.type("ada", "-g", "loss", "-i", number), (0, "loss 0.5\nLOSS 0.4\ndone loss\n", ""))
    code, said, _ = w.type("ada", "-g", "oops", "-t", w.run("echo fine; echo oops >&2"))
    assert code == 0 and said.endswith("Z stderr F oops\n") and said.count("\n") == 1, said


@case("lines around a match come out with it, and a mark where some are left out")
def _(w):
    number = w.run("for i in 1 2 3 4 5 6 7 8 9; do echo line $i; done")
    same(w.grep(number, "e 2", context=1), "line 1\nline 2\nline 3\n")
    number = w.run("for i in 1 2 x3 4 5 6 7 x8 9; do echo $i; done")
    same(w.grep(number, "x", context=1), "2\nx3\n4\n--\n7\nx8\n9\n")
    same(w.type("ada", "-g", "x", "-C", 1, number)[:2], (0, "2\nx3\n4\n--\n7\nx8\n9\n"))
    same(w.grep(number, "x", context=51), 400)


@case("a line that a job writes in parts is one line")
def _(w):
    number = w.run("printf gra; sync; printf 'die'; echo between >&2; echo nt is here; printf 'a gradient without an end'")
    same(w.grep(number, "gradient"), "gradient is here\na gradient without an end\n")


@case("what comes later is found while it is followed, until the job ends")
def _(w):
    number = w.begin("exec 2>/dev/null; trap go=1 USR1; echo first word; until [ $go ]; do sleep 0.1; done; echo nothing; echo last word")
    got = []
    reader = threading.Thread(target=lambda: got.append(w.type("ada", "-f", "--grep", "word", number)))
    reader.start()
    wait_for("the first word", lambda: "first word" in w.grep(number, "word"))
    w.c.signal(number, "USR1")
    reader.join(cl.PATIENCE_S)
    same(len(got), 1)
    same(got[0][:2], (0, "first word\nlast word\n"))


@case("a follower that is cut off by a crash of the server misses no line and shows none twice")
def _(w):
    for more in ((), ("-C", "1")):
        number = w.begin("exec 2>/dev/null; trap go=1 USR1; i=0; until [ $go ]; do i=$((i+1)); echo $i; echo word $i; echo; echo; "
                         "printf half; sleep 0.01; echo word; done; echo last word")
        env = {**os.environ, "NIGHTSHIFT_SERVER": f"unix:{w.c.run}/api.sock", "HOME": w.c.folder}
        line = [NIGHTSHIFT, "logs", "-g", "word", *more, str(number)]
        shown = f"{w.c.folder}/shown"
        with open(shown, "wb") as out, subprocess.Popen([*line, "-f"], stdout=out, stderr=subprocess.PIPE, env=env) as reader:
            try:
                for _ in range(3):
                    lines = len(cl.read_file(shown).splitlines())
                    wait_for("more lines", lambda: len(cl.read_file(shown).splitlines()) > lines + 5)  # noqa: B023
                    w.c.kill_daemon()
                    w.c.start()
                    w.c.wait_ready()
                w.c.signal(number, "USR1")
                same(reader.wait(cl.PATIENCE_S), 0)
            finally:
                reader.kill()
        whole = subprocess.run(line, capture_output=True, check=False, env=env, timeout=cl.PATIENCE_S).stdout.decode()
        assert whole.endswith("last word\n") and whole.count("word") > 18, whole[-300:]
        same(cl.read_file(shown).decode(), whole)


@case("a word behind much output, and in a line without an end, is found")
def _(w):
    number = w.run("yes hay | head -c 20000000; echo; head -c 200000 /dev/zero | tr '\\0' x; echo a needle", resources={**SMALL, "mem": "128Mi"})
    said = w.grep(number, "needle")
    assert said.endswith("xxa needle\n") and len(said) <= 65536 + 16, len(said)
    same(w.type("ada", "-g", "needle", number)[:2], (0, said))
    shown = texts(w.found("a needle"))
    assert len(shown) == 1 and shown[0].startswith("…xxx") and shown[0].endswith("xa needle") and len(shown[0]) < 1000, shown


# ---- many jobs ----

@case("every replica and the latest run are searched")
def _(w):
    word = w.word()
    number = w.run(f"echo {word} by $RANK", replicas=2)
    found = w.found(word)
    same([(line["replica"], line["text"]) for line in found["jobs"][0]["lines"]], [(0, f"{word} by 0"), (1, f"{word} by 1")])
    same(w.type("ada", "--search", word)[1].splitlines()[1].split()[0], f"{number}/1")


@case("a search that is cut short says so, and goes on from there")
def _(w):
    word = w.word()
    numbers = [w.run(f"echo {word} {i}") for i in range(3)]
    found = w.found(word, limit=2)
    same((ids(found), found["cut"], found["searched"]), ([numbers[2], numbers[1]], "jobs", 2))
    rest = w.found(word, limit=2, before=found["next"])
    same(ids(rest)[0], numbers[0])
    code, said, notes = w.type("ada", "--search", word, "--limit", 2)
    same((code, said.count("\n")), (0, 2))
    assert "2 lines in the output of 2 jobs" in notes and f"cut short: there are older jobs; go on with --before {numbers[1]}" in notes, notes
    same(w.type("ada", "--search", word, "--before", numbers[1])[1].split()[0], str(numbers[0]))


@case("one job with many lines hides no others, and there are bounds on all lines")
def _(w):
    word = w.word()
    rare = w.run(f"echo rare {word}")
    many = w.run(f"yes {word} | head -n 5000")
    found = w.found(word)
    same([(j["id"], len(j["lines"]), j["more"]) for j in found["jobs"]], [(many, 100, True), (rare, 1, False)])
    assert f"job {many}: not all of it was looked at" in w.type("ada", "--search", word)[2]
    same(w.grep(many, word).count("\n"), 5000)
    for _ in range(10):
        last = w.run(f"yes {word} | head -n 101")
    found = w.found(word)
    same((found["lines"], found["cut"], len(found["jobs"]), ids(found)[0]), (1000, "lines", 10, last))
    same(ids(w.found(word, before=found["next"])), [many, rare])


@case("a search ends at a bound of bytes, and two of one person do not go on at once")
def _(w):
    word = w.word()
    oldest = w.run(f"echo {word}")
    large = w.run("yes a line of the hay that the needle is in | head -c 58000000", resources={**SMALL, "mem": "256Mi"})
    files = glob.glob(f"{w.c.state}/tasks/{large}.*/**/log.[0-3]", recursive=True)
    assert sum(os.path.getsize(f) for f in files) > 58000000, files
    for _ in range(5):  # the same output, without writing it again
        other = w.run("true")
        folder = os.path.dirname(files[0]).replace(f"/tasks/{large}.", f"/tasks/{other}.")
        for f in files:
            os.path.exists(f"{folder}/{os.path.basename(f)}") and os.unlink(f"{folder}/{os.path.basename(f)}")
            os.link(f, f"{folder}/{os.path.basename(f)}")
    found = w.found(word)
    same((found["cut"], found["jobs"]), ("bytes", []))
    assert 100 << 20 < found["bytes"] < 256 << 20, found
    pages = 1
    while found["cut"] == "bytes":
        found, pages = w.found(word, before=found["next"]), pages + 1
    assert pages >= 2 and oldest in ids(found), (pages, found)
    seen = []

    def again():
        while not seen:
            status, said = w.search(word)
            if status != 200:
                seen.append((status, str(said)))
    threads = [threading.Thread(target=again) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(cl.PATIENCE_S)
    assert seen and seen[0][0] == 503 and "a search of yours goes on already" in seen[0][1], seen
    same(w.search("x", "eve")[0], 200)


# ---- what is wrong, and what is hostile ----

@case("what does not go together is refused with the way out")
def _(w):
    for words, part in (((), "logs needs JOB"), (("--search", "x", "1"), "many jobs"), (("--all", "1"), "go with --search"),
                        (("-i", "1"), "go with --grep"), (("--grep", "", "1"), "says nothing"), (("--search", ""), "says nothing")):
        code, said, notes = w.type("ada", *words)
        assert code == 2 and said == "" and part in notes and "hint: " in notes, (words, code, notes)


@case("what a job wrote is no order to the terminal of whoever searches")
def _(w):
    word = w.word()
    w.run(f"printf '\\033[31m{word}\\377<b>\\r\\n'", name="a<b>")
    found = w.found(word)
    same(texts(found), [f"\x1b[31m{word}\ufffd<b>\r"])
    code, said, _ = w.type("ada", "--search", word)
    assert code == 0 and "\x1b" not in said and "\r" not in said and word in said, said


def make():
    return cl.Cluster(listen="127.0.0.1:0")


WORLDS = []
if __name__ == "__main__":
    sys.exit(case.together(make=make, prepare=lambda c: WORLDS.append(World(c)), arguments=lambda c: (WORLDS[0],)))
