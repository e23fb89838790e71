#!/usr/bin/env bash
# outside_project_test.sh CMAKE BUILD EXAMPLE COMPILER OTHER_VERSIONS: installs BUILD into an empty prefix,
# moves that elsewhere, builds a copy of EXAMPLE against it by CMake and by pkg-config, and trains on a
# cluster; then the same with OTHER_VERSIONS in the worker's program.
set -euo pipefail
cmake=$1 build=$2 example=$3 compiler=$4 other_versions=$5

work=$(mktemp -d)
children=()
cleanup() {
  for child in "${children[@]}"; do kill -KILL "$child" 2>/dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT
fail() { echo "outside: $*" >&2; exit 1; }

"$cmake" --install "$build" --prefix "$work/first" >"$work/install.log"
# An installed tree may be packed and unpacked elsewhere.
mv "$work/first" "$work/prefix"
! grep -rIl -e "$build" "$work/prefix" || fail "the installed files name the build folder"

# Only headers of the compiler, of Abseil, and the public ones of Leeway.
cp -r "$example" "$work/project"
build_project() {  # FOLDER OPTION…, with Ninja, which is here: a bare system has no make
  CXX=$compiler "$cmake" -G Ninja -S "$work/project" -B "$1" -DCMAKE_PREFIX_PATH="$work/prefix" \
    -DCMAKE_BUILD_TYPE=Release "${@:2}" >"$work/configure.log" 2>&1 ||
    { cat "$work/configure.log"; fail "configuring"; }
  for tool in GTest benchmark spdlog ZeroMQ; do
    ! grep -q "^$tool" "$1/CMakeCache.txt" || fail "using Leeway asks for $tool"
  done
  "$cmake" --build "$1" --parallel 2 >"$work/build.log" 2>&1 || { cat "$work/build.log"; fail "building"; }
}
build_project "$work/shared"
build_project "$work/static" -DLEEWAY_STATIC=ON
needs() { readelf -d "$1" | grep NEEDED; }
needs "$work/shared/outside_worker" | grep -q libleeway || fail "the program does not use libleeway.so"
! needs "$work/static/outside_worker" | grep libleeway || fail "the static program needs libleeway.so"

# What the shared library gives to programs, and takes from them and other libraries.
library=$(find "$work/prefix" -name libleeway.so)
foreign=$(nm -DC --defined-only "$library" |
  grep -vE ' [A-Za-z] ((vtable|typeinfo|typeinfo name) for )?leeway::[A-Z]' || true)
[[ -z $foreign ]] || fail "libleeway.so has symbols that are not of the public headers: $foreign"
foreign=$(nm -DC --undefined-only "$library" | grep -E ' (spdlog|fmt|flatbuffers)::| zmq_' || true)
[[ -z $foreign ]] || fail "libleeway.so takes symbols from others' libraries: $foreign"

library=$(find "$work/prefix" -name libleeway_c.so)
foreign=$(nm -D --defined-only "$library" | grep -vE ' (T leeway_[a-z_]+@@|A )LEEWAY_C_[0-9]+$' || true)
[[ -z $foreign ]] || fail "libleeway_c.so has symbols that are not of leeway/c.h: $foreign"
! needs "$work/shared/outside_c_worker" | grep -E 'libabsl|libstdc' || fail "the program in C needs C++"

export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name leeway-worker.pc)")
for role in worker server; do
  flags=$(pkg-config --cflags --libs "leeway-$role")
  # shellcheck disable=SC2086  # several words
  "$compiler" "$work/project/$role.cc" $flags -o "$work/by_pkg_config_$role" || fail "pkg-config, $role"
done
# shellcheck disable=SC2046  # several words
cc -std=c99 -Wall -Wextra -Wpedantic -Werror "$work/project/worker.c" \
  $(pkg-config --cflags --libs leeway-c) -o "$work/by_pkg_config_c" || fail "pkg-config, C"

