"""A cluster for the tests: a scheduler and servers as processes, and workers in the test's own process."""

import os
import socket
import subprocess

import leeway
import pytest
from leeway.launcher import command


class Cluster:
    """Runs until stop(). `connect` makes a worker of it."""

    def __init__(self, servers=2, workers=1, **settings):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.settings = {
            "scheduler": f"127.0.0.1:{port}",
            "num_servers": servers,
            "num_workers": workers,
            **settings,
        }
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith(("LEEWAY_", "DMLC_"))
        }
        environment.update({"LEEWAY_" + key.upper(): str(value) for key, value in self.settings.items()})
        environment["LEEWAY_LOG"] = "error"
        self.processes = [
            subprocess.Popen([command(), role], env=environment)
            for role in ["scheduler"] + ["server"] * servers
        ]

    def connect(self, **settings):
        return leeway.connect(**{"request_timeout_ms": 30000, "log": "error", **self.settings, **settings})

    def stop(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


@pytest.fixture
def cluster():
    """Makes clusters that end with the test: cluster(workers=2).connect()."""
    made = []

    def make(**settings):
        made.append(Cluster(**settings))
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.fixture(scope="session")
def w():
    """A worker of a cluster that all tests share: tables have names of their own."""
    shared = Cluster()
    with shared.connect() as worker:
        yield worker
    shared.stop()
