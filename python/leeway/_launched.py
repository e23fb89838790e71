"""A worker or server of leeway.launch: `python -m leeway._launched FOLDER`."""

from __future__ import annotations

import contextlib
import os
import pickle
import runpy
import sys
import traceback
import types
from pathlib import Path

from leeway import launcher, servers
from leeway.launcher import pickler
from leeway.worker import connect


def _load_main(path: str) -> None:
    """Makes the functions of the script that called launch known, as `__main__`, without running its main part."""
    module = types.ModuleType("__main__")
    launcher.loading_main = True
    module.__dict__.update(runpy.run_path(path, run_name=launcher.LOADED_MAIN))
    launcher.loading_main = False
    sys.modules["__main__"] = sys.modules[launcher.LOADED_MAIN] = module


def _child(folder: Path) -> None:
    given = pickle.loads((folder / "payload").read_bytes())
    sys.path[:], sys.argv[:] = given["path"], given["argv"]
    name = f"{os.environ['LEEWAY_ROLE']} {os.environ['LEEWAY_RANK']}"
    servers.report_end = lambda text: _note_failure(folder, f"{name} has failed:\n{text}")
    try:
        if given["main"] is not None:
            _load_main(given["main"])
        fn, args, setup = pickle.loads(given["payload"])
        if setup is not None:
            setup()
        if name.startswith("server"):
            return servers.serve()
        with connect(**given["settings"]) as worker:  # by keywords their names are checked
            result = pickler().dumps(fn(worker, *args))
    except BaseException:
        _note_failure(folder, f"{name} has failed:\n{traceback.format_exc()}")
        raise
    (folder / f"result-{worker.rank}").write_bytes(result)


def _note_failure(folder: Path, text: str) -> None:
    """Leaves the text for the launcher, unless another process has failed before."""
    partial = folder / f"error-{os.getpid()}"
    partial.write_text(text, encoding="utf-8", errors="backslashreplace")
    with contextlib.suppress(FileExistsError):
        os.link(partial, folder / "first")


if __name__ == "__main__":
    _child(Path(sys.argv[1]))
