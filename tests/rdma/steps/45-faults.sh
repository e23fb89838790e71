# Kills servers while workers push and pull over rdma, and a worker that comes back. Every push is
# counted in integers: no acknowledged one may be lost, and none may be in the model twice. (Times are
# those of an emulated machine.)
storm() {
  leeway-storm --model softmax --folder /tmp/storm --untimed --set LEEWAY_VAN=rdma \
    --set "LEEWAY_HOST=$RDMA_TEST_HOST" "$@"
}
sent() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts; }
before=$(sent)
storm --quick --kills 2 --mode ssp:3 --steps 24
storm --worker --mode ssp:3 --steps 60
[ "$(sent)" -gt $((before + 1000)) ]
echo "faults_counters_exact 1" >>"$RESULTS"
