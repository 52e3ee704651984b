#!/bin/sh
# Stops the service before its programs go. Its data stays in /var/lib/platform.
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	systemctl disable --now mlp-platform.service
fi
