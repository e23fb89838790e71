# Measures the van on the device: pushes and pulls of 1 MiB beside ib_write_bw, the round trip of
# 64 bytes beside ib_send_lat, small operations and processor time beside tcp. Run after perftest,
# in the same boot.
export LEEWAY_HOST=$RDMA_TEST_HOST
# As perftest, which never blocks: in this machine, which is emulated, a wake-up takes half a
# millisecond.
export LEEWAY_BUSY_POLL_US=5000
commands='push 1048576 8 4
pull 1048576 8 4
rtt 64 1 4
push 64 64 4'
# Over rdma with tensors from Worker::Allocate, which stay registered, as perftest's buffers do.
for transport in rdma tcp; do
  case $transport in rdma) tensors=rdma_lent ;; *) tensors=$transport ;; esac
  echo "$commands" | leeway_bench_cluster $tensors >/tmp/$transport.out
  cat /tmp/$transport.out
done
# field FILE LINE NAME: a field of the result of one command; the first line says that it is ready.
field() { sed -n "$2p" "/tmp/$1.out" | sed "s/.*\"$3\": *\([0-9.e+-]*\).*/\1/"; }
divide() { echo "$1 $2" | awk '{printf "%.4g", $1 / $2}'; }
mb_s() { divide "$(divide "$(field "$1" "$2" bytes)" "$(field "$1" "$2" seconds)")" 1048576; }
ops_s() { divide "$(field "$1" "$2" operations)" "$(field "$1" "$2" seconds)"; }
cpu_per_byte() { divide "$(field "$1" "$2" cpu_seconds)" "$(field "$1" "$2" bytes)"; }
cpu_per_mb() { echo "$(cpu_per_byte "$1" "$2")" | awk '{printf "%.4g", $1 * 1048576}'; }
p50_us() { field "$1" "$2" p50_us; }
limit() { sed -n "s/^$1 //p" "$OUT"/20-perftest.results; }
# A missing number fails the step.
say() {
  case $2 in '' | *[!0-9.e+-]*) echo "$1 is not a number: '$2'"; exit 1 ;; esac
  echo "$1 $2" >>"$RESULTS"
}
say push_1m_mb_s "$(mb_s rdma 2)"
say pull_1m_mb_s "$(mb_s rdma 3)"
say push_1m_vs_tcp "$(divide "$(mb_s rdma 2)" "$(mb_s tcp 2)")"
say rtt_64b_us "$(p50_us rdma 4)"
say small_push_ops_vs_tcp "$(divide "$(ops_s rdma 5)" "$(ops_s tcp 5)")"
say cpu_per_gb_vs_tcp "$(divide "$(cpu_per_byte rdma 2)" "$(cpu_per_byte tcp 2)")"
[ -f "$OUT/20-perftest.results" ] || exit 0
say push_1m_vs_ib_write_bw "$(divide "$(mb_s rdma 2)" "$(limit ib_write_bw_mb_s)")"
say pull_1m_vs_ib_write_bw "$(divide "$(mb_s rdma 3)" "$(limit ib_write_bw_mb_s)")"
# How much of the processor time per byte soft-RoCE takes by itself: its sender does all of the work, so
# perftest's sending thread is busy for as long as the bytes take.
say ib_write_bw_cpu_per_gb_vs_tcp \
  "$(divide "$(divide 1 "$(limit ib_write_bw_mb_s)")" "$(cpu_per_mb tcp 2)")"
# Two-way time: perftest reports half of it.
say rtt_64b_vs_ib_send_lat "$(divide "$(p50_us rdma 4)" "$(divide "$(limit ib_send_lat_us)" 0.5)")"
