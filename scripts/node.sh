#!/bin/bash
# Installs the parts of a real Kubernetes node on this machine: Debian's containerd, network plug-ins and a static
# busybox, and the kubelet and kube-proxy, built once into .cache/bin. The tests start and end the node.
# usage: scripts/node.sh install
set -eu -o pipefail
cd "$(dirname -- "$0")/.."
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

die() { echo "node: $*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

install() {
	local packages=()
	{ have containerd && have ctr; } || packages+=(containerd)
	have runc || packages+=(runc)
	[ -x /usr/lib/cni/bridge ] || packages+=(containernetworking-plugins)
	file_is_static /bin/busybox || packages+=(busybox-static)
	have conntrack || packages+=(conntrack)
	have iptables || packages+=(iptables)
	have ip || packages+=(iproute2)
	if [ ${#packages[@]} -gt 0 ]; then
		have apt-get || die "missing on this machine; install what Debian calls ${packages[*]} by hand"
		[ "$(id -u)" = 0 ] || die "missing on this machine; run once as root: apt-get install -y --no-install-recommends ${packages[*]}"
		export DEBIAN_FRONTEND=noninteractive LC_ALL=C RUNLEVEL=1 # in runlevel 1 no package starts its server
		local apt=(apt-get -qq -y -o DPkg::Lock::Timeout=600 --no-install-recommends)
		"${apt[@]}" install "${packages[@]}" >/dev/null 2>&1 ||
			{ "${apt[@]}" update && "${apt[@]}" install "${packages[@]}"; } >&2 || die "the packages could not be installed"
	fi
	local tool
	for tool in kubelet kube-proxy; do scripts/tool.sh "$tool" >/dev/null; done
}

# A busybox that needs libraries does not run in an image without them.
file_is_static() { [ -x "$1" ] && ! ldd "$1" >/dev/null 2>&1; }

case "${1:-}" in
install) install ;;
*) die "usage: scripts/node.sh install" ;;
esac
