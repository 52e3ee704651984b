#!/bin/sh
# Checks the files of a release against SHA256SUMS, and that file's signature against a public key.
# usage: verify.sh DIR [PUBLIC-KEY.pem]
#
# Without a key only the digests are checked: they show damage, not who made the files.
# Exit codes: 0 everything matches; 1 a file is missing, changed or not listed; 2 wrong arguments, or something
# that the check needs cannot be used; 3 the signature is missing or does not match.
set -eu
LC_ALL=C
export LC_ALL

die() { printf 'verify: %s\n' "$2" >&2; exit "$1"; }
have() { command -v "$1" >/dev/null 2>&1; }

[ $# -ge 1 ] && [ $# -le 2 ] || die 2 "usage: verify.sh DIR [PUBLIC-KEY.pem]"
dir=$1 key=${2:-}
[ $# = 1 ] || [ -n "$key" ] || die 2 "the name of the public key is empty; leave it out to check the digests only"
[ -d "$dir" ] || die 2 "$dir is not a directory; name the folder with the files of the release"
sums=$dir/SHA256SUMS signature=$dir/SHA256SUMS.sig
[ -r "$sums" ] || die 2 "$sums is missing or cannot be read; download it from where the other files come from"
if [ -n "$key" ]; then
	have openssl || die 2 "openssl is not installed, and the signature cannot be checked without it"
	[ -r "$key" ] || die 2 "the public key $key cannot be read"
	openssl pkey -pubin -in "$key" -noout 2>/dev/null || die 2 "$key is not a public key in PEM form (-----BEGIN PUBLIC KEY-----)"
fi

if have sha256sum; then
	digest() { sha256sum <"$1" | cut -d' ' -f1; }
elif have shasum; then # macOS
	digest() { shasum -a 256 <"$1" | cut -d' ' -f1; }
else
	die 2 "neither sha256sum nor shasum is installed; install one"
fi

code=0 checked=0 line=0
wrong() { printf 'verify: %s\n' "$1" >&2; code=1; }

while read -r want name || [ -n "$want" ]; do
	line=$((line + 1))
	# A name with a slash could point outside the folder.
	case "$want/$name" in
	*[!0-9a-f]*/* | */ | */*/*) die 2 "line $line of $sums is not a digest and the name of a file in this folder; download it again" ;;
	esac
	[ ${#want} = 64 ] || die 2 "line $line of $sums does not start with a SHA-256 digest; download it again"
	if [ ! -f "$dir/$name" ]; then
		wrong "$name is missing; download it, or check single files with sha256sum -c --ignore-missing SHA256SUMS"
	elif ! got=$(digest "$dir/$name") || [ ${#got} != 64 ]; then
		wrong "$name cannot be read"
	elif [ "$got" != "$want" ]; then
		wrong "$name was changed or damaged: its SHA-256 is $got, SHA256SUMS has $want; delete it and download it again"
	else
		checked=$((checked + 1))
	fi
done <"$sums"
[ "$line" -gt 0 ] || die 2 "$sums is empty; download it again"

for file in "$dir"/*; do
	name=${file##*/}
	case "$name" in SHA256SUMS | SHA256SUMS.sig) continue ;; esac
	[ ! -f "$file" ] || awk -v name="$name" 'substr($0, 67) == name { found = 1 } END { exit !found }' "$sums" ||
		wrong "$name is not listed in SHA256SUMS, so it is not known to be part of the release; move it elsewhere"
done
[ "$code" != 0 ] || printf 'digests: %s files match SHA256SUMS\n' "$checked"

if [ -z "$key" ]; then
	echo "signature: not checked; name the public key as the second argument"
	exit "$code"
fi
[ -r "$signature" ] || die 3 "$signature is missing: the release is not signed, or the signature was not downloaded"
decoded=$(mktemp) || die 2 "no temporary file could be made; set TMPDIR to a folder that you may write to"
trap 'rm -f "$decoded"' EXIT
openssl base64 -d -A -in "$signature" -out "$decoded" 2>/dev/null && [ -s "$decoded" ] || die 3 "$signature is not a signature in base64; download it again"
openssl dgst -sha256 -verify "$key" -signature "$decoded" "$sums" >/dev/null 2>&1 ||
	die 3 "the signature of SHA256SUMS was not made with the key of $key: do not use these files unless another key is expected"
echo "signature: SHA256SUMS is signed with the key of $key"
exit "$code"
