"""All subjects, and their programs."""
import os
import subprocess
import sys
from pathlib import Path

from driver import work
from driver.subject import Subject

BENCHMARKS = Path(__file__).resolve().parent.parent
LEEWAY_WORKS = [
    *work.dense(),
    *work.latencies(),
    work.PUSH_100M,
    work.PULL_100M,
    work.SMALL_PUSH,
    work.SMALL_PULL,
    work.SPARSE_PUSH,
    work.SPARSE_PULL,
]
# The cost of a codec over a fast link.
CODED_WORKS = [work.PUSH_100M_ONEBIT, work.EXCHANGE_100M, work.EXCHANGE_100M_ONEBIT]
RAW_WORKS = [*work.streams(), *work.latencies(), work.MESSAGE_100M]
TORCH_WORKS = [
    *(w for w in work.dense() if w.size >= 64 * work.KIB),
    *work.latencies(),
    work.PUSH_100M,
    work.PULL_100M,
    work.SMALL_PUSH,
]
REDIS_WORKS = [*work.dense(), work.RTT, work.SMALL_PUSH, work.SMALL_PULL]


def raw(programs: Path) -> list[Subject]:
    program = str(programs / "leeway_bench_raw")
    zmq = [*RAW_WORKS, work.MESSAGES]
    return [
        Subject("memory", "memcpy", [program, "memory"], [work.COPY, work.COPY_FAR], "raw"),
        Subject("raw.tcp", "raw TCP", [program, "tcp"], RAW_WORKS, "raw"),
        Subject("raw.tcp_reno", "raw TCP, reno", [program, "tcp-reno"], [*work.streams(), work.ADD_4M], "raw"),
        Subject("zmq.tcp", "raw libzmq, tcp", [program, "zmq-tcp"], zmq, "raw"),
        Subject("zmq.ipc", "raw libzmq, ipc", [program, "zmq-ipc"], zmq, "raw"),
    ]


def leeway(programs: Path) -> list[Subject]:
    program = str(programs / "leeway_bench_cluster")
    subjects = []
    for transport, title in (("tcp", "TCP"), ("zmq", "ZeroMQ/tcp"), ("ipc", "ZeroMQ/ipc"), ("shm", "shm")):
        works = LEEWAY_WORKS + ([work.SUM, work.SUM_FAR] if transport == "tcp" else [])
        works += CODED_WORKS if transport in ("tcp", "shm") else []
        name = f"leeway.{transport}"
        subjects.append(Subject(name, f"Leeway, {title}", [program, transport], works, "leeway"))
    lent = [work.PUSH_4M, work.PUSH_100M]
    checked = [work.PUSH_4M, work.PULL_4M]
    subjects.append(
        Subject("leeway.shm_lent", "Leeway, shm, Allocate", [program, "shm_lent"], lent, "leeway")
    )
    checksums = ["/usr/bin/env", "LEEWAY_CHECKSUM=on", program, "tcp"]
    subjects.append(
        Subject("leeway.tcp_crc", "Leeway, TCP, checksums", checksums, [*checked, work.SMALL_PUSH], "leeway")
    )
    return subjects


def shaped(programs: Path) -> list[Subject]:
    """Four connections share a link of 1 Gbit/s."""
    program = [str(programs / "leeway_bench_shaped"), "1gbit", "4", "256kb"]
    works = [work.STEP_FIFO, work.STEP_PRIORITY]
    return [Subject("leeway.shaped", "Leeway, 1 Gbit/s", program, works, "shaped")]


def shaped_checksums(programs: Path) -> list[Subject]:
    """One connection over a link of 10 Gbit/s, with checksums as between machines, and without."""
    program = [str(programs / "leeway_bench_shaped"), "10gbit", "1", "2mb"]
    works = [work.PUSH_4M, work.PULL_4M]
    return [
        Subject("leeway.shaped_10g", "Leeway, 10 Gbit/s", program, works, "shaped"),
        Subject(
            "leeway.shaped_10g_unchecked",
            "Leeway, 10 Gbit/s, no checksums",
            ["/usr/bin/env", "LEEWAY_CHECKSUM=off", *program],
            works,
            "shaped",
        ),
    ]


def shaped_codecs(programs: Path) -> list[Subject]:
    """One connection over a link of 100 Mbit/s, whose bucket holds a tenth of what onebit pushes."""
    program = [str(programs / "leeway_bench_shaped"), "100mbit", "1", "32kb"]
    works = list(work.TRAIN.values())
    return [Subject("leeway.shaped_100m", "Leeway, 100 Mbit/s", program, works, "shaped")]


