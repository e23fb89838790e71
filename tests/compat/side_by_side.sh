#!/usr/bin/env bash
# side_by_side.sh PROGRAM PSLITE_DIR: builds program.cc against a ps-lite that has been built (by its makefile
# or by CMake), runs it and PROGRAM, which is the same one on Leeway, and compares what their processes say.
set -euo pipefail
program=$1 pslite=$2
source=$(dirname "${BASH_SOURCE[0]}")
library=$(find "$pslite/build" "$pslite/lib" -maxdepth 2 \( -name libps.a -o -name libpslite.a \) -print -quit 2>/dev/null || true)
[[ -n $library ]] || { echo "there is no libps.a or libpslite.a in $pslite" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${CXX:-g++}" -std=c++14 -O2 -w -I"$pslite/include" "$source/program.cc" "$library" \
  -lzmq -lprotobuf -lpthread -o "$work/theirs"

run() {  # PROGRAM WAY WORKER_PROCESSES
  local roles=(scheduler server server) port=$((20000 + RANDOM % 20000)) pids=() role
  for ((i = 0; i < $3; ++i)); do roles+=(worker); done
  for role in "${roles[@]}"; do
    DMLC_ROLE=$role DMLC_PS_ROOT_URI=127.0.0.1 DMLC_PS_ROOT_PORT=$port DMLC_NUM_SERVER=2 DMLC_NUM_WORKER=2 \
      DMLC_INTERFACE=lo timeout 60 "$1" "$2" 2>>"$work/errors" & pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || { cat "$work/errors" >&2; echo "$1 $2 failed" >&2; exit 1; }; done
}
for way in customers handler messages groups; do
  workers=2
  [[ $way == customers ]] && workers=1
  run "$work/theirs" $way $workers | sort >"$work/theirs.out"
  run "$program" $way $workers | sort >"$work/ours.out"
  diff "$work/theirs.out" "$work/ours.out" || { echo "$way: ps-lite says <, Leeway >" >&2; exit 1; }
  echo "$way: the same ($(wc -l <"$work/ours.out") lines)"
done
