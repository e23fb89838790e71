"""Tests that a subject in the background does not disturb a measurement."""
import os
import signal
import sys
import time
import unittest
from pathlib import Path

from driver.subject import Failure, NotThere, Subject
from driver.work import Work

# A subject with a child, as redis.py has one; its answers name both processes.
PROGRAM = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "while True: pass"], stdout=subprocess.DEVNULL)  # as torch polls
print('{"ready": true}', flush=True)
for line in sys.stdin:
    print('{"pids": [%d, %d]}' % (os.getpid(), child.pid), flush=True)
child.kill()
"""
# A subject whose processes no longer work.
BROKEN = """
import os, sys
print('{"ready": true}', flush=True)
for line in sys.stdin:
    print('{"error": "the server of %d is gone"}' % os.getpid(), flush=True)
"""
WORK = Work("push", 64)
LIMIT_SECONDS = 30


def state(pid: int) -> str:
    """The state of a process: T: stopped, R or S: alive, Z: ended; empty: gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def wait_until(condition) -> bool:
    end = time.monotonic() + LIMIT_SECONDS
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def subject(kind: str) -> Subject:
    return Subject("a", "A", [sys.executable, "-c", PROGRAM], [WORK], kind)


class SubjectTest(unittest.TestCase):
    def test_a_peer_stands_still_between_measurements(self):
        peer = subject("peer")
        self.addCleanup(peer.stop)
        for _ in range(2):  # the second time it has to be continued
            pids = peer.measure(WORK, 0.1)["pids"]
            self.assertTrue(wait_until(lambda: all(state(pid) == "T" for pid in pids)))

    def test_what_is_not_a_peer_goes_on(self):
        ours = subject("leeway")
        self.addCleanup(ours.stop)
        pids = ours.measure(WORK, 0.1)["pids"]
        self.assertNotIn("T", [state(pid) for pid in pids])

    def test_a_peer_that_stands_still_can_be_ended(self):
        peer = subject("peer")
        pids = peer.measure(WORK, 0.1)["pids"]
        begin = time.monotonic()
        peer.stop()
        self.assertLess(time.monotonic() - begin, 9)  # by itself, not killed
        self.assertTrue(wait_until(lambda: all(state(pid) in ("", "Z") for pid in pids)))

    def test_one_that_ends_between_its_measurements_is_started_again(self):
        peer = subject("peer")
        self.addCleanup(peer.stop)
        leader, child = peer.measure(WORK, 0.1)["pids"]
        os.kill(leader, signal.SIGKILL)
        with self.assertRaises(Failure):
            peer.measure(WORK, 0.1)
        self.assertTrue(wait_until(lambda: state(child) in ("", "Z")))
        self.assertNotIn(leader, peer.measure(WORK, 0.1)["pids"])

    def test_one_that_says_that_it_cannot_begins_anew(self):
        peer = Subject("a", "A", [sys.executable, "-c", BROKEN], [WORK])
        self.addCleanup(peer.stop)
        said = []
        for _ in range(2):
            with self.assertRaises(Failure) as failure:
                peer.measure(WORK, 0.1)
            said.append(str(failure.exception))
        self.assertNotEqual(said[0], said[1])  # another process

    def test_what_cannot_be_started_is_not_there(self):
        with self.assertRaises(NotThere):
            Subject("a", "A", ["/nowhere/program"], [WORK]).measure(WORK, 0.1)
        known = Subject("a", "A", [sys.executable, "-c", PROGRAM], [WORK], why_not="it does not build")
        with self.assertRaisesRegex(NotThere, "it does not build"):
            known.measure(WORK, 0.1)


if __name__ == "__main__":
    unittest.main()
