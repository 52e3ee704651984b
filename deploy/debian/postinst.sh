#!/bin/sh
# Makes the service's user. The service is not started: its ports may be in use, and the first start trains models.
set -e
if [ "$1" = configure ]; then
	if command -v systemd-sysusers >/dev/null; then
		systemd-sysusers mlp-platform.conf
	elif ! getent passwd mlp-platform >/dev/null; then
		useradd --system --home-dir /var/lib/platform --shell /usr/sbin/nologin mlp-platform
	fi
	chown root:mlp-platform /etc/mlp-platform/platform.env
	if [ -d /run/systemd/system ]; then
		systemctl daemon-reload
		[ -z "$2" ] || systemctl try-restart mlp-platform.service
	fi
fi
