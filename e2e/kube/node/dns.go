package node

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/kube"
)

// clusterDNS is the DNS Service of the pods; its address is in kubelet.yaml. CoreDNS runs beside the node instead of on
// it.
const clusterDNS = `
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec:
  clusterIP: 10.96.0.10
  ports: [{name: dns, port: 53, protocol: UDP, targetPort: 1053}, {name: dns-tcp, port: 53, protocol: TCP, targetPort: 1053}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kube-dns, namespace: kube-system, labels: {kubernetes.io/service-name: kube-dns}}
addressType: IPv4
endpoints: [{addresses: [@GATEWAY@]}]
ports: [{name: dns, port: 1053, protocol: UDP}, {name: dns-tcp, port: 1053, protocol: TCP}]
`

// ServeDNS starts CoreDNS at the machine's end of the pair and waits until the node resolves the API server's name.
func (n *Node) ServeDNS(t testing.TB, c *kube.Cluster) {
	t.Helper()
	if err := n.startDNS(t, c); err != nil {
		log, _ := os.ReadFile(n.path("coredns.log")) // there may be none yet
		t.Fatalf("start the cluster's DNS: %v\n%s", err, log)
	}
}

func (n *Node) startDNS(t testing.TB, c *kube.Cluster) error {
	corefile := fmt.Sprintf("cluster.local:1053 {\n  bind %s\n  errors\n  cache 5\n  kubernetes cluster.local {\n    kubeconfig %s\n  }\n}\n", n.gateway, c.Kubeconfig)
	if err := n.write("Corefile", corefile); err != nil {
		return err
	}
	log, err := os.Create(n.path("coredns.log"))
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own handle
	cmd := exec.Command(buildTool(t, "coredns"), "-conf", n.path("Corefile"))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended already
		_ = cmd.Wait()         // its log shows how it ended
	})
	if err := c.Apply(t.Context(), "kube-system", strings.ReplaceAll(clusterDNS, "@GATEWAY@", n.gateway)); err != nil {
		return err
	}
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return n.Dial(ctx, network, "10.96.0.10:53")
	}}
	return n.until(func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		found, err := resolver.LookupHost(ctx, "kubernetes.default.svc.cluster.local")
		if err == nil && (len(found) != 1 || found[0] != "10.96.0.1") {
			err = fmt.Errorf("got %v for the API server, want 10.96.0.1", found)
		}
		return err
	})
}
