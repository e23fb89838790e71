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

from leeway.launcher import pickler
from leeway.servers import serve
from leeway.worker import connect


def _load_main(path: str) -> None:
    """Makes the functions of the script that called launch known, as `__main__`, without running its main part."""
    module = types.ModuleType("__main__")
    module.__dict__.update(runpy.run_path(path, run_name="__leeway_worker__"))
    sys.modules["__main__"] = module


def _child(folder: Path) -> None:
    given = pickle.loads((folder / "payload").read_bytes())
    sys.path[:] = given["path"]
    name = f"{os.environ['LEEWAY_ROLE']} {os.environ['LEEWAY_RANK']}"
    try:
        if given["main"] is not None:
            _load_main(given["main"])
        fn, args, setup = pickle.loads(given["payload"])
        if setup is not None:
            setup()
        if name.startswith("server"):
            return serve()
        with connect() as worker:
            result = pickler().dumps(fn(worker, *args))
    except BaseException:
        partial = folder / f"error-{os.getpid()}"
        partial.write_text(f"{name} has failed:\n{traceback.format_exc()}")
        with contextlib.suppress(FileExistsError):  # another was first
            os.link(partial, folder / "first")
        raise
    (folder / f"result-{worker.rank}").write_bytes(result)


if __name__ == "__main__":
    _child(Path(sys.argv[1]))
