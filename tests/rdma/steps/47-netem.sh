# Tests two devices with a lossy link between them: 1 ms of delay and 0.1 % of packets lost each way.
#
# Both addresses are this machine's, so that packets need special routes to go out over the link:
# packets to v1's address leave by v0, and the other way round.
other=10.78.0.1
/bin/ip addr add $other/24 dev v1
/bin/rdma link add rxe1 type rxe netdev v1
sysctl -q -w net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.v0.rp_filter=0 net.ipv4.conf.v1.rp_filter=0 \
  net.ipv4.conf.v0.accept_local=1 net.ipv4.conf.v1.accept_local=1
hardware_address() { cat "/sys/class/net/$1/address"; }
/bin/ip neigh replace $other lladdr "$(hardware_address v1)" dev v0
/bin/ip neigh replace "$RDMA_TEST_HOST" lladdr "$(hardware_address v0)" dev v1
/bin/ip route add $other dev v0 src "$RDMA_TEST_HOST" table 100
/bin/ip route add "$RDMA_TEST_HOST" dev v1 src $other table 101
/bin/ip rule add pref 10 iif lo to $other lookup 100
/bin/ip rule add pref 11 iif lo to "$RDMA_TEST_HOST" lookup 101
# The kernel's rdma_cm looks for the route back over the card that a request came over.
/bin/ip rule add pref 12 oif v0 to $other lookup 100
/bin/ip rule add pref 13 oif v1 to "$RDMA_TEST_HOST" lookup 101
/bin/ip rule add pref 20 lookup local
/bin/ip rule del pref 0
i=0
until grep -q ACTIVE /sys/class/infiniband/rxe1/ports/1/state || [ $i = 50 ]; do sleep 0.1; i=$((i + 1)); done
for card in v0 v1; do /bin/tc qdisc replace dev $card root netem delay 1ms loss 0.1% limit 100000; done

export LEEWAY_HOST=$RDMA_TEST_HOST LEEWAY_CONNECT_TIMEOUT_MS=30000
for van in tcp rdma; do
  LEEWAY_VAN=$van leeway train --model mlp --mode bsp --servers 2 --workers 2 --steps 10 --batch 16 --quiet \
    --save "/tmp/$van.safetensors"
done
cmp /tmp/tcp.safetensors /tmp/rdma.safetensors
leeway-storm --quick --untimed --kills 1 --mode bsp --steps 20 --model softmax --folder /tmp/storm --set LEEWAY_VAN=rdma \
  --set "LEEWAY_HOST=$RDMA_TEST_HOST"

# The link was used, and it did lose packets.
/bin/tc -s qdisc show dev v0
/bin/tc -s qdisc show dev v1
cat /sys/class/infiniband/rxe*/ports/1/hw_counters/sent_pkts
lost=$(/bin/tc -s qdisc show dev v1 | sed -n 's/.*dropped \([0-9]*\).*/\1/p')
[ "$lost" -gt 0 ]
echo "netem_packets_lost $lost" >>"$RESULTS"
echo "netem_counters_exact 1" >>"$RESULTS"
