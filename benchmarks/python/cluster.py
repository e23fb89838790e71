"""A Leeway cluster of this machine: a scheduler and a server as processes that end with this one."""
import os
import subprocess

import leeway
import peer
from leeway.launcher import command


class Cluster:
    def __init__(self, workers: int, port: int | None = None, **settings):
        self.settings = {
            "scheduler": f"127.0.0.1:{port or peer.free_port()}",
            "num_servers": 1,
            "num_workers": workers,
            "log": "error",
            **settings,
        }
        environment = os.environ | {"LEEWAY_" + key.upper(): str(value) for key, value in self.settings.items()}
        self.processes = [
            subprocess.Popen([command(), role], env=environment, preexec_fn=peer.die_with_parent)
            for role in ("scheduler", "server")
        ]
        self.server = self.processes[1].pid

    def connect(self) -> leeway.Worker:
        return leeway.connect(**self.settings)
