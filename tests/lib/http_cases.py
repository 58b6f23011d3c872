"""http_cases - the daemon against clients that are slow, large, many, or lie: raw bytes over loopback.

src/http's own tests try each part; here it is the real program with small limits. Whatever one client does, others
are answered meanwhile, memory and descriptors stay what they were, and the log says little.
"""
import os
import re
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as cl  # noqa: E402
from cases import Cases, same  # noqa: E402
from cluster import wait_for  # noqa: E402

BODY_MAX = 64 << 10
TIMEOUT_S = 4
CONNECTIONS = 40  # one peer may have half of them
RATE, BURST = 50, 300  # so few that the slowest machine asks more often
OPTIONS = ("--body-limit", "64Ki", "--timeout", f"{TIMEOUT_S}s", "--connections", str(CONNECTIONS), "--rate", str(RATE),
           "--rate-burst", str(BURST))
GROWTH_MAX_KIB = 8 << 10
case = Cases()


# ---- raw clients ----

def connect(c, source="127.0.0.1"):
    sock = socket.create_connection(("127.0.0.1", c.tcp_port), cl.PATIENCE_S, (source, 0))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def hear(sock):
    """Everything until the other side closes."""
    data = b""
    try:
        while piece := sock.recv(65536):
            data += piece
    except ConnectionResetError:
        pass
    return data


def send(c, data, source="127.0.0.1"):
    """What the daemon says to these bytes, until it closes."""
    with connect(c, source) as sock:
        try:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError, OSError):
            pass
        return hear(sock)


def statuses(data):
    return [int(found) for found in re.findall(rb"(?:^|\n|})HTTP/1\.[01] (\d{3}) ", data)]


