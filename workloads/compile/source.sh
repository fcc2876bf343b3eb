#!/bin/sh
# Brings the source of Apache httpd: of a folder that was named, or by apt-get in folders of its own, as any user.
# Usage: source.sh apt|FOLDER KEPT
set -eu
if [ "$1" != apt ]; then
    test -f "$1/httpd.h" || test -f "$1/include/httpd.h" || { echo "$1: no source of Apache httpd" >&2; exit 1; }
    cp -Rp "$1" source
    echo "httpd source: $1" > origin
    exit
fi
kept=$2
if ! test -f "$kept/origin"; then
    own=$(pwd)/apt
    mkdir -p "$own/lists/partial" "$own/cache/archives/partial" "$kept.new"
    . /etc/os-release
    mirror=http://deb.debian.org/debian
    test "$ID" = debian || { echo "apt-get source is for Debian; name a folder: --workload httpd:source=DIR" >&2; exit 1; }
    echo "deb-src $mirror $VERSION_CODENAME main" > "$own/sources.list"
    apt() {
        apt-get -q -o "Dir::State=$own" -o "Dir::State::lists=$own/lists" -o "Dir::State::status=/var/lib/dpkg/status" \
            -o "Dir::Cache=$own/cache" -o "Dir::Etc::sourcelist=$own/sources.list" -o Dir::Etc::sourceparts=/dev/null \
            -o APT::Sandbox::User="$(id -un)" "$@"
    }
    apt update > /dev/null
    (cd "$kept.new" && apt source --download-only apache2 > /dev/null)
    sha256sum "$kept.new"/*.dsc | sed 's|  .*/|  |' > "$kept.new/origin"
    rm -rf "$kept" "$own"
    mv "$kept.new" "$kept"
fi
# The archive of the authors; what the distribution changes is left out.
mkdir source
for archive in "$kept"/apache2_*.orig.tar.*; do
    case $archive in
    *.asc) ;;
    *) tar -xf "$archive" -C source --strip-components=1 ;;
    esac
done
cp "$kept/origin" origin
