#!/bin/sh
# Process 1 of a node: containerd, kubelet and kube-proxy in network, mount and process namespaces of their own, so that
# the machine keeps its sysctls, iptables and mounts, and everything ends with this process.
# usage: node.sh DIR KUBELET KUBE_PROXY GATEWAY ADDRESS NAME
set -eu
dir=$1 kubelet=$2 proxy=$3 gateway=$4 address=$5 name=$6

mount -t proc proc /proc
mount --make-rshared / # the kubelet's mounts must reach containerd
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/log
mkdir -p "$dir/lib" "$dir/lib.work" "$dir/sysctl" "$dir/kubelet"
mount -t overlay overlay -o "lowerdir=/var/lib,upperdir=$dir/lib,workdir=$dir/lib.work" /var/lib
# The kubelet sets these for the whole machine; here it writes copies.
for s in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
	copy=$dir/sysctl/$(echo $s | tr / -)
	cat /proc/sys/$s >"$copy"
	mount --bind "$copy" /proc/sys/$s
done

ip link set lo up
until ip link show eth0 >/dev/null 2>&1; do sleep 0.05; done # the parent makes it
ip address add "$address/30" dev eth0
ip link set eth0 up
ip route add default via "$gateway"

containerd --config "$dir/containerd.toml" >"$dir/containerd.log" 2>&1 &
until [ -e "$dir/imported" ]; do sleep 0.05; done # no pod before its image
"$proxy" --kubeconfig="$dir/kubeconfig" --hostname-override="$name" --proxy-mode=iptables --cluster-cidr=10.244.0.0/16 \
	--conntrack-max-per-core=0 --conntrack-min=0 --conntrack-tcp-timeout-established=0 --conntrack-tcp-timeout-close-wait=0 \
	>"$dir/kube-proxy.log" 2>&1 &
"$kubelet" --config="$dir/kubelet.yaml" --kubeconfig="$dir/kubeconfig" --root-dir="$dir/kubelet" --cert-dir="$dir/certs" \
	--hostname-override="$name" --node-ip="$address" >"$dir/kubelet.log" 2>&1 &
wait $!
