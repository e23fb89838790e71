#!/usr/bin/env bash
# wheel_test.sh WHEEL [PYTHON]: installs the wheel into a bare virtual environment, trains with it, and
# removes it. Nothing of it may be left, and nothing of Leeway on the system may be used.
set -euo pipefail
wheel=$(realpath "$1") python=${2:-/usr/bin/python3}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "wheel: $*" >&2; exit 1; }

"$python" -m venv "$work/venv"
pip() { "$work/venv/bin/pip" --quiet --disable-pip-version-check "$@"; }
pip install numpy cffi
files() { (cd "$work/venv" && find . -not -name '*.pyc' -not -name __pycache__ | sort); }
files >"$work/before"
pip install "$wheel"

cat >"$work/train.py" <<'PYTHON'
import leeway, numpy as np

def train(worker):
    table = worker.table("w", shape=4, updater=leeway.SGD(lr=0.5))
    for step in worker.iterations(20):
        table.push(table.pull() - np.arange(4, dtype=np.float32))
    return table.pull().round(2).tolist()

if __name__ == "__main__":
    print(leeway.launch(train, servers=2, workers=1, output=False))
PYTHON
cd "$work"
run() { env -i HOME="$work" PATH="$work/venv/bin:/usr/bin:/bin" "$@"; }
result=$(run python train.py)
[[ $result == "[[0.0, 1.0, 2.0, 3.0]]" ]] || fail "training gives $result"
run python -m leeway --version >/dev/null || fail "python -m leeway does not run"
foreign=$(run ldd venv/lib/python3*/site-packages/leeway/_c.abi3.so |
  grep -vE '/venv/|linux-vdso|ld-linux|lib(c|m|pthread|dl|rt|gcc_s|stdc\+\+)\.so' || true)
[[ -z $foreign ]] || fail "it uses libraries of the system: $foreign"

pip uninstall --yes leeway
files >"$work/after"
diff "$work/before" "$work/after" || fail "the files above are left"
echo "wheel: $(basename "$wheel") installs, trains and goes"
