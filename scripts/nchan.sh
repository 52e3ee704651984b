#!/bin/sh
# Unpacks Debian's nginx with nchan, a peer of the dashboard's event stream in make bench, into .cache/nchan, and prints
# the path of its binary; quiet when it is there. Nothing is installed: the system stays as it is, and no root is needed.
# usage: scripts/nchan.sh
#
# The module is in usr/lib/nginx/modules beside the binary's usr/sbin, libraries that this machine lacks in usr/lib.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
home=$root/.cache/nchan
nginx=$home/usr/sbin/nginx

die() { printf 'nchan: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# The folder is renamed last, so that an interrupted installation is repeated.
if [ ! -x "$nginx" ]; then
	have apt-get && have dpkg || die "this machine has no apt-get and dpkg, and nginx with nchan comes from Debian's packages"
	log=$root/.cache/nchan.log
	tmp=$root/.cache/nchan.tmp.$$
	rm -rf "$root"/.cache/nchan.tmp.* "$home"
	mkdir -p "$tmp/packages"
	trap 'rm -rf "$tmp"' EXIT
	trap 'exit 1' HUP INT TERM
	# The packages that an installation would add, without installing. Besides the two, only libraries are needed;
	# those that would only be upgraded (their old version is in brackets) are the system's own.
	plan=$(LC_ALL=C apt-get -s --no-install-recommends install nginx libnginx-mod-nchan 2>"$log") ||
		die "Debian's lists of packages do not have nginx and libnginx-mod-nchan; run apt-get update as root and see .cache/nchan.log"
	packages=$(printf '%s\n' "$plan" | sed -n 's/^Inst \(lib[^ ]*\) (.*/\1/p' | grep -vx libnginx-mod-nchan || true)
	# apt-get stays root for a folder that its own user cannot write, and warns about it.
	# shellcheck disable=SC2086
	(cd "$tmp/packages" && apt-get -qq -o APT::Sandbox::User=root download nginx libnginx-mod-nchan $packages) >>"$log" 2>&1 </dev/null ||
		die "the packages could not be fetched; the end of .cache/nchan.log says why"
	for package in "$tmp"/packages/*.deb; do
		dpkg -x "$package" "$tmp/root" >>"$log" 2>&1 || die "$package could not be unpacked; see .cache/nchan.log"
	done
	[ -x "$tmp/root/usr/sbin/nginx" ] && [ -e "$tmp/root/usr/lib/nginx/modules/ngx_nchan_module.so" ] ||
		die "Debian's packages no longer have usr/sbin/nginx and ngx_nchan_module.so"
	# Both make folders below /var/lib, nchan regardless of the configuration. In these copies the folders have a path of
	# the same length below nginx's prefix (-p).
	LC_ALL=C sed -i 's,/var/lib/nginx/,./././././././/,g' "$tmp/root/usr/sbin/nginx" "$tmp/root/usr/lib/nginx/modules/ngx_nchan_module.so"
	mv "$tmp/root" "$home"
fi
echo "$nginx"
