"""A Subject is a measured program, which takes commands on its standard input (harness/)."""
import contextlib
import json
import os
import select
import signal
import subprocess
import time

from driver.work import Work

START_SECONDS = 60  # for a subject to become ready
SLACK_SECONDS = 60  # for a command, beyond its own time
NOT_THERE = 3  # exit status of a program that cannot be measured here


class Failure(Exception):
    """A subject crashed, hung or reported an error."""


class NotThere(Failure):
    """The subject cannot be measured on this machine or in this build."""


class Subject:
    """One program, started when it is first needed and again when it has failed.

    A peer stands still between its measurements: torch's shm transport polls with both of its
    processes for as long as they live, and would take the cores from the other subjects. Leeway's
    nodes do not, and go on sending each other heartbeats; nor does an "awake peer", whose processes
    would take each other for dead.

    `why_not`: the reason, if it is known beforehand that it cannot be measured.
    """

    def __init__(
        self, name: str, title: str, argv: list[str], works: list[Work], kind: str = "peer", why_not: str = ""
    ):
        self.name, self.title, self.kind = name, title, kind
        self.works = set(works)
        self._argv = argv
        self._why_not = why_not
        self._process: subprocess.Popen | None = None
        self._unread = b""
        self._errors = b""  # the end of its standard error, as far as it was read

    def measure(self, work: Work, seconds: float) -> dict:
        if self._why_not:
            raise NotThere(self._why_not)
        if self._process is None:
            self._start()
        self._let(signal.SIGCONT)
        command = f"{work.op} {work.size} {work.in_flight} {seconds}\n"
        try:
            self._process.stdin.write(command.encode())
            self._process.stdin.flush()
            answer = self._read(seconds + SLACK_SECONDS)
        except (BrokenPipeError, Failure) as why:
            self.stop()
            raise Failure(str(why) or "it ended") from why
        if "error" in answer:
            self.stop()  # a process that it needs may have died: all of them start again
            raise Failure(answer["error"])
        self._let(signal.SIGSTOP)
        return answer

    def stop(self) -> None:
        if self._process is None:
            return
        self._let(signal.SIGCONT)  # a stopped process would not see the end of its input
        process, self._process = self._process, None
        with contextlib.suppress(BrokenPipeError):  # of bytes that could not be written before
            process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        with contextlib.suppress(ProcessLookupError):  # and its remaining processes
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        process.stderr.close()

    def _let(self, go: signal.Signals) -> None:
        """Stops or continues a peer with all its processes: they are a group of their own."""
        if self.kind == "peer":
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, go)

    def _start(self) -> None:
        self._unread = self._errors = b""
        try:
            self._process = subprocess.Popen(
                self._argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # In our session: so the system continues them if the bench is killed.
                process_group=0,
            )
        except OSError as why:
            raise NotThere(str(why)) from why
        os.set_blocking(self._process.stderr.fileno(), False)
        try:
            self._read(START_SECONDS)
        except Failure as why:
            said = self._said()
            status = self._process.poll()
            self.stop()
            raise (NotThere if status == NOT_THERE else Failure)(said or str(why)) from why

    def _said(self) -> str:
        """The last line of its standard error."""
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            pass
        self._read_errors()
        lines = self._errors.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def _read_errors(self) -> None:
        self._errors = (self._errors + (self._process.stderr.read() or b""))[-4096:]

    def _read(self, limit: float) -> dict:
        """The next line of its output that is an answer."""
        end = time.monotonic() + limit
        while True:
            line, found, rest = self._unread.partition(b"\n")
            if found:
                self._unread = rest
                if line.startswith(b"{"):
                    return json.loads(line)
                continue
            self._read_errors()  # so that it cannot fill up
            ready, _, _ = select.select([self._process.stdout], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise Failure(f"no answer within {limit:.0f} s")
            more = os.read(self._process.stdout.fileno(), 1 << 16)
            if not more:
                raise Failure(f"it ended with status {self._process.wait()}")
            self._unread += more
