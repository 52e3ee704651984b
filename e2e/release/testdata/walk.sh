#!/bin/sh
# What a user does with the archive of a release. Prints "NAME MILLISECONDS" since the start for each step that worked;
# what the programs print goes to stderr. usage: walk.sh ARCHIVE, in an empty folder
set -eu
begin=$(date +%s%N)
done_with() { echo "$1 $((($(date +%s%N) - begin) / 1000000))"; }
# wait_for SECONDS COMMAND...: repeats the command until it works.
wait_for() {
	tries=$(($1 * 5))
	shift
	until "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || { echo "walk: gave up waiting for: $*" >&2; "$@" >&2 || true; cat platform.out >&2; exit 1; }
		kill -0 "$platform" 2>/dev/null || { echo "walk: the platform ended" >&2; cat platform.out >&2; exit 1; }
		sleep 0.2
	done
}

echo "user: $(id -u)" >&2
echo "interfaces: $(sed -n 's/^ *\([^ :]*\):.*/\1/p' /proc/net/dev | tr '\n' ' ')" >&2
tar --zstd -xf "$1"
done_with unpacked
cd platform_*
./platform >platform.out 2>&1 &
platform=$!
trap 'kill "$platform" 2>/dev/null || true' EXIT
wait_for 120 ./platform health
done_with ready
eval "$(./platform env)"
busybox wget -q -O page --header 'Accept: text/html' http://127.0.0.1:8099/
grep -qi '<title>' page
done_with dashboard
./mlp status >&2
wait_for 300 sh -c './mlp predict RuntimeRegressor -f "@$(ls .data/samples/RuntimeRegressor-job-*.json | head -n 1)"'
done_with predicted
# The last line of a start, after the samples are trained.
wait_for 300 grep -q 'Stop with Ctrl-C' platform.out
done_with seeded
./mlp --yes retrain RuntimeClass --follow >&2
done_with retrained
./platform stop >&2
wait "$platform"
done_with stopped
