#!/usr/bin/env bash
# Starts a cluster over ssh: the scheduler and one server and one worker on each machine of a list.
# usage: launch.sh HOSTFILE PORT PROGRAM [ARGS…]
# HOSTFILE has one host a line, as ssh takes it; the first also runs the scheduler, and all others
# reach it by that name. `leeway` and PROGRAM must be on every machine's PATH. When a process fails
# the others are stopped, and its exit code is returned.
set -euo pipefail
[[ $# -ge 3 ]] || { grep '^# usage' "$0" >&2; exit 2; }
[[ -f $1 ]] || { echo "launch.sh: there is no file $1" >&2; exit 2; }
mapfile -t hosts <<<"$(grep -v '^\s*\(#\|$\)' "$1")"
[[ -n ${hosts[0]} ]] || { echo "launch.sh: no hosts in $1" >&2; exit 2; }
port=$2; shift 2
count=${#hosts[@]}
settings="LEEWAY_SCHEDULER=${hosts[0]##*@}:$port LEEWAY_NUM_SERVERS=$count LEEWAY_NUM_WORKERS=$count"

started=()
stop_all() {
  local code=$?
  trap '' INT TERM
  trap - EXIT
  kill "${started[@]}" 2>/dev/null || true  # their terminals go with them, and hang up on the rest
  wait
  exit "$code"
}
trap stop_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Everyone who ends writes its exit code there. (`wait -n` can overlook one when several end at once.)
exec {ends}<> <(:)
on() {
  local host=$1; shift
  (
    trap 'kill "$!" 2>/dev/null || true; wait' EXIT
    trap 'exit 143' TERM
    code=0
    ssh -tt -o BatchMode=yes "$host" "$settings $(printf '%q ' "$@")" </dev/null &
    wait "$!" || code=$?
    echo "$code" >&"$ends"
  ) &
  started+=($!)
}

on "${hosts[0]}" leeway scheduler
for host in "${hosts[@]}"; do
  on "$host" leeway server
  on "$host" env LEEWAY_ROLE=worker "$@"
done
for _ in "${started[@]}"; do
  read -r code <&"$ends"
  [[ $code == 0 ]] || exit "$code"
done
