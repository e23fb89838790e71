"""launch runs a function on a cluster of processes of this machine: for scripts, notebooks and tests."""

from __future__ import annotations

import operator
import os
import pickle
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leeway import errors
from leeway._settings import environment_of


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


# The name under which a child loads the script that its launcher runs as __main__, for the functions in it.
LOADED_MAIN = "__leeway_worker__"

# Whether this process loads the script of its parent's launch, for the functions in it.
loading_main = False

# Becomes a program that gets SIGTERM when the process of that number, its parent, has died.
_WITH_PARENT = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 15); "
    "int(sys.argv[1]) == os.getppid() and os.execv(sys.argv[2], sys.argv[2:])"
)


def _main_file() -> str | None:
    """The script that defines __main__, which a child loads so that its functions are found there."""
    file = getattr(sys.modules["__main__"], "__file__", None)
    return file if file is not None and os.path.exists(file) else None  # "<stdin>"


def launch(
    fn: Callable[..., Any],
    *args: Any,
    servers: int = 1,
    workers: int = 1,
    setup: Callable[[], object] | None = None,
    output: bool = True,
    **settings: Any,
) -> list[Any]:
    """Runs `fn(worker, *args)` in `workers` processes, each connected as a worker of a new cluster.

    Returns what they return, by rank. Their output appears here, each line behind the worker's name. All
    processes end with this call, however it ends.

    Args:
        fn: a function that pickle can name, or with the package cloudpickle any: a notebook's, a lambda. For a
            function of the script itself each process loads the script, without cloudpickle: the script
            calls launch under `if __name__ == "__main__":`.
        setup: called in every worker and server before it joins; registers what they need beyond the built-in
            updaters, codecs and handlers (leeway.updater, leeway.codec, leeway.handler). Servers are
            Python's then.
        settings: of the cluster, as connect has them: replication=2, server_threads=2, ...

    Raises:
        LaunchError: has the traceback of the first process that failed.

    >>> import operator
    >>> leeway.launch(operator.attrgetter("rank"), workers=2, output=False)
    [0, 1]
    """
    if loading_main:
        raise RuntimeError(
            "the script calls leeway.launch where it is loaded for the functions in it: put that call under "
            "`if __name__ == '__main__':`"
        )
    servers, workers = operator.index(servers), operator.index(workers)
    by = pickler()
    with tempfile.TemporaryDirectory(prefix="leeway-launch-") as name:
        folder = Path(name)
        try:
            payload = by.dumps((fn, args, setup))
        except Exception as error:
            raise TypeError(f"{fn!r} or an argument cannot be sent to another process ({error})") from error
        names_main = by is pickle and b"__main__" in payload
        main = _main_file() if names_main else None
        if names_main and main is None:
            raise TypeError(
                "a function of a notebook, of an interactive session or of standard input needs the package cloudpickle"
            )
        given = {"path": sys.path, "argv": sys.argv, "main": main, "settings": settings, "payload": payload}
        (folder / "payload").write_bytes(pickle.dumps(given))
        child = [sys.executable, "-P", "-m", "leeway._launched", name]
        with_parent = [sys.executable, "-I", "-S", "-c", _WITH_PARENT, str(os.getpid())]
        arguments = [*with_parent, command(), "launch", "--servers", str(servers), "--workers", str(workers)]
        if setup is not None:
            program = folder / "server"
            program.write_text(f"#!/bin/sh\nexec {shlex.join(child)}\n")
            program.chmod(0o700)
            arguments += ["--server-program", str(program)]
        status, text = _run([*arguments, "--", *child], _environment(settings), output)
        return _results(folder, workers, status, text)


def _environment(settings: dict[str, Any]) -> dict[str, str]:
    """This process's environment without the place that it may have in another cluster."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("LEEWAY_", "DMLC_"))
    }
    path = [str(Path(__file__).parent.parent), environment.get("PYTHONPATH", "")]
    environment.update(
        {"LEEWAY_LOG": "warning", **environment_of(settings)},
        PYTHONUNBUFFERED="1",
        PYTHONPATH=os.pathsep.join(filter(None, path)),
    )
    return environment


def _run(arguments: list[str], environment: dict[str, str], output: bool) -> tuple[int, str]:
    """Runs it to its end, shows its output, and returns its status and its last lines."""
    last: list[str] = []
    with subprocess.Popen(
        arguments,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
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
            for _ in process.stdout:  # what it still says must not hold it up
                pass
            process.wait()
            raise


class _Unpickler(pickle.Unpickler):
    """Finds the classes of the script in this process, which runs it."""

    def find_class(self, module: str, name: str) -> Any:
        return super().find_class("__main__" if module == LOADED_MAIN else module, name)


def _results(folder: Path, workers: int, status: int, text: str) -> list[Any]:
    first = folder / "first"
    if first.exists():
        raise LaunchError(first.read_text(encoding="utf-8"))
    results = []
    for rank in range(workers):
        file = folder / f"result-{rank}"
        if not file.exists():
            raise LaunchError(
                f"worker {rank} has ended without a result (`leeway launch` returned {status}):\n{text}"
            )
        with file.open("rb") as data:
            results.append(_Unpickler(data).load())
    if status != 0:
        raise LaunchError(f"`leeway launch` returned {status}:\n{text}")
    return results