def head(c, line, *headers, close=True):
    lines = [line, "Host: x", f"Authorization: Bearer {c.token}", *(["Connection: close"] if close else []), *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def post(c, body, *headers):
    return head(c, "POST /v1/jobs/check HTTP/1.1", "Content-Type: application/json", f"Content-Length: {len(body)}",
                *headers) + body


def is_problem(data, status, words):
    same((statuses(data)[:1], b"application/problem+json" in data), ([status], True))
    for word in words:
        assert word.encode() in data, f"{word!r} is not in {data[-400:]!r}"


# ---- what must stay as it was ----

def answers_others(c):
    """Others are on the socket: they share nothing with a caller over TCP but the loop."""
    same(c.call("GET", "/v1/whoami")[0], 200)


def rss_kib(c):
    """0 with a sanitizer, which has memory of its own (and maps terabytes of it)."""
    size, resident = (int(n) for n in re.findall(r"(?:VmSize|VmRSS):\s+(\d+)", cl.proc_file(c.daemon.pid, "status").decode()))
    return resident if size < 1 << 30 else 0


def descriptors(c):
    return len(os.listdir(f"/proc/{c.daemon.pid}/fd"))


def log_lines(c):
    with open(c.log_path, "rb") as f:
        return f.read().splitlines()


def jobs(c):
    return c.ask("GET", "/v1/jobs?state=all&limit=1000")["jobs"]


def quiet_again(c, before):
    """Its descriptors are those of before."""
    wait_for("connections to be closed", lambda: descriptors(c) <= before)


# ---- sizes ----

@case("a body of the limit is read; one byte more is 413, with a length and in chunks")
def _(c):
    spec = b'{"command":["true"]}'
    fits = spec + b" " * (BODY_MAX - len(spec))
    same(statuses(send(c, post(c, fits))), [200])
    is_problem(send(c, post(c, fits + b" ")), 413, ("larger than 64Ki", '"too_large"'))
    chunk = b"1000\r\n" + b" " * 4096 + b"\r\n"
    chunked = head(c, "POST /v1/jobs/check HTTP/1.1", "Content-Type: application/json", "Transfer-Encoding: chunked")
    is_problem(send(c, chunked + chunk * 16 + b"1\r\n \r\n0\r\n\r\n"), 413, ("larger than 64Ki",))
    liar = head(c, "POST /v1/jobs/check HTTP/1.1", "Content-Type: application/json", "Content-Length: 99999999999")
    is_problem(send(c, liar), 413, ("larger than 64Ki",))
    answers_others(c)


@case("headers that are too large are 431, an address that is too long 414")
def _(c):
    is_problem(send(c, head(c, "GET /v1/whoami HTTP/1.1", "X-Large: " + "x" * 17000)), 431, ("the limit is 16384",))
    is_problem(send(c, head(c, f"GET /v1/jobs?name={'x' * 9000} HTTP/1.1")), 414, ("the limit is 8192",))
    assert statuses(send(c, head(c, "GET /v1/whoami HTTP/1.1", *[f"X-{i}: y" for i in range(5000)]))) in ([431], [413])
    answers_others(c)


# ---- time ----

def slow_kinds(c):
    """Requests that do not end: how they begin, and what is sent again and again."""
    long_body = head(c, "POST /v1/jobs/check HTTP/1.1", "Content-Type: application/json", "Content-Length: 60000")
    return [(b"GET /v1/whoami HTTP/1.1\r\nHost: x\r\n", b"X-Y: z\r\n"), (long_body, b" ")]


def drip(c, begin, piece, found):
    """Sends a little again and again, as long as it is listened to; what it heard."""
    with connect(c) as sock:
        sock.sendall(begin)
        sock.settimeout(0.05)
        until = time.monotonic() + cl.PATIENCE_S
        data = b""
        while time.monotonic() < until:
            try:
                got = sock.recv(65536)
                data += got
                if not got:
                    break
            except TimeoutError:
                try:
                    sock.sendall(piece)
                except OSError:
                    break
            except OSError:
                break
        found.append(data)


@case("slow clients are cut with 408, in the headers and in the body")
def _(c):
    fds, found = descriptors(c), []
    kinds = slow_kinds(c)
    threads = [threading.Thread(target=drip, args=(c, *kinds[i % 2], found)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same([statuses(data) for data in found], [[408]] * 16)
    for data in found:
        is_problem(data, 408, (f"within {TIMEOUT_S} seconds",))
    quiet_again(c, fds)


@case("nobody waits for slow clients")
def _(c):
    # Here they have more time than anybody would wait: whoever is answered did not wait for one of them.
    patient = cl.Cluster(("--timeout", f"{3 * cl.PATIENCE_S}s"), listen="127.0.0.1:0", name="patient")
    try:
        patient.start()
        patient.wait_ready()
        prepare(patient)
        kinds = slow_kinds(patient)
        slow = [connect(patient) for _ in range(16)]
        for i, sock in enumerate(slow):
            sock.sendall(kinds[i % 2][0])
        for n in range(20):
            answers_others(patient)  # and another that came in line behind them
            same(statuses(send(patient, head(patient, "GET /v1/whoami HTTP/1.1"))), [200])
            slow[n % len(slow)].sendall(kinds[n % 2][1])
        for i, sock in enumerate(slow):  # and they are served when they come to their end
            sock.sendall(b"\r\n" if i % 2 == 0 else b" " * (60000 - 1 - (i + 16 < 20)))
            assert statuses(sock.recv(65536)) in ([401], [400]), i
            sock.close()
    finally:
        patient.close()


@case("a connection on which nothing comes is closed, and so is one that was used")
def _(c):
    with connect(c) as fresh, connect(c) as used:
        used.sendall(head(c, "GET /healthz HTTP/1.1", close=False))
        wait_for("an answer", lambda: used.recv(65536))
        same((hear(fresh), hear(used)), (b"", b""))  # their own patience is a bound


# ---- many ----

@case("who asks too often gets 429 and when to come back; others do not notice; then it is answered again")
def _(c):
    with connect(c, "127.0.0.2") as sock:  # the other cases have an allowance of their own
        sock.sendall(head(c, "GET /healthz HTTP/1.1", close=False) * (5 * BURST) + head(c, "GET /healthz HTTP/1.1"))
        data = hear(sock)
    found = statuses(data)
    same((len(found), set(found)), (5 * BURST + 1, {200, 429}))
    assert found.count(200) >= BURST // 2 and found.count(429) >= 10, (found.count(200), found.count(429))
    wait_s = int(re.search(rb"Retry-After: (\d+)\r\n", data)[1])
    assert b"too many requests" in data and 1 <= wait_s <= 10, wait_s
    answers_others(c)
    wait_for("to be answered again", lambda: statuses(send(c, head(c, "GET /healthz HTTP/1.1"), "127.0.0.2")) == [200])


@case("who has too many connections is told so, the log says it once, and others are let in")
def _(c):
    quiet_again(c, c.quiet)
    fds, lines = descriptors(c), len(log_lines(c))
    held = [connect(c) for _ in range(CONNECTIONS // 2)]
    # A file of the daemon's own may have been open when they were counted; those that come later are behind in line.
    wait_for("them to be accepted", lambda: descriptors(c) >= fds + len(held) - 4)
    for _ in range(20):
        with connect(c) as sock:
            is_problem(hear(sock), 503, ("connections open", "limit"))
    answers_others(c)
    same(len([line for line in log_lines(c)[lines:] if b"http.full" in line]), 1)
    for sock in held:
        sock.close()
    quiet_again(c, fds)
    same(statuses(send(c, head(c, "GET /healthz HTTP/1.1"))), [200])


# ---- lies ----

SUBMIT = '{"command":["true"],"held":true,"name":"smuggled"}'


@case("two readings of one request are refused, and what hides behind it is not obeyed")
def _(c):
    inner = (f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {c.token}\r\n"
             f"Content-Type: application/json\r\nContent-Length: {len(SUBMIT)}\r\n\r\n{SUBMIT}").encode()
    n = len(inner)
    shapes = {
        "two lengths": (("Content-Length: 0", f"Content-Length: {n}"), inner),
        "two lengths, the other way": ((f"Content-Length: {n}", "Content-Length: 0"), inner),
        "length and chunks": ((f"Content-Length: {n}", "Transfer-Encoding: chunked"), b"0\r\n\r\n" + inner),
        "chunks and length": (("Transfer-Encoding: chunked", "Content-Length: 5"), b"0\r\n\r\n" + inner),
        "chunks twice": (("Transfer-Encoding: chunked", "Transfer-Encoding: identity"), b"0\r\n\r\n" + inner),
        "a coding that is none": (("Transfer-Encoding: xchunked",), b"0\r\n\r\n" + inner),
        "codings in a list": (("Transfer-Encoding: gzip, chunked",), b"0\r\n\r\n" + inner),
        "a list of lengths": (("Content-Length: 0, 5",), inner),
        "a signed length": (("Content-Length: +0",), inner),
        "a negative length": (("Content-Length: -1",), inner),
        "a length in hexadecimal": (("Content-Length: 0x0",), inner),
        "a length of blanks": (("Content-Length:  ",), inner),
        "a length that is no number": (("Content-Length: zero",), inner),
        "a blank before the colon": (("Transfer-Encoding : chunked",), b"0\r\n\r\n" + inner),
        "a folded header": (("Content-Length: 0", " 5"), inner),
        "a chunk's size that is none": (("Transfer-Encoding: chunked",), b"zz\r\n\r\n" + inner),
        "a chunk's size without end": (("Transfer-Encoding: chunked",), b"0" * 70000 + inner),
        "a folded coding": (("Transfer-Encoding: chunked", " ,identity"), b"0\r\n\r\n" + inner),
    }
    obeyed = {}
    for name, (headers, rest) in shapes.items():
        data = send(c, head(c, "POST /v1/jobs/1/hold HTTP/1.1", "Content-Type: application/json", *headers,
                            close=False) + rest)
        obeyed[name] = (statuses(data), len([job for job in jobs(c) if job["name"] == "smuggled"]))
        answers_others(c)
    bad = {name: got for name, got in obeyed.items() if got[1] or any(s < 300 for s in got[0])}
    same(bad, {})


@case("what is no request of ours is turned away without harm")
def _(c):
    for data in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"hello\r\n\r\n", b"\r\n" * 1000, b"\0" * 1000, b"GET\r\n\r\n",
                 b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n",
                 b"GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n", b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
                 b"TRACE / HTTP/1.1\r\nHost: x\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nX\x00Y: z\r\n\r\n",
                 b"G" * 100000, b"GET /" + b"%41" * 5000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"):
        assert all(status >= 400 for status in statuses(send(c, data))), (data[:30], statuses(send(c, data)))
        answers_others(c)


# ---- versions, order ----

@case("HTTP/1.0 is answered and closed; requests in a row are answered in their order; HEAD has no body")
def _(c):
    data = send(c, head(c, "GET /healthz HTTP/1.0", close=False))
    same((statuses(data), data.endswith(b"\r\n\r\nok\n")), ([200], True))
    row = [("GET /healthz", 200), ("GET /v1/nothing", 404), ("GET /v1/jobs/x", 400), ("HEAD /v1/whoami", 200),
           ("OPTIONS /v1/jobs", 204), ("GET /v1/whoami", 200), ("DELETE /healthz", 405)]
    data = send(c, b"".join(head(c, f"{line} HTTP/1.1", close=False) for line, _ in row))
    same(statuses(data), [status for _, status in row])
    data = send(c, head(c, "HEAD /v1/whoami HTTP/1.1"))
    same((statuses(data), data.partition(b"\r\n\r\n")[2]), ([200], b""))


@case("a client that hangs up anywhere in a request leaves nothing behind")
def _(c):
    fds, memory, lines = descriptors(c), rss_kib(c), len(log_lines(c))
    body = b'{"command":["true"],"held":true,"name":"cut"}'
    whole = head(c, "POST /v1/jobs HTTP/1.1", "Content-Type: application/json", f"Content-Length: {len(body)}",
                 close=False) + body
    for cut in range(0, len(whole)):
        with connect(c) as sock:
            sock.sendall(whole[:cut])
            if cut % 2:  # and not politely
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    answers_others(c)
    quiet_again(c, fds)
    same([job for job in jobs(c) if job["name"] == "cut"], [])
    assert rss_kib(c) - memory < GROWTH_MAX_KIB, (memory, rss_kib(c))
    assert len(log_lines(c)) - lines < 5, log_lines(c)[lines:][:5]


@case("clients that hang up while they are answered, or follow, leave nothing behind")
def _(c):
    fds, memory = descriptors(c), rss_kib(c)
    for line in ("GET /v1/jobs?state=all", "GET /v1/events?after=0", "GET /v1/jobs/1/log?follow=1", "GET /v1/doctor",
                 "GET /v1/openapi.json", "GET /metrics") * 10:
        with connect(c) as sock:
            sock.sendall(head(c, f"{line} HTTP/1.1", close=False))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    answers_others(c)
    quiet_again(c, fds)
    assert rss_kib(c) - memory < GROWTH_MAX_KIB, (memory, rss_kib(c))


@case("after all that the daemon is small, and the same")
def _(c):
    same(c.daemon.poll(), None)
    assert rss_kib(c) < 48 << 10, rss_kib(c)
    print(f"# {rss_kib(c)} KiB, {descriptors(c)} descriptors, {len(log_lines(c))} lines of log")


def prepare(c):
    c.tcp_port = c.port()
    c.token = c.ask("POST", "/v1/tokens", {"name": "raw", "scopes": ["read", "jobs", "manage"]})["token"]
    c.submit(["true"], held=True)  # job 1
    c.quiet = descriptors(c)


if __name__ == "__main__":
    sys.exit(case.together(lambda: cl.Cluster(OPTIONS, listen="127.0.0.1:0"), prepare))
