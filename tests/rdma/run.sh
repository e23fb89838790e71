#!/usr/bin/env bash
# Runs the rdma van on real verbs without hardware: boots Debian's kernel with soft-RoCE (rdma_rxe)
# under qemu and runs the steps in tests/rdma/steps inside.
#
#   tests/rdma/run.sh BUILD [STEP...]     BUILD: a folder with van/van_test and tools/leeway
#
# Logs of steps, the console and results.json go to out/rdma. Fails if a step fails, if the machine
# does not come up, or after TIMEOUT_S seconds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

build=$1; shift
steps=("$@")
work=build/rdma
out=$PWD/out/rdma
timeout_s=${TIMEOUT_S:-900}
# The kernel modules that are needed; modprobe finds those that they depend on. rdma_rxe does not
# declare that it needs crc32_generic.
modules=(virtio_pci 9p 9pnet_virtio crc32_generic veth rdma_rxe rdma_ucm sch_netem)
programs=(/sbin/ip /sbin/tc /usr/bin/rdma /usr/bin/ibv_devinfo
  /usr/bin/ib_write_bw /usr/bin/ib_read_bw /usr/bin/ib_send_lat
  "$build/van/van_test" "$build/van/van_system_verbs_test" "$build/tools/leeway" "$build/benchmarks/leeway_bench_cluster"
  "$build/tests/storm/leeway-storm" "$build/tests/commands/worker_life")

die() { echo "rdma: $*" >&2; exit 1; }

# A missing step is an error: otherwise it would count as passed.
check_steps() {
  local step known
  known=$(cd tests/rdma/steps && printf '%s\n' *.sh | sed 's/^[0-9]*-//; s/\.sh$//')
  for step in "${steps[@]}"; do
    grep -qxF -- "$step" <<<"$known" || die "there is no step '$step'; there are" $known
  done
}

kernel_package() {
  apt-cache depends linux-image-amd64 2>/dev/null | grep -o 'linux-image-[0-9][^ ]*' | head -1 || true
}

# Unpacked, not installed: this machine does not boot from it.
kernel() {
  [[ -d $work/kernel/boot ]] && return
  local package
  package=$(kernel_package)
  if [[ -z $package ]]; then
    apt-get update -qq || true
    package=$(kernel_package)
  fi
  [[ -n $package ]] || die "no kernel package is known; apt-get update"
  mkdir -p "$work/download" "$work/kernel.new"
  (cd "$work/download" && apt-get download "$package" 2>/dev/null) || die "cannot download $package"
  dpkg -x "$work/download/$package"_*.deb "$work/kernel.new"
  depmod -b "$work/kernel.new" "$(ls "$work/kernel.new/lib/modules")"
  rm -rf "$work/download" "$work/kernel"
  mv "$work/kernel.new" "$work/kernel"
}

# copy FILE...: copies into the image, under the same path.
copy() {
  local file
  for file in "$@"; do
    mkdir -p "$root$(dirname "$file")"
    cp -Lu "$file" "$root$file"
  done
}

copy_program() {
  local program
  program=$(readlink -f "$1")
  cp -Lu "$program" "$root/bin/"
  local libraries
  mapfile -t libraries < <(ldd "$program" | grep -o '/[^ ]*')
  copy "${libraries[@]}"
}

image() {
  local release
  release=$(ls "$work/kernel/lib/modules")
  root=$work/root
  mkdir -p "$root"/{bin,dev,proc,sys,tmp,run,out,etc,modules,steps}
  cp -u /bin/busybox "$root/bin/"
  local program
  for program in "${programs[@]}"; do copy_program "$program"; done
  copy "$PWD/$build/tools/leeway"  # leeway-storm starts it from there
  # Libraries that are loaded at run time.
  copy /usr/lib/x86_64-linux-gnu/lib{ibverbs,rdmacm}.so.1 \
    "$(echo /usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav*.so)" /etc/libibverbs.d/rxe.driver
  mapfile -t libraries < <(ldd /usr/lib/x86_64-linux-gnu/librdmacm.so.1 | grep -o '/[^ ]*')
  copy "${libraries[@]}" /usr/share/datasets/fashion-mnist/*
  : >"$root/modules/order"
  local module file
  for module in "${modules[@]}"; do
    while read -r _ file _; do
      cp -u "$file" "$root/modules/"
      grep -qx "$(basename "$file")" "$root/modules/order" || basename "$file" >>"$root/modules/order"
    done < <(modprobe -d "$work/kernel" -S "$release" --show-depends "$module" | grep ^insmod)
  done
  rm -rf "$root/steps"  # removed steps would otherwise still run
  mkdir "$root/steps"
  cp tests/rdma/init "$root/init"
  cp tests/rdma/steps/*.sh "$root/steps/"
  printf 'root:x:0:0:root:/:/bin/sh\n' >"$root/etc/passwd"
  printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
  printf '%s\n' "${steps[@]}" >"$root/steps/chosen"
  (cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null) >"$work/image.cpio"
}

boot() {
  rm -rf "$out"
  mkdir -p "$out"
  # Without KVM the machine is emulated, which takes several times as long. The emulated processors share
  # one time stamp counter, which the kernel does not know: without this option it would use the HPET, and
  # each reading of the clock would be a call to the system and to the emulator.
  timeout "$timeout_s" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 3G \
    -display none -monitor none -no-reboot -serial "file:$out/console.log" \
    -virtfs "local,path=$out,mount_tag=out,security_model=none" \
    -kernel "$work"/kernel/boot/vmlinuz-* -initrd "$work/image.cpio" \
    -append 'console=ttyS0 panic=-1 quiet tsc=reliable rdinit=/init' </dev/null 2>"$out/qemu.log" ||
    die "qemu ended with $? (124: after $timeout_s s); $out/console.log has the console"
}

# A step may write lines "NAME NUMBER" to NAME.results.
results() {
  find "$out" -name '*.results' -print0 | sort -z | xargs -0r cat | awk '
    BEGIN { print "{" }
    NF == 2 { printf "%s  \"%s\": %s", (n++ ? ",\n" : ""), $1, $2 }
    END { print "\n}" }' >"$out/results.json"
}

report() {
  [[ -f $out/done ]] || die "the machine stopped before its steps were done; $out/console.log has the console"
  local failed=0 step code seconds
  while read -r step code seconds; do
    if [[ $code == 0 ]]; then
      echo "rdma: $step passed, $seconds s"
    else
      echo "rdma: $step FAILED with $code after $seconds s; the end of $out/$step.log:" >&2
      tail -n 15 "$out/$step.log" >&2
      failed=1
    fi
  done <"$out/done"
  results
  echo "rdma: results in $out/results.json"
  return $failed
}

check_steps
kernel
image
boot
report
