"""Leeway's Python package beside what users would pick: works, subjects, and the peers' installation."""
import json
import subprocess
import sys
from pathlib import Path

from driver import work
from driver.subject import Subject
from driver.subjects import BENCHMARKS
from driver.work import Work

ROUNDS = {"rounds": 3, "seconds": 0.5}
PEERS = Path("out/python-peers")  # a virtual environment
REQUIREMENTS = BENCHMARKS / "python" / "requirements.txt"

TENSORS = [work.PUSH_4M, work.PULL_4M, work.PUSH_100M, work.PULL_100M]
REDUCES = [work.REDUCE_64, work.REDUCE_4M, work.REDUCE_100M]
SPARSE = [work.SPARSE_PUSH, work.SPARSE_PULL]
# Square arrays there and back: thirteen transfers.
TRANSFERS = [
    *(Work(f"transfer:{dtype}:{edge}") for edge in (100, 500, 1000, 3000) for dtype in ("float16", "float32", "float64")),
    Work("transfer:float32:2000"),
]
MLP = [Work("mlp:even"), Work("mlp:slow"), Work("mlp:killed")]
IMPORT = Work("import")


def works() -> list[Work]:
    return [work.RTT, work.SMALL_PUSH, *TENSORS, *REDUCES, *SPARSE, *TRANSFERS, IMPORT, *MLP]


def subjects(programs: Path, missing: dict[str, str]) -> list[Subject]:
    """`missing`: peers that could not be installed, and why."""
    built = programs.resolve().parent / "python"

    def python(name: str, title: str, script: str, found: list[Work], kind: str, needs: str = "numpy") -> Subject:
        path = f"PYTHONPATH={built}:{BENCHMARKS / 'peers'}:{BENCHMARKS / 'python'}"
        program, *arguments = script.split()
        argv = ["/usr/bin/env", path, str(PEERS.resolve() / "bin" / "python"), str(BENCHMARKS / program), *arguments]
        return Subject(name, title, argv, found, kind, why_not=missing.get(needs, ""))

    cluster = str(programs / "leeway_bench_cluster")
    large = [work.SMALL_PUSH, work.PUSH_100M, work.PULL_100M]
    tensors = [work.RTT, *TENSORS]
    leeway = "Leeway (allocated arrays)"
    return [
        Subject("cpp", "Leeway in C++", [cluster, "shm"], large, "leeway"),
        Subject("cpp.lent", "Leeway in C++ (allocated arrays)", [cluster, "shm_lent"], large, "leeway"),
        python("leeway", leeway, "python/leeway_tables.py lent", [work.SMALL_PUSH, *tensors, *SPARSE, *TRANSFERS, IMPORT], "leeway"),
        python("leeway.plain", "Leeway (NumPy arrays)", "python/leeway_tables.py plain", [work.SMALL_PUSH, *tensors, *TRANSFERS], "leeway"),
        python("leeway.reduce", "Leeway, 2 workers in BSP", "python/leeway_reduce.py", REDUCES, "leeway"),
        python("torch.shm", "torch rpc, shm", "peers/torch_rpc.py shm", [*tensors, *SPARSE], "peer", "torch"),
        python("torch.tcp", "torch rpc, TCP", "peers/torch_rpc.py tcp", [*tensors, *SPARSE], "peer", "torch"),
        python("ray", "Ray actor", "python/ray_server.py actor", [*tensors, *SPARSE], "awake peer", "ray"),
        python("ray.store", "Ray object store", "python/ray_server.py store", tensors, "awake peer", "ray"),
        python("torchstore", "TorchStore", "python/torch_store.py", tensors, "peer", "torchstore"),
        python("gloo", "gloo all-reduce, 2 processes", "peers/gloo.py", REDUCES, "peer", "torch"),
        python("flight.unix", "Arrow Flight, Unix socket", "python/flight.py unix", [work.RTT, *TRANSFERS], "peer", "pyarrow"),
        python("flight.tcp", "Arrow Flight, TCP", "python/flight.py tcp", [work.RTT, *TRANSFERS], "peer", "pyarrow"),
        python("mlp.leeway", "Leeway, ASP", "python/mlp.py leeway", MLP, "leeway", "torch"),
        python("mlp.leeway_bsp", "Leeway, BSP", "python/mlp.py leeway_bsp", MLP, "leeway", "torch"),
        python("mlp.leeway_diloco", "Leeway, DiLoCo", "python/mlp.py leeway_diloco", MLP, "leeway", "torch"),
        python("mlp.rpc", "torch rpc parameter server", "python/mlp.py rpc", MLP, "peer", "torch"),
        python("mlp.ray", "Ray parameter server", "python/mlp.py ray", MLP, "peer", "ray"),
        python("mlp.gloo", "gloo, DistributedDataParallel", "python/mlp.py gloo", MLP, "peer", "torch"),
        python("mlp.torchft", "torchft, DiLoCo", "python/mlp.py torchft", MLP, "peer", "torchft"),
    ]  # fmt: skip


def requirements() -> dict[str, str]:
    """For each peer, by the name of its first package, what pip is told."""
    lines = [line for line in REQUIREMENTS.read_text().splitlines() if line and not line.startswith("#")]
    return {next(word for word in line.split() if not word.startswith("-")).split("==")[0]: line for line in lines}


def install(folder: Path = PEERS) -> dict[str, str]:
    """Installs the peers where they are not yet; returns those that cannot be installed, and why."""
    wanted, stamp = requirements(), folder / "installed.json"
    if stamp.exists():
        made = json.loads(stamp.read_text())
        if made["wanted"] == wanted and not made["missing"]:
            return {}
    print(f"bench: installing the peers in {folder}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    missing = {}
    for name, line in wanted.items():
        done = subprocess.run(
            [str(folder / "bin" / "pip"), "install", "--quiet", *line.split()], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            errors = [said for said in done.stderr.splitlines() if "ERROR" in said]
            missing[name] = f"pip cannot install it: {(errors or ['it does not say why'])[-1]}"
    stamp.write_text(json.dumps({"wanted": wanted, "missing": missing}))
    return missing


def versions(folder: Path = PEERS) -> dict[str, str]:
    listed = subprocess.run([str(folder / "bin" / "pip"), "list", "--format", "json"], capture_output=True, text=True, check=True)
    measured = {word.split("==")[0] for line in requirements().values() for word in line.split()}
    return {entry["name"]: entry["version"] for entry in json.loads(listed.stdout) if entry["name"] in measured}
