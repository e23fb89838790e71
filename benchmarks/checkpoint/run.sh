#!/usr/bin/env bash
# Measures the saving of a large model during training, beside dd, and has a cluster of another size go
# on with it. usage: run.sh BUILD [FOLDER [GIGABYTES [ROUNDS [WORKERS [PACE_MS]]]]]; FOLDER (on the disk
# to be measured) is emptied afterwards. PACE_MS: the time from the beginning of one step to the next
# (100), or 0 for none, which leaves the processors no idle time.
set -euo pipefail
build=$1 folder=$(realpath -m "${2:-/tmp/leeway-checkpoints}") gigabytes=${3:-4} rounds=${4:-3}
workers=${5:-2} pace_ms=${6:-100}
leeway=$build/tools/leeway program=$build/benchmarks/checkpoint_benchmark
mkdir -p "$folder"
trap 'rm -rf "$folder"' EXIT
export LEEWAY_LOG=warning LEEWAY_CHECKPOINT_KEEP=1

"$leeway" launch -s 2 -w "$workers" -- "$program" "$folder" "$gigabytes" "$rounds" "$pace_ms" |
  tee "$folder/first.txt"
"$leeway" checkpoint list "$folder"
"$leeway" checkpoint verify "$folder"
end=$(sed -n 's/.*at clock \([0-9]*\): sum.*/\1/p' "$folder/first.txt")
LEEWAY_RESTORE=$folder "$leeway" launch -s 3 -w "$workers" -- \
  "$program" "$folder" "$gigabytes" 0 0 "$end" | tee "$folder/second.txt"
first=$(sed -n 's/.*sum //p' "$folder/first.txt") second=$(sed -n 's/.*sum //p' "$folder/second.txt")
[[ -n $first && $first == "$second" ]] || { echo "run.sh: the sums differ" >&2; exit 1; }
echo "on 3 servers instead of 2, every value after one more update of each is the same"
