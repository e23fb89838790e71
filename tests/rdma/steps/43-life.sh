# A worker in static storage, and children that a worker's process forks while it trains over rdma:
# they end, destroy what they inherit, call it, and connect workers of their own. No acknowledged push
# of the parent is lost, and the cluster ends in order.
export LEEWAY_HOST=$RDMA_TEST_HOST LEEWAY_VAN=rdma
sent() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts; }
life() {
  leeway launch --servers 1 --workers 1 -- worker_life "$1" >"/tmp/life.$1"
  cat "/tmp/life.$1"
}
before=$(sent)
life static
for way in fork-exit fork-destroy fork-call; do life $way | grep -q 'sum 201$'; done
life fork-connect | grep -q 'sum 221$'
[ "$(sent)" -gt $((before + 1000)) ]
echo "life_forks_exact 1" >>"$RESULTS"
