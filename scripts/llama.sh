#!/bin/sh
# Makes .cache/venv-llama, a small language model with its server, for make e2e-llm; quiet when it is up to date.
# The server is C++ and available only as source: building it takes some twenty minutes on two cores.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
need=
command -v g++ >/dev/null 2>&1 || need="$need g++"
if [ -n "$need" ] && ! [ -x "$root/.cache/venv-llama/bin/python" ]; then
	echo "llama: missing:$need; as root: apt-get install -y --no-install-recommends$need" >&2
	exit 1
fi
exec sh "$root/scripts/venv.sh" llama
