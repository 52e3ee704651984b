#!/bin/sh
# Installs Keycloak, the real identity provider of the end-to-end tests, into .cache/; quiet when it is there.
# usage: scripts/keycloak.sh                       install, print its home
#        scripts/keycloak.sh start PORT REALM.json  serve that realm at http://localhost:PORT until a signal comes
#
# Java comes from Debian, Keycloak from Maven Central, pinned by digest. Its state is in memory: each start imports
# the realm anew. One at a time, since a start reads what lies in the home's import directory.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
version=26.4.0
sha256=1b6a11a2726ac8a8dc9c91d5fafe989a75ce4f1622d7f7b45c21d5bc16629c0a
home=$root/.cache/keycloak-$version

say() { printf 'keycloak: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

case "${1:-}" in
"") ;;
start) [ $# -eq 3 ] && [ -f "$3" ] || die "usage: scripts/keycloak.sh start PORT REALM.json" ;;
*) die "unknown word '$1'; usage: scripts/keycloak.sh [start PORT REALM.json]" ;;
esac

packages=
have java || packages="$packages openjdk-17-jre-headless"
[ -e "$home/built" ] || have mvn || packages="$packages maven"
[ -e "$home/built" ] || have unzip || packages="$packages unzip"
if [ -n "$packages" ]; then
	have apt-get || die "this machine has no apt-get; install by hand what Debian calls$packages"
	[ "$(id -u)" = 0 ] || die "run once as root: apt-get update && apt-get install -y --no-install-recommends$packages"
	say "installing$packages"
	mkdir -p "$root/.cache"
	{ DEBIAN_FRONTEND=noninteractive apt-get -qq update &&
		DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=600 --no-install-recommends install $packages; } \
		>"$root/.cache/keycloak-apt.log" 2>&1 </dev/null || die "apt-get failed; see .cache/keycloak-apt.log"
fi

# The directory is renamed last, so that an interrupted installation is repeated.
if [ ! -e "$home/built" ]; then
	log=$root/.cache/keycloak.log
	tmp=$root/.cache/keycloak.tmp.$$
	zip=$root/.cache/keycloak-$version.zip
	rm -rf "$root"/.cache/keycloak.tmp.* "$home"
	mkdir -p "$tmp"
	trap 'rm -rf "$tmp"' EXIT
	if ! echo "$sha256  $zip" | sha256sum -c --status 2>/dev/null; then
		say "fetching Keycloak $version from Maven Central (once, 160 MB)"
		mvn -B -ntp org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy -DoutputDirectory="$tmp" \
			-Dartifact="org.keycloak:keycloak-quarkus-dist:$version:zip" -Dmaven.repo.local="$tmp/m2" >"$log" 2>&1 ||
			die "could not be fetched; the end of $log says why"
		echo "$sha256  $tmp/keycloak-quarkus-dist-$version.zip" | sha256sum -c --status ||
			die "the fetched archive has an unexpected digest; refusing it"
		mv "$tmp/keycloak-quarkus-dist-$version.zip" "$zip"
	fi
	say "unpacking and building (once, about two minutes)"
	unzip -q "$zip" -d "$tmp"
	# start --optimized then skips this: a tenth of the memory and most of the time of a first start.
	nice "$tmp/keycloak-$version/bin/kc.sh" build --db=dev-mem --health-enabled=true >>"$log" 2>&1 ||
		die "kc.sh build failed; the end of $log says why"
	touch "$tmp/keycloak-$version/built"
	mv "$tmp/keycloak-$version" "$home"
fi

[ "${1:-}" = start ] || { echo "$home"; exit 0; }
mkdir -p "$home/data/import"
rm -f "$home"/data/import/*
cp "$3" "$home/data/import/realm.json"
export JAVA_OPTS_KC_HEAP="-Xms64m -Xmx448m -XX:MaxMetaspaceSize=256m"
exec "$home/bin/kc.sh" start --optimized --import-realm --cache=local --http-enabled=true --http-host=127.0.0.1 --http-port="$2" \
	--hostname="http://localhost:$2" --http-management-port=0 --log-level=warn
