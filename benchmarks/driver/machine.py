"""The machine that the figures were measured on."""
import datetime
import os
import platform
import subprocess


def _first(path: str, key: str) -> str:
    try:
        with open(path, encoding="utf-8") as lines:
            return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), "")
    except OSError:
        return ""


def _output(*argv: str) -> str:
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def describe() -> dict:
    pslite = os.environ.get("PSLITE_DIR")
    packages = ["libzmq5", "python3-torch", "redis-tools"]
    versions = _output("dpkg-query", "-W", "-f=${Package} ${Version}\n", *packages)
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": _output("git", "rev-parse", "--short=12", "HEAD"),
        "uncommitted_changes": bool(_output("git", "status", "--porcelain", "-uno")),
        "cpu": _first("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "memory": _first("/proc/meminfo", "MemTotal"),
        "kernel": platform.release(),
        # Of raw TCP, ZeroMQ and the peers; within a machine Leeway uses reno.
        "congestion_control": _text("/proc/sys/net/ipv4/tcp_congestion_control"),
        "pslite": _output("git", "-C", pslite, "rev-parse", "--short=12", "HEAD") if pslite else "",
        "packages": dict(line.split(" ", 1) for line in versions.splitlines() if " " in line),
    }
