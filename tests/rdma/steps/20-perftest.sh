# Measures the device's own limits for comparison: perftest's writes, reads and sends.
measure() {
  name=$1
  shift
  "$@" -F -x 1 >/tmp/server.log 2>&1 &
  sleep 1
  "$@" -F -x 1 "$RDMA_TEST_HOST" >/tmp/client.log 2>&1
  cat /tmp/client.log
  wait
}
measure write ib_write_bw -s 1048576 -n 60
awk '$1 == 1048576 {print "ib_write_bw_mb_s", $4}' /tmp/client.log >>"$RESULTS"
# Measures whether a second queue pair carries more.
measure striped ib_write_bw -s 1048576 -n 60 -q 2
awk '$1 == 1048576 {print "ib_write_bw_2_queue_pairs_mb_s", $4}' /tmp/client.log >>"$RESULTS"
measure read ib_read_bw -s 1048576 -n 60
awk '$1 == 1048576 {print "ib_read_bw_mb_s", $4}' /tmp/client.log >>"$RESULTS"
measure latency ib_send_lat -s 64 -n 500
awk '$1 == 64 {print "ib_send_lat_us", $5}' /tmp/client.log >>"$RESULTS"
[ "$(wc -l <"$RESULTS")" = 4 ]
