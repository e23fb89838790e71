#!/usr/bin/env bash
# use.sh FOLDER: in a clean root of Debian, with packages of Leeway in FOLDER/1 and later ones in FOLDER/2:
# installs the first, builds programs with them and runs these on clusters, upgrades to the second while one
# runs, removes everything, and checks that nothing is left.
set -euo pipefail
folder=$1 work=$1/work
packages=(libleeway libleeway-dev leeway-tools python3-leeway)
export DEBIAN_FRONTEND=noninteractive
fail() { echo "packages: $*" >&2; exit 1; }
logged() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "$*"; }; }
apt() { logged apt-get -y --no-install-recommends "$@"; }
# All files but apt's own of what it has seen and done, and what this script makes.
files() {
  find / -xdev \( -path "$folder" -o -path /var/cache -o -path /var/log -o -path /var/lib/apt \) -prune -o -print |
    grep -vE '^/var/lib/dpkg/(status|available|diversions|statoverride|triggers)' | sort
}
version() { dpkg-query -W -f '${Version}' "$1"; }

mkdir "$work"
cp -r "$folder/project" "$work"
cd "$work"
apt update
apt install g++ cmake make pkg-config
files >before

apt install "$folder"/1/*.deb
first=$(version libleeway)
dpkg --verify "${packages[@]}" || fail "files differ from the packages'"
[[ $(leeway version) == leeway\ * && $(leeway lab list) == *fedbuff* ]] ||
  fail "the leeway command does not run"

logged cmake -S project -B project/build -DCMAKE_BUILD_TYPE=Release
logged cmake --build project/build
logged cmake -S project -B static -DCMAKE_BUILD_TYPE=Release -DLEEWAY_STATIC=ON
logged cmake --build static
# The examples of the package: a server of one's own, and workers in C++ and C.
example=/usr/share/doc/libleeway-dev/examples/outside
logged cmake -S "$example" -B outside
logged cmake --build outside
# shellcheck disable=SC2046  # several words
logged cc -Wall -Werror "$example/worker.c" $(pkg-config --cflags --libs leeway-c) -o c_worker

programs() {
  local program
  for program in project/build/ten_lines static/ten_lines; do
    [[ $(leeway launch -s 2 -w 2 -- "$program" 2>"$work/log" | grep -c trained) == 2 ]] ||
      { cat "$work/log" >&2; fail "$program on a cluster"; }
  done
  logged python3 project/ten_lines.py
  export LEEWAY_SCHEDULER=127.0.0.1:$((20000 + RANDOM % 10000)) LEEWAY_NUM_SERVERS=1 LEEWAY_NUM_WORKERS=2
  local children=() child
  leeway scheduler 2>scheduler.log & children+=($!)
  outside/outside_server 2>server.log & children+=($!)
  outside/outside_worker >worker.out 2>worker.log & children+=($!)
  ./c_worker >c_worker.out 2>c_worker.log || { cat ./*.log >&2; fail "the worker in C"; }
  for child in "${children[@]}"; do wait "$child" || { cat ./*.log >&2; fail "a process of the cluster"; }; done
  grep -q "weights\[999\] = 1" worker.out && grep -q "weights\[999\] = 1" c_worker.out || fail "the examples' results"
  unset LEEWAY_SCHEDULER LEEWAY_NUM_SERVERS LEEWAY_NUM_WORKERS
}
programs

# What runs goes on during an upgrade, and what was built before runs with the new libraries.
mkfifo output
leeway launch -s 1 -w 1 -- project/build/ten_lines "$work/upgraded" >output 2>launch.log &
training=$!
exec 3<output
read -r _ <&3  # it trains
cat <&3 >trained.log & reader=$!
apt install "$folder"/2/*.deb
second=$(version libleeway)
dpkg --compare-versions "$first" lt "$second" || fail "$second is no upgrade of $first"
for package in "${packages[@]}"; do
  [[ $(version "$package") == "$second" ]] || fail "$package was not upgraded"
done
touch upgraded
wait "$training" || { cat launch.log >&2; fail "the upgrade ended a training"; }
wait "$reader"
exec 3<&-
programs

apt remove "${packages[@]}"
! dpkg-query -W -f '${Package} ${Status}\n' | grep leeway || fail "packages are still known"
apt autoremove --purge
files >after
diff before after || fail "files are left, or gone"
echo "packages: $first and $second were installed, used and removed"
