#!/usr/bin/env bash
# Starts a cluster over ssh: the scheduler and one server and one worker on each machine of a list.
# usage: launch.sh HOSTFILE PORT PROGRAM [ARGS…]
# HOSTFILE has one host a line; the first also runs the scheduler. `leeway` and PROGRAM must be on
# every machine's PATH. Stops everything when the first process fails.
set -euo pipefail
[[ $# -ge 3 ]] || { grep '^# usage' "$0" >&2; exit 2; }
mapfile -t hosts < <(grep -v '^\s*\(#\|$\)' "$1")
[[ ${#hosts[@]} -gt 0 ]] || { echo "launch.sh: no hosts in $1" >&2; exit 2; }
port=$2; shift 2
count=${#hosts[@]}
settings="LEEWAY_SCHEDULER=${hosts[0]}:$port LEEWAY_NUM_SERVERS=$count LEEWAY_NUM_WORKERS=$count"

trap 'trap - EXIT; kill 0' EXIT INT TERM
on() { local host=$1; shift; ssh -tt -o BatchMode=yes "$host" "$settings $(printf '%q ' "$@")" </dev/null; }

on "${hosts[0]}" leeway scheduler &
for host in "${hosts[@]}"; do
  on "$host" leeway server &
  on "$host" env LEEWAY_ROLE=worker "$@" &
done
for ((i = 0; i < 2 * count + 1; ++i)); do wait -n; done
