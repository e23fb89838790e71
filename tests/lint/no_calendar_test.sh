#!/usr/bin/env bash
# Checks that no decision depends on the calendar time, which may be set back or forth: only these files
# may read it, to show it to people.
set -euo pipefail
cd "$1"
allowed='^(runtime/loop/real_host\.cc|runtime/log/log\.cc):'
found=$(grep -rnE 'absl::Now\(|system_clock|gettimeofday|CLOCK_REALTIME|[^_a-z]time\((NULL|nullptr|0)\)' \
  --include='*.cc' --include='*.h' \
  checkpoint compress examples include node proto ps runtime scheduler tools van worker |
  grep -vE '_test\.cc:|/test_|/testing/' | grep -vE "$allowed" || true)
# Calendar time is written into manifests, and never compared.
wall=$(grep -rnE '\bWallTime\(' --include='*.cc' checkpoint node ps scheduler worker |
  grep -vE '_test\.cc:|manifest\.time = ' || true)
if [[ -n $found$wall ]]; then
  echo "these use calendar time; use runtime/base/monotonic_time.h instead:"
  echo "$found"
  echo "$wall"
  exit 1
fi
