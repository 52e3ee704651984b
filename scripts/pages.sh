#!/bin/sh
# Copies README.md and docs/ to where the dashboard's binary embeds them: go:embed reaches no parent directory.
set -eu
cd "$(dirname -- "$0")/.."
pages=services/dashboard-bff/internal/docs/pages
next=$pages.next.$$
trap 'rm -rf "$next"' EXIT
mkdir "$next"
cp README.md "$next/"
find docs -name '*.md' -type f | while read -r page; do
	mkdir -p "$next/$(dirname "$page")"
	cp "$page" "$next/$page"
done
touch "$next/.keep"
# Unchanged pages keep their times, so that they cause no rebuild.
diff -rq "$next" "$pages" >/dev/null 2>&1 || { rm -rf "$pages" && mv "$next" "$pages"; }