leeway=$work/prefix/bin/leeway
"$leeway" lab list >"$work/lab.log" || fail "the staleness lab is not installed"
train() {  # SERVER WORKER
  local port output
  port=$((20000 + RANDOM % 20000))
  export LEEWAY_SCHEDULER=127.0.0.1:$port LEEWAY_NUM_SERVERS=2 LEEWAY_NUM_WORKERS=2
  "$leeway" scheduler 2>"$work/scheduler.log" & children+=($!)
  for rank in 0 1; do "$1" 2>"$work/server$rank.log" & children+=($!); done
  "$2" >"$work/worker0.out" 2>"$work/worker.log" & children+=($!)
  output=$("$2") || { cat "$work"/*.log; fail "a worker failed"; }
  for child in "${children[@]}"; do wait "$child" || { cat "$work"/*.log; fail "a process failed"; }; done
  children=()
  output+=$'\n'$(cat "$work/worker0.out")
  [[ $(grep -c "weights\[999\] = 1; server 0 says 'hello, outside'" <<<"$output") -eq 2 ]] ||
    fail "the workers said: $output"
}
train "$work/shared/outside_server" "$work/shared/outside_worker"
train "$work/static/outside_server" "$work/static/outside_worker"
train "$work/by_pkg_config_server" "$work/by_pkg_config_worker"
train "$work/shared/outside_server" "$work/shared/outside_c_worker"
train "$work/by_pkg_config_server" "$work/by_pkg_config_c"

# Programs written for ps-lite: their headers bring no others, and ask for C++11.
library=$(find "$work/prefix" -name libleeway_pslite.so)
foreign=$(nm -DC --defined-only "$library" |
  grep -vE ' [A-Za-z] ((vtable|typeinfo|typeinfo name) for )?ps::' || true)
[[ -z $foreign ]] || fail "libleeway_pslite.so has symbols that are not of ps/ps.h: $foreign"
pslite=$example/../ps_lite
# shellcheck disable=SC2046  # several words
"$compiler" -std=c++11 "$pslite/linear.cc" $(pkg-config --cflags --libs leeway-pslite) \
  -o "$work/by_pkg_config_pslite" || fail "pkg-config, ps-lite"
CXX=$compiler "$cmake" -G Ninja -S "$pslite" -B "$work/pslite" -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DLEEWAY_STATIC=ON >"$work/configure.log" 2>&1 || { cat "$work/configure.log"; fail "configuring, ps-lite"; }
"$cmake" --build "$work/pslite" >"$work/build.log" 2>&1 || { cat "$work/build.log"; fail "building, ps-lite"; }
train_pslite() {  # PORT PROGRAM
  local role
  for role in scheduler server server worker worker; do
    env -u LEEWAY_SCHEDULER -u LEEWAY_NUM_SERVERS -u LEEWAY_NUM_WORKERS DMLC_ROLE=$role \
      DMLC_PS_ROOT_URI=127.0.0.1 DMLC_PS_ROOT_PORT="$1" DMLC_NUM_SERVER=2 DMLC_NUM_WORKER=2 \
      "$2" >>"$work/pslite.out" 2>>"$work/pslite.log" & children+=($!)
  done
  for child in "${children[@]}"; do wait "$child" || { cat "$work/pslite.log"; fail "a program of ps-lite"; }; done
  children=()
}
port=$((20000 + RANDOM % 20000))
train_pslite $port "$work/by_pkg_config_pslite"
train_pslite $((port + 1)) "$work/pslite/linear"
[[ $(grep -c "largest error" "$work/pslite.out") -eq 2 ]] || fail "ps-lite said: $(cat "$work/pslite.out")"

flags=$(pkg-config --cflags --libs leeway-worker)
# shellcheck disable=SC2086  # several words
{
  # All functions of the program can be called by libraries, those of ZeroMQ by libzmq itself, too.
  "$compiler" -rdynamic "$work/project/worker.cc" "$other_versions" $flags -o "$work/other_versions"
  "$compiler" "$work/project/worker.cc" "$other_versions" $flags -o "$work/other_versions_zmq"
} || fail "a program with other versions"
LEEWAY_VAN=tcp train "$work/shared/outside_server" "$work/other_versions"
LEEWAY_VAN=zmq train "$work/shared/outside_server" "$work/other_versions_zmq"
