#!/bin/sh
# Installs the binaries, completions and man pages of a Sindri archive, after its checksum was verified:
#
#   ./install.sh [--prefix DIRECTORY] [ARCHIVE]
#
# The archive, and the file SHA256SUMS beside it, are those of a release (`cargo xtask dist` makes them in target/dist).
set -eu

fail() {
    echo "install.sh: $1" >&2
    exit 1
}

prefix=/usr/local
archive=
while [ $# -gt 0 ]; do
    case $1 in
    --prefix)
        [ $# -ge 2 ] || fail "--prefix needs a directory"
        prefix=$2
        shift 2
        ;;
    -h | --help)
        sed -n '2,6s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    -*) fail "unknown option $1: see --help" ;;
    *)
        [ -z "$archive" ] || fail "one archive at a time: $archive and $1"
        archive=$1
        shift
        ;;
    esac
done

case $(uname -s) in
Linux) ;;
*) fail "there are archives for Linux only, this is $(uname -s)" ;;
esac
if [ -z "$archive" ]; then
    for found in "$(dirname "$0")"/sindri-*-linux-"$(uname -m)".tar.gz; do
        [ -f "$found" ] || fail "there is no archive for $(uname -m) beside this script: name one"
        archive=$found
    done
fi
[ -f "$archive" ] || fail "$archive does not exist"

directory=$(cd "$(dirname "$archive")" && pwd)
name=$(basename "$archive")
sums=$directory/SHA256SUMS
[ -f "$sums" ] || fail "$sums is missing: the archive cannot be verified"
line=$(grep "  $name\$" "$sums") || fail "$sums does not list $name"
(cd "$directory" && echo "$line" | sha256sum --check --status -) || fail "$name is damaged: its checksum is not that of SHA256SUMS"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -xzf "$directory/$name" -C "$work" --strip-components=1 --no-same-owner

mkdir -p "$prefix/bin" "$prefix/share/man/man1" "$prefix/share/bash-completion/completions" \
    "$prefix/share/zsh/site-functions" "$prefix/share/fish/vendor_completions.d" || fail "$prefix cannot be written to: use --prefix, or another user"
# A running program keeps its file: the new one takes the name.
for program in "$work"/bin/*; do
    target=$prefix/bin/$(basename "$program")
    cp "$program" "$target.new"
    mv "$target.new" "$target"
done
cp "$work"/man/man1/*.1 "$prefix/share/man/man1/"
cp "$work/completions/sindri.bash" "$prefix/share/bash-completion/completions/sindri"
cp "$work/completions/_sindri" "$prefix/share/zsh/site-functions/_sindri"
cp "$work/completions/sindri.fish" "$prefix/share/fish/vendor_completions.d/sindri.fish"
echo "installed $(basename "$name" .tar.gz) below $prefix"
