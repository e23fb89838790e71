"""Clusters of growing size on virtual time, each in a process of its own: tests/simulation/scale/."""
import json
import subprocess
from pathlib import Path

from driver.rounds import Samples

SIZES = [(10, 2), (30, 5), (100, 10), (300, 30), (1000, 100)]  # workers, servers
QUICK = SIZES[:3]
LARGEST_STEPS = 12  # otherwise 24, or as many as fill two virtual seconds
SECONDS_MAX = 3600


def name(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"


def run(program: Path, sizes: list[tuple[int, int]], samples: Samples) -> dict[str, dict]:
    """Results by name; a failed run is missing, and listed among the failures. An interruption ends it early."""
    found: dict[str, dict] = {}
    failures = samples.failures
    for size in sizes:
        print(f"bench: simulating {size[0]} workers and {size[1]} servers", flush=True)
        command = [program, "--workers", str(size[0]), "--servers", str(size[1])]
        if size == SIZES[-1]:
            command += ["--steps", str(LARGEST_STEPS)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=True)
            found[name(size)] = json.loads(done.stdout)
        except KeyboardInterrupt:
            samples.broken_off = True
            break
        except subprocess.CalledProcessError as why:
            failures.append({"subject": "leeway-scale", "work": name(size), "why": why.stderr.strip() or str(why)})
        except (OSError, subprocess.TimeoutExpired, ValueError) as why:
            failures.append({"subject": "leeway-scale", "work": name(size), "why": str(why)})
    return found
