"""launch runs a function on a cluster of processes of this machine: for scripts, notebooks and tests."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leeway import errors


class LaunchError(errors.Error):
    """A worker of a launch has failed; the text has the traceback of the first one that did."""

    code = 2


def command() -> str:
    """The path of the `leeway` command: the package's own, or else the system's.

    Raises:
        FileNotFoundError: there is none.
    """
    own = Path(__file__).parent / "bin" / "leeway"
    found = str(own) if own.exists() else shutil.which("leeway")
    if found is None:
        raise FileNotFoundError("the command `leeway` is neither beside this package nor in PATH")
    return found


def pickler() -> Any:
    try:
        import cloudpickle
    except ImportError:
        return pickle
    return cloudpickle


def _main_file() -> str | None:
    """The script that defines __main__, which a child loads so that its functions are found there."""
    return getattr(sys.modules["__main__"], "__file__", None)


def launch(
    fn: Callable[..., Any],
    *args: Any,
    servers: int = 1,
    workers: int = 1,
    output: bool = True,
    **settings: Any,
) -> list[Any]:
    """Runs `fn(worker, *args)` in `workers` processes, each connected as a worker of a new cluster.

    Returns what they return, by rank. Their output appears here, each line behind the worker's name. All
    processes end with this call, however it ends.

    Args:
        fn: a function that pickle can name, or with the package cloudpickle any: a notebook's, a lambda.
        settings: of the cluster, as connect has them: replication=2, server_threads=2, ...

    Raises:
        LaunchError: has the traceback of the first worker that failed.

    >>> import operator
    >>> leeway.launch(operator.attrgetter("rank"), workers=2, output=False)
    [0, 1]
    """
    by = pickler()
    with tempfile.TemporaryDirectory(prefix="leeway-launch-") as name:
        folder = Path(name)
        try:
            payload = by.dumps((fn, args))
        except Exception as error:
            raise TypeError(f"{fn!r} or an argument cannot be sent to another process ({error})") from error
        main = None if by is not pickle else _main_file()
        if main is None and by is pickle and getattr(fn, "__module__", None) == "__main__":
            raise TypeError(
                "a function of a notebook or of an interactive session needs the package cloudpickle"
            )
        (folder / "payload").write_bytes(pickle.dumps({"path": sys.path, "main": main, "payload": payload}))
        environment = dict(os.environ)
        for key in list(environment):
            if key.startswith(("LEEWAY_", "DMLC_")):  # of another cluster, which this process may belong to
                del environment[key]
        environment["LEEWAY_LOG"] = "warning"
        for key, value in settings.items():
            environment["LEEWAY_" + key.upper()] = str(int(value) if isinstance(value, bool) else value)
        environment["PYTHONUNBUFFERED"] = "1"
        environment["PYTHONPATH"] = os.pathsep.join(
            [str(Path(__file__).parent.parent)] + [p for p in [environment.get("PYTHONPATH")] if p]
        )
        status, text = _run(
            [command(), "launch", "--servers", str(servers), "--workers", str(workers), "--",
             sys.executable, "-m", "leeway._launched", name],
            environment, output,
        )  # fmt: skip
        return _results(folder, workers, status, text)


def _run(arguments: list[str], environment: dict[str, str], output: bool) -> tuple[int, str]:
    """Runs it to its end, shows its output, and returns its status and its last lines."""
    last: list[str] = []
    with subprocess.Popen(
        arguments,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if output:
                    print(line, end="", flush=True)
                last = last[-99:] + [line]
            return process.wait(), "".join(last)
        except BaseException:
            process.terminate()  # the command ends all processes that it has started
            process.wait()
            raise


def _results(folder: Path, workers: int, status: int, text: str) -> list[Any]:
    first = folder / "first"
    if first.exists():
        raise LaunchError(first.read_text())
    results = []
    for rank in range(workers):
        file = folder / f"result-{rank}"
        if not file.exists():
            raise LaunchError(
                f"worker {rank} has ended without a result (`leeway launch` returned {status}):\n{text}"
            )
        results.append(pickle.loads(file.read_bytes()))
    if status != 0:
        raise LaunchError(f"`leeway launch` returned {status}:\n{text}")
    return results
