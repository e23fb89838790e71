#!/usr/bin/env bash
# packages_test.sh CPACK BUILD SOURCES LIBDIR [PYTHON]: makes Debian packages of BUILD, whose libraries go to
# /usr/LIBDIR, and checks their files and control fields. PYTHON: the one for Python is among them.
set -euo pipefail
cpack=$1 build=$2 sources=$3 libdir=usr/$4 python=${5:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "packages: $*" >&2; exit 1; }

"$cpack" --config "$build/CPackConfig.cmake" -B "$work" -D CPACK_DEBIAN_COMPRESSION_TYPE=zstd \
  >"$work/log" 2>&1 || { cat "$work/log"; fail "cpack"; }
cd "$work"
rm -r _CPack_Packages
packages=(libleeway libleeway-dev leeway-tools)
[[ -z $python ]] || packages+=(python3-leeway)
field() { dpkg-deb -f "$1"_*.deb "$2"; }
version=$(field libleeway Version)
architecture=$(dpkg --print-architecture)

for package in "${packages[@]}"; do
  file=${package}_${version}_$architecture.deb
  [[ -f $file ]] || fail "there is no $file, but $(echo ./*.deb)"
  dpkg-deb -c "$file" >"$package.list"
  ! grep -vE '^(d|-)rwxr-xr-x root/root|^-rw-r--r-- root/root|^lrwxrwxrwx root/root' "$package.list" ||
    fail "owners or modes in $package"
  dpkg-deb -R "$file" "$package"
  (cd "$package" && md5sum --quiet -c DEBIAN/md5sums) || fail "checksums of $package"
  # Without these there is nothing to purge.
  ! compgen -G "$package/DEBIAN/post*m" || fail "$package has a script for what it leaves"
  for document in copyright changelog.gz changelog.Debian.gz; do
    [[ -s $package/usr/share/doc/$package/$document ]] || fail "$package has no $document"
  done
  zcat "$package/usr/share/doc/$package/changelog.Debian.gz" >changelog
  [[ $(dpkg-parsechangelog -l changelog -S Version) == "$version" ]] ||
    fail "the changelog of $package has another version"
  ! grep -rIl -e "$build" -e "$sources" "$package" || fail "$package names folders of this machine"
  # Debian's policy: a summary of one line, and lines that fit a terminal.
  field "$package" Description | awk 'length > 80 { exit 1 } END { exit NR < 3 }' || fail "description of $package"
done

# fields FIELD: that of each package.
fields() { for package in "${packages[@]}"; do field "$package" "$1"; done | paste -sd ' '; }
[[ $(fields Section) == "libs libdevel science"${python:+" python"} ]] || fail "sections: $(fields Section)"
[[ $(fields Multi-Arch) == "same same foreign"${python:+" no"} ]] || fail "Multi-Arch: $(fields Multi-Arch)"
[[ $(field libleeway-dev Depends) == "libleeway (= $version), libabsl-dev"* ]] ||
  fail "libleeway-dev may be combined with another libleeway"
for package in libleeway leeway-tools; do
  [[ $(field "$package" Depends) == *libabsl*libc6*libstdc++6*libzstd1* ]] || fail "libraries that $package needs"
done
[[ $(cat libleeway/DEBIAN/triggers) == "activate-noawait ldconfig" ]] || fail "no trigger for ldconfig"
# Programs in other packages depend on the interfaces, which the next libleeway may not have any more.
while read -r _ _ interface _; do
  [[ $(field libleeway Provides) == *"$interface (= $version)"* ]] || fail "libleeway does not provide $interface"
done <libleeway/DEBIAN/shlibs
sonames=$(for file in "libleeway/$libdir"/*.so.*.*.*; do
  readelf -d "$file" | sed -nE 's/.*SONAME.*\[(.*)\.so\.(.*)\]/\1 \2/p'
done)
[[ $sonames == "$(cut -d ' ' -f 1-2 libleeway/DEBIAN/shlibs)" ]] || fail "sonames: $sonames"

# Versions grow: a revision, a later Debian, the release after what was built before it.
less() { dpkg --compare-versions "$1" lt "$2" || fail "$2 is no upgrade of $1"; }
[[ $version =~ ^(.*)-([0-9]+)~([a-z]+)([0-9.]*)$ ]] || fail "version $version"
base=${BASH_REMATCH[1]} system=${BASH_REMATCH[3]}${BASH_REMATCH[4]}
less "$version" "$base-$((BASH_REMATCH[2] + 1))~$system"
less "$version" "$base-${BASH_REMATCH[2]}~${BASH_REMATCH[3]}$((${BASH_REMATCH[4]%%.*} + 1))"
less "$version" "${base%%~*}-9"

# Each file is in the one package where it belongs, and nothing else is.
names() { sed -E 's/^(\S+\s+){5}\.\///; s/ -> .*//' "$1.list" | grep -vE '/$|^usr/share/doc/' | sort; }
expect() { diff <(names "$1") <(sort) >&2 || fail "files of $1"; }
soversion=$(sed -n 's/^libleeway //p' libleeway/DEBIAN/shlibs | cut -d ' ' -f 1)
release=${base%%~*}
printf "$libdir/%s\n" libleeway{,_pslite}.so.{"$soversion","$release"} libleeway_c.so.{1,1."$release"} |
  expect libleeway
{
  (cd "$sources/include" && printf 'usr/include/%s\n' leeway/*.h)
  (cd "$sources/compat" && find ps dmlc -name '*.h' | sed 's,^,usr/include/leeway-pslite/,')
  printf "$libdir/%s\n" libleeway{.a,_pslite.a,.so,_c.so,_pslite.so} pkgconfig/leeway-{c,pslite,server,worker}.pc \
    cmake/leeway/leeway{Config,ConfigVersion,Targets,Targets-release}.cmake
} | expect libleeway-dev
printf 'usr/%s\n' bin/leeway{,-lab} share/man/man1/leeway{,-lab}.1.gz | expect leeway-tools
if [[ -n $python ]]; then
  (cd "$sources/python" && find leeway -type f -not -path '*__pycache__*'; echo leeway/_c.abi3.so) |
    sed 's,^,usr/lib/python3/dist-packages/,' | expect python3-leeway
  [[ $(field python3-leeway Depends) == "leeway-tools (= $version), libleeway (= $version), python3 "* ]] ||
    fail "python3-leeway may be combined with another libleeway"
  ! readelf -d python3-leeway/usr/lib/python3/dist-packages/leeway/*.so | grep -i path ||
    fail "python3-leeway looks for libraries elsewhere"
fi

for file in libleeway/"$libdir"/*.so.*.*.* leeway-tools/usr/bin/* python3-leeway/usr/lib/python3/*/*/*.so; do
  [[ -e $file ]] || continue
  [[ $(file -b "$file") == *", stripped" ]] || fail "$file has symbols for debuggers"
done
[[ $(leeway-tools/usr/bin/leeway version) == "leeway $release "* ]] || fail "leeway version"
leeway-tools/usr/bin/leeway lab list >"$work/log" || fail "leeway lab"
