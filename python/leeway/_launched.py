"""A worker of leeway.launch: `python -m leeway._launched FOLDER`."""

from __future__ import annotations

import contextlib
import os
import pickle
import runpy
import sys
import traceback
import types
from pathlib import Path

from leeway.launcher import pickler
from leeway.worker import connect


def _load_main(path: str) -> None:
    """Makes the functions of the script that called launch known, as `__main__`, without running its main part."""
    module = types.ModuleType("__main__")
    module.__dict__.update(runpy.run_path(path, run_name="__leeway_worker__"))
    sys.modules["__main__"] = module


def _child(folder: Path) -> None:
    given = pickle.loads((folder / "payload").read_bytes())
    sys.path[:] = given["path"]
    rank = "?"
    try:
        if given["main"] is not None:
            _load_main(given["main"])
        fn, args = pickle.loads(given["payload"])
        with connect() as worker:
            rank = str(worker.rank)
            result = pickler().dumps(fn(worker, *args))
    except BaseException:
        text = f"worker {rank} has failed:\n{traceback.format_exc()}"
        partial = folder / f"error-{os.getpid()}"
        partial.write_text(text)
        with contextlib.suppress(FileExistsError):  # another was first
            os.link(partial, folder / "first")
        raise
    (folder / f"result-{rank}").write_bytes(result)


if __name__ == "__main__":
    _child(Path(sys.argv[1]))
