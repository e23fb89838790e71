# A worker in static storage, and children that a worker's process forks while it trains over rdma:
# they end, destroy what they inherit, and call it. No acknowledged push of the parent is lost, and the
# cluster ends in order. A child that connects a worker of its own over rdma is told that it cannot.
export LEEWAY_HOST=$RDMA_TEST_HOST LEEWAY_VAN=rdma
sent() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts; }
life() { leeway launch --servers 1 --workers 1 -- worker_life "$1"; }
before=$(sent)
life static
for way in fork-exit fork-destroy fork-call; do
  life $way >/tmp/said
  grep -q 'sum 201$' /tmp/said
done
if life fork-connect 2>/tmp/refused; then exit 1; fi
grep -q 'was forked by one that has loaded the libraries of rdma' /tmp/refused
[ "$(sent)" -gt $((before + 1000)) ]
echo "life_forks_exact 1" >>"$RESULTS"
