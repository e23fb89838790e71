#!/usr/bin/env bash
# build.sh PSLITE_DIR PROGRAM: builds the adapter against a ps-lite that has been built (make).
set -euo pipefail
folder=$1 program=$2
source=$(dirname "${BASH_SOURCE[0]}")
library=$(find "$folder/build" "$folder/lib" -maxdepth 2 \( -name libps.a -o -name libpslite.a \) -print -quit 2>/dev/null || true)
[[ -n $library ]] || { echo "there is no libps.a or libpslite.a in $folder: run make or cmake there" >&2; exit 1; }
mkdir -p "$(dirname "$program")"
# ps-lite's makefile puts ZeroMQ and protobuf into deps/ where it builds them itself.
deps=()
for place in "$folder/deps" "$folder/deps_path"; do
  [[ -d $place/include ]] && deps+=("-I$place/include" "-L$place/lib" "-Wl,-rpath,$place/lib")
done
exec "${CXX:-g++}" -std=c++17 -O3 -I"$folder/include" -I"$source/../.." "${deps[@]}" \
  "$source/pslite_bench.cc" "$source/../../harness/"{measured,serve_commands,stopwatch}.cc \
  "$library" -lzmq -lprotobuf -lpthread -lrt -o "$program"