def compression(programs: Path) -> list[Subject]:
    """The subjects for the ratios of codecs: over a slow link, over a fast one, and by themselves."""
    program = str(programs / "leeway_bench_cluster")
    fast = [
        Subject(f"leeway.{transport}", f"Leeway, {title}", [program, transport], [work.PUSH_100M, *CODED_WORKS], "leeway")
        for transport, title in (("tcp", "TCP"), ("shm", "shm"))
    ]
    return [*fast, *codecs(programs), *shaped_codecs(programs)]


# The name of each measured codec, and its text.
CODECS = {
    "fp16": "fp16",
    "bf16": "bf16",
    "int8": "int8",
    "onebit": "onebit",
    "qsgd": "qsgd:bits=4",
    "topk": "topk:0.01",
}


def codecs(programs: Path) -> list[Subject]:
    program = str(programs / "leeway_bench_codec")
    both_ways = [work.CODEC_COPY, work.CODEC_ENCODE, work.CODEC_DECODE]
    sparse = [work.CODEC_COPY, work.CODEC_ENCODE, work.CODEC_ADD, work.CODEC_DECODE_ADD]
    return [
        Subject(f"codec.{name}", f"codec {text}", [program, text], sparse if name == "topk" else both_ways, "leeway")
        for name, text in CODECS.items()
    ]


def scaling(programs: Path) -> list[Subject]:
    """Clusters of more than one worker and data thread, as far as there are cores for them."""
    program = str(programs / "leeway_bench_cluster")
    counts = [n for n in (1, 2, 4, 8, 16) if n <= max(2, (os.cpu_count() or 1) // 2)]
    return [
        Subject(
            f"leeway.tcp.{workers}x{threads}",
            f"{workers} workers, {threads} data threads",
            [program, "tcp", str(workers), str(threads)],
            [work.PUSH_4M, work.PULL_4M, work.SMALL_PUSH],
            "scaling",
        )
        for workers in counts
        for threads in counts
    ]


def peers() -> list[Subject]:
    def script(name: str, *arguments: str) -> list[str]:
        return [sys.executable, str(BENCHMARKS / "peers" / name), *arguments]

    reduce = [work.REDUCE_4M, work.REDUCE_100M, work.REDUCE_64]
    return [
        Subject("torch.shm", "torch rpc, shm", script("torch_rpc.py", "shm"), TORCH_WORKS),
        Subject("torch.tcp", "torch rpc, TCP", script("torch_rpc.py", "tcp"), TORCH_WORKS),
        Subject("gloo", "gloo all-reduce, 2 processes", script("gloo.py"), reduce),
        Subject("redis", "Redis", script("redis.py"), REDIS_WORKS),
    ]


def pslite(programs: Path, out: Path) -> list[Subject]:
    """ps-lite, if PSLITE_DIR names one; the adapter is built here against its public API. And the same adapter
    on Leeway, by compat/."""
    folder = os.environ.get("PSLITE_DIR")
    if not folder:
        return []
    program = out.resolve() / "pslite_bench"
    source = BENCHMARKS / "peers" / "pslite"
    built = subprocess.run(
        [str(source / "build.sh"), folder, str(program)], capture_output=True, text=True, check=False
    )
    why_not = ""
    if built.returncode != 0:
        why_not = f"the ps-lite that PSLITE_DIR names, {folder}, does not build: {_first_error(built.stderr)}"
    works = [
        *(w for w in work.dense() if w.size >= 4 * work.KIB),
        work.RTT,
        work.PUSH_100M,
        work.PULL_100M,
        work.SMALL_PUSH,
        work.SMALL_PULL,
        work.SPARSE_PUSH,
        work.SPARSE_PULL,
    ]
    sparse = [work.SPARSE_PUSH, work.SPARSE_PULL]
    ours = programs / "leeway_bench_pslite"
    ours_why_not = "" if ours.exists() else f"there is no {ours}: build it"
    return [
        Subject("pslite", "ps-lite", [str(program)], works, why_not=why_not),
        Subject("pslite.flat", "ps-lite, flat table", [str(program), "flat"], sparse, why_not=why_not),
        Subject("leeway.pslite", "Leeway behind ps/ps.h", [str(ours)], works, why_not=ours_why_not),
    ]


def _first_error(said: str) -> str:
    """The first error of a compiler or a script."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line), (lines or ["it does not say why"])[-1])
