# Fashion-MNIST in BSP: over rdma it ends with the same parameters as over tcp, bit for bit.
export LEEWAY_HOST=$RDMA_TEST_HOST
sent() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts; }
before=$(sent)
for van in tcp rdma; do
  LEEWAY_VAN=$van leeway train --model mlp --mode bsp --servers 2 --workers 2 --steps 20 --batch 16 --quiet \
    --json "/tmp/$van.json" --save "/tmp/$van.safetensors"
  cp "/tmp/$van.json" "$OUT/train_$van.json"
done
[ "$(sent)" -gt $((before + 1000)) ]
cmp /tmp/tcp.safetensors /tmp/rdma.safetensors
echo "train_rdma_equals_tcp 1" >>"$RESULTS"
