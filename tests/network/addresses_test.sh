#!/usr/bin/env bash
# addresses_test.sh LEEWAY HELLO: trains with a scheduler, a server and a worker, each in a network
# namespace ("host") of its own, without LEEWAY_HOST and LEEWAY_INTERFACE: over IPv6 only; where the
# scheduler is behind a host's second card; with a scheduler's name that appears late; and through a
# firewall that lets only LEEWAY_PORT through. Exit code 77: this machine allows no namespaces.
set -euo pipefail
leeway=$1 hello=$2

hosts=(lwsched lwserv lwwork)
work=$(mktemp -d)
children=()
ports_made=0
cleanup() {
  for child in "${children[@]}"; do kill -KILL "$child" 2>/dev/null || true; done
  for host in "${hosts[@]}" lwswitch; do ip netns del "$host" 2>/dev/null || true; rm -rf "/etc/netns/$host"; done
  rm -rf "$work"
}
fail() { echo "addresses: $*" >&2; tail -n 20 "$work"/*.log >&2 || true; exit 1; }

command -v ip >/dev/null && ip netns add lwswitch 2>/dev/null ||
  { echo "addresses: SKIPPED: no network namespaces can be made here (root and iproute2 are needed)"; exit 77; }
trap cleanup EXIT

# wire CARD HOST ADDRESS...: makes a card of HOST on a bridge with the card's name.
wire() {
  local bridge=$1 card=$2 host=$3; shift 3
  ip -n lwswitch link show "$bridge" >/dev/null 2>&1 || {
    ip -n lwswitch link add "$bridge" type bridge
    ip -n lwswitch link set "$bridge" up
  }
  # New names each time: the links of a host that has ended go a little later.
  local port=$host$((++ports_made))
  ip link add "$port" netns lwswitch type veth peer name "$card" netns "$host"
  ip -n lwswitch link set "$port" master "$bridge" up
  for address in "$@"; do
    if [[ $address == *:* ]]; then
      ip -n "$host" address add "$address" dev "$card" nodad
    else
      ip -n "$host" address add "$address" dev "$card"
    fi
  done
  ip -n "$host" link set "$card" up
}
network() {
  for host in "${hosts[@]}"; do
    ip netns del "$host" 2>/dev/null || true
    ip netns add "$host"
    ip -n "$host" link set lo up
  done
}
on() { local host=$1; shift; ip netns exec "$host" "$@"; }

# train SCHEDULER [SETTING...]: the settings are the server's.
train() {
  local scheduler=$1 output; shift
  export LEEWAY_SCHEDULER=$scheduler LEEWAY_NUM_SERVERS=1 LEEWAY_NUM_WORKERS=1 LEEWAY_CONNECT_TIMEOUT_MS=30000
  on lwsched "$leeway" scheduler 2>"$work/scheduler.log" & children+=($!)
  on lwserv env "$@" "$leeway" server 2>"$work/server.log" & children+=($!)
  output=$(on lwwork "$hello" 2>"$work/worker.log") || fail "$scenario: the worker failed"
  [[ $output == *"weights[0] = "* ]] || fail "$scenario: the worker said '$output'"
  for child in "${children[@]}"; do wait "$child" || fail "$scenario: a node failed"; done
  children=()
  echo "addresses: $scenario: trained; $(grep -o 'others are told.*)' "$work/server.log" || true)"
}
server_said() { grep -q "$1" "$work/server.log" || fail "$scenario: the server did not say '$1'"; }

scenario="IPv6 only"
network
wire lan eth0 lwsched fd00:1::1/64
wire lan eth0 lwserv fd00:1::2/64
wire lan eth0 lwwork fd00:1::3/64
train '[fd00:1::1]:9000'
server_said 'at fd00:1::2 (the route to the scheduler at fd00:1::1, over eth0)'

scenario="two cards, the scheduler on the second"
network
wire storage eth0 lwserv 10.8.0.2/24
wire lan eth0 lwsched 10.9.0.1/24
wire lan eth1 lwserv 10.9.0.2/24
wire lan eth0 lwwork 10.9.0.3/24
train 10.9.0.1:9000
server_said 'at 10.9.0.2 (the route to the scheduler at 10.9.0.1, over eth1)'

scenario="a name that appears after 6 s"
for host in "${hosts[@]}"; do
  mkdir -p "/etc/netns/$host"
  echo "127.0.0.1 localhost" >"/etc/netns/$host/hosts"
  echo "hosts: files" >"/etc/netns/$host/nsswitch.conf"
done
echo "10.9.0.1 train-0.cluster" >>/etc/netns/lwsched/hosts
(sleep 6; for host in lwserv lwwork; do echo "10.9.0.1 train-0.cluster" >>"/etc/netns/$host/hosts"; done) &
train train-0.cluster:9000
server_said 'waiting for a way to the scheduler .* for [2-6]s: name not found'
grep -q 'waiting for the scheduler .* for [2-6]s: name not found' "$work/worker.log" ||
  fail "$scenario: the worker did not say what it waits for"
rm -rf /etc/netns/lwsched /etc/netns/lwserv /etc/netns/lwwork

scenario="a firewall that lets only LEEWAY_PORT through"
for ports in 1-9099 9104-65534; do
  ip -n lwwork rule add priority 10 to 10.9.0.2 ipproto tcp dport "$ports" blackhole
done
train 10.9.0.1:9000 LEEWAY_PORT=9100-9103 LEEWAY_SERVER_THREADS=3
server_said 'tcp://10.9.0.2:9102'
