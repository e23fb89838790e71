#!/usr/bin/env bash
# Checks that the known bugs in the sources (Planted) and those in the catalogue are the same.
set -euo pipefail
cd "$1"
planted=$(grep -rhoE 'Planted<"[^"]+">' --include='*.cc' --include='*.h' \
  checkpoint compress node proto ps runtime scheduler van worker | sed 's/Planted<"//; s/">//' | grep -vx some-name | sort -u)
known=$(sed -nE 's/^ *\{\.name = "([^"]+)",.*/\1/p' tests/mutants/*_bugs.cc | sort)
twice=$(uniq -d <<<"$known")
if ! difference=$(diff <(sort -u <<<"$known") <(printf "%s\n" "$planted")) || [[ -n $twice ]]; then
  echo "tests/mutants/*_bugs.cc (<) and the known bugs in the sources (>) differ:"
  echo "$difference"
  echo "${twice:+twice in the catalogue: $twice}"
  exit 1
fi
