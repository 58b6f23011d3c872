#!/usr/bin/env python3
"""Drive a program on a terminal of its own and check what a person would see.

usage: on_terminal.py SCRIPT -- COMMAND...

SCRIPT is a list of steps, one a line:
  see TEXT      wait until TEXT has been shown since the last step (patience.py says how long)
  type TEXT     press keys; \\r, \\x03 and the like as in Python
  signal NAME   send it to the program (TERM, HUP, …)
  resize R C    the window changes
  raw / cooked  the terminal must be in that mode now
  exit CODE     wait for the end and check the exit status; a signal is -N
Whatever happens at the end the terminal must have the modes it began with.  Prints what was shown and exits 1 when a
step fails.
"""
import codecs
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

from patience import PATIENCE_S


class Terminal:
    def __init__(self, argv):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.shown, self.at, self.status = "", 0, None
        self.decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            for fd in range(3):
                os.dup2(self.slave, fd)
            os.closerange(3, 64)
            for deaf in (signal.SIGINT, signal.SIGQUIT):  # ignored where a shell started us in the background
                signal.signal(deaf, signal.SIG_DFL)
            os.execvp(argv[0], argv)

    def pump(self, wait):
        """Takes what is shown within the time; False when nothing was."""
        if not select.select([self.master], [], [], wait)[0]:
            return False
        self.shown += self.decode(os.read(self.master, 65536))
        return True

    def until(self, what, done):
        end = time.monotonic() + PATIENCE_S
        while not done():
            if time.monotonic() > end:
                raise SystemExit(f"never: {what}\nshown so far: {self.shown!r}")
            self.pump(0.02)

    def see(self, text):
        self.until(f"see {text!r}", lambda: text in self.shown[self.at:])
        self.at = self.shown.index(text, self.at) + len(text)

    def is_raw(self):
        return not termios.tcgetattr(self.slave)[3] & (termios.ICANON | termios.ECHO)

    def ended(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def step(self, word, rest):
        if word == "see":
            self.see(rest)
        elif word == "type":
            os.write(self.master, codecs.decode(rest, "unicode_escape").encode("latin-1"))
        elif word == "signal":
            os.kill(self.pid, getattr(signal, "SIG" + rest))
        elif word == "resize":
            rows, cols = map(int, rest.split())
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        elif word in ("raw", "cooked"):
            self.until(word, lambda: self.is_raw() == (word == "raw"))
        elif word == "exit":
            self.until("the end", self.ended)
            while self.pump(0):  # what it wrote last may still be on its way to us
                pass
            if self.status != int(rest):
                raise SystemExit(f"exit status {self.status}, not {rest}\nshown: {self.shown!r}")
        else:
            raise SystemExit(f"no such step: {word}")


def main():
    cut = sys.argv.index("--")
    with open(sys.argv[1], encoding="utf-8") as f:
        steps = [line.rstrip("\n").partition(" ") for line in f if line.strip()]
    t = Terminal(sys.argv[cut + 1:])
    try:
        for word, _, rest in steps:
            t.step(word, rest)
        if termios.tcgetattr(t.slave) != t.before:
            raise SystemExit("the terminal was not restored")
    finally:
        if not t.ended():
            os.kill(t.pid, signal.SIGKILL)
            os.waitpid(t.pid, 0)
    print(t.shown)


if __name__ == "__main__":
    main()
