#!/usr/bin/env bash
# check.sh RELEASE…: for each of these releases of Debian makes the packages of two revisions, and in a clean
# root of the release installs, uses, upgrades and removes them (use.sh). As root. Packages for another release
# than this machine's are built in a root of their own, which is kept in out/roots.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
mkdir -p out/roots build
roots=$PWD/out/roots
fail() { echo "packages: $*" >&2; exit 1; }
# The archive that this machine has its own packages from.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Label: Debian' | head -n 1)
[[ -n $mirror ]] || fail "apt's sources name no archive of Debian"

new_root() {  # FOLDER RELEASE
  rm -rf --one-file-system "$1"
  debootstrap --variant=minbase "$2" "$1" "$mirror" >"$1.log" 2>&1 || { tail "$1.log"; fail "debootstrap"; }
  # apt reaches the archive from inside as it does from here.
  cp /etc/resolv.conf /etc/hosts "$1/etc/"
  apt-config dump | grep -E '^Acquire::(http|https|Retries|Check)' >"$1/etc/apt/apt.conf.d/90host" || true
}

# in_root FOLDER COMMAND: its processes and mounts end with the command.
in_root() {
  # shellcheck disable=SC2016  # for the inner shell
  unshare --mount --pid --fork --kill-child bash -euc '
    root=$1
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/dev/shm"
    if [[ -d $root/src ]]; then  # the sources, with a folder for builds that is the root own
      mount --bind . "$root/src"
      mount --bind "$root/build" "$root/src/build"
    fi
    exec chroot "$root" env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin bash -c "$2"' _ "$@"
}

# build FOLDER RELEASE: packages of revisions 1 and 2 in FOLDER/1 and FOLDER/2.
build() {
  local root=$roots/$2-build revision
  # shellcheck disable=SC1091
  if [[ $2 == "$(. /etc/os-release && echo "$VERSION_CODENAME")" ]]; then
    for revision in 1 2; do ./dev packages --revision $revision "$1/$revision" >&2; done
    return
  fi
  if [[ ! -d $root/src ]]; then
    new_root "$root" "$2"
    in_root "$root" 'apt-get -qq update && apt-get -qq -y --no-install-recommends install git >/dev/null'
    mkdir "$root/build" "$root/src"
  fi
  for revision in 1 2; do
    in_root "$root" "git config --global safe.directory /src
      cd /src && ./dev packages --revision $revision /packages/$revision" >&2
  done
  mkdir -p "$1"
  mv "$root/packages/"* "$1"
}

for release in "$@"; do
  root=$roots/$release
  rm -rf "$roots/$release-packages"
  build "$roots/$release-packages" "$release"
  new_root "$root" "$release"
  mkdir "$root/check"
  mv "$roots/$release-packages/"* "$root/check"
  cp -r tests/packages/project tests/packages/use.sh "$root/check"
  in_root "$root" 'bash /check/use.sh /check' || fail "Debian's $release"
  rm -rf --one-file-system "$root" "$roots/$release-packages"
done
