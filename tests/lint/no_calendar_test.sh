#!/usr/bin/env bash
# No decision goes by the calendar, which may be set back or forth: only these files may ask what
# time it is, each for people to read.
set -euo pipefail
cd "$1"
allowed='^(runtime/loop/real_host\.cc|runtime/log/log\.cc):'
found=$(grep -rnE 'absl::Now\(|system_clock|gettimeofday|CLOCK_REALTIME|[^_a-z]time\((NULL|nullptr|0)\)' \
  --include='*.cc' --include='*.h' \
  checkpoint compress examples include node proto ps runtime scheduler tools van worker |
  grep -vE '_test\.cc:|/test_|/testing/' | grep -vE "$allowed" || true)
# What the calendar says is written into manifests, and nowhere compared.
wall=$(grep -rnE '\bWallTime\(' --include='*.cc' checkpoint node ps scheduler worker |
  grep -vE '_test\.cc:|manifest\.time = ' || true)
if [[ -n $found$wall ]]; then
  echo "these go by the calendar; runtime/base/monotonic_time.h does not:"
  echo "$found"
  echo "$wall"
  exit 1
fi
