// Package node adds a real node to a control plane of package kube: containerd, kubelet and kube-proxy.
//
// They run in separate network, mount and process namespaces. Network: one pair of interfaces leads to the machine, and
// the iptables rules of kube-proxy, the bridge of the pods and their addresses are the node's alone. Ending the first
// process of the namespaces ends the node with all its pods; a folder and the cgroups remain on the machine, which Stop
// removes. The network plug-in is a plain bridge, which enforces no NetworkPolicy.
package node

import (
	"bytes"
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/e2e/kube"
)

// Registry is the host of a registry that the node reaches and that has no images.
const Registry = "registry.test"

//go:embed node.sh containerd.toml kubelet.yaml bridge.conflist
var files embed.FS

// Node is a running node.
type Node struct {
	Name string

	dir, gateway, address string
	cmd                   *exec.Cmd
	ended                 chan struct{}
	doors                 []net.Listener // on the machine's side of the pair
	registry              *http.Server
}

// Start installs and builds missing programs, starts a node and waits until it is ready. The node ends with the test.
func Start(t testing.TB, c *kube.Cluster) *Node {
	t.Helper()
	script := filepath.Join(harness.Root(t), "scripts", "node.sh")
	if out, err := exec.Command("bash", script, "install").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	removeLeftovers(t)
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	name := fmt.Sprintf("node-%x", random)
	n := &Node{
		Name: name, dir: filepath.Join("/tmp", name), ended: make(chan struct{}), // short, as paths of sockets must be
		gateway: fmt.Sprintf("10.213.%d.%d", random[0], random[1]&^3+1), address: fmt.Sprintf("10.213.%d.%d", random[0], random[1]&^3+2),
	}
	if err := os.Mkdir(n.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.stop(t) })
	if err := n.start(t, c); err != nil {
		t.Fatalf("start a node: %v\n%s", err, n.logs())
	}
	return n
}

func (n *Node) start(t testing.TB, c *kube.Cluster) error {
	if err := n.write(ownerFile, fmt.Sprintln(os.Getpid())); err != nil {
		return err
	}
	if err := n.makeCgroups(); err != nil {
		return err
	}
	if err := n.configure(); err != nil {
		return err
	}
	log, err := os.Create(n.path("node.log"))
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own handle
	n.cmd = exec.Command("sh", n.path("node.sh"), n.dir, buildTool(t, "kubelet"), buildTool(t, "kube-proxy"), n.gateway, n.address, n.Name)
	n.cmd.Stdout, n.cmd.Stderr = log, log
	n.cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNET, Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
	}
	if err := n.cmd.Start(); err != nil {
		return fmt.Errorf("enter new namespaces, which needs root: %w", err)
	}
	go func() {
		defer close(n.ended)
		_ = n.cmd.Wait() // its log shows how it ended
	}()
	if err := n.connect(c); err != nil {
		return err
	}
	if err := n.importImages(t); err != nil {
		return err
	}
	return n.waitReady(c)
}

func (n *Node) path(name string) string { return filepath.Join(n.dir, name) }

func buildTool(t testing.TB, name string) string {
	t.Helper()
	build := exec.Command("sh", filepath.Join(harness.Root(t), "scripts", "tool.sh"), name)
	build.Stderr = os.Stderr
	bin, err := build.Output()
	if err != nil {
		t.Fatalf("build %s: %v", name, err)
	}
	return strings.TrimSpace(string(bin))
}

// configure writes the files of the node's programs.
func (n *Node) configure() error {
	fill := strings.NewReplacer("@DIR@", n.dir, "@NAME@", n.Name, "@ADDRESS@", n.address)
	for name, to := range map[string]string{"node.sh": "node.sh", "containerd.toml": "containerd.toml", "kubelet.yaml": "kubelet.yaml", "bridge.conflist": "cni/10-bridge.conflist"} {
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		if err := n.write(to, fill.Replace(string(text))); err != nil {
			return err
		}
	}
	return n.write("resolv.conf", "nameserver "+n.gateway+"\n")
}

func (n *Node) write(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(n.path(name)), 0o755); err != nil {
		return err
	}
	return os.WriteFile(n.path(name), []byte(text), 0o600)
}

// apiEndpoints point the Service of the API server to its door; the API server itself would publish the machine's
// address, where it does not listen.
const apiEndpoints = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kubernetes, labels: {kubernetes.io/service-name: kubernetes}}
addressType: IPv4
endpoints: [{addresses: [%s]}]
ports: [{name: https, port: %d}]
`

// connect creates the pair of interfaces between node and machine, and serves the API server and a registry at the
// machine's end of it: otherwise both listen on loopback only, and the node has a separate one.
func (n *Node) connect(c *kube.Cluster) error {
	link := "kn" + strings.TrimPrefix(n.Name, "node-")
	for _, args := range [][]string{
		{"link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", fmt.Sprint(n.cmd.Process.Pid)},
		{"address", "add", n.gateway + "/30", "dev", link},
		{"link", "set", link, "up"},
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	api, err := net.Listen("tcp", n.gateway+":0")
	if err != nil {
		return err
	}
	n.doors = append(n.doors, api)
	go forward(api, func() (net.Conn, error) { return net.Dial("tcp", strings.TrimPrefix(c.Config.Host, "https://")) })
	if err := c.Apply(context.Background(), "default", fmt.Sprintf(apiEndpoints, n.gateway, api.Addr().(*net.TCPAddr).Port)); err != nil {
		return err
	}
	registry, err := net.Listen("tcp", n.gateway+":0")
	if err != nil {
		return err
	}
	n.registry = &http.Server{Handler: http.HandlerFunc(emptyRegistry), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = n.registry.Serve(registry) }() // ends when it is closed
	host := fmt.Sprintf("server = \"http://%s\"\n[host.\"http://%s\"]\n  capabilities = [\"pull\", \"resolve\"]\n", registry.Addr(), registry.Addr())
	if err := n.write(filepath.Join("hosts", Registry, "hosts.toml"), host); err != nil {
		return err
	}
	cfg := clientcmdapi.NewConfig()
	// The certificate of the API server is for loopback.
	cfg.Clusters["e2e"] = &clientcmdapi.Cluster{Server: "https://" + api.Addr().String(), CertificateAuthority: c.Config.CAFile, TLSServerName: "127.0.0.1"}
	cfg.AuthInfos["node"] = &clientcmdapi.AuthInfo{Token: c.Config.BearerToken}
	cfg.Contexts["e2e"] = &clientcmdapi.Context{Cluster: "e2e", AuthInfo: "node"}
	cfg.CurrentContext = "e2e"
	return clientcmd.WriteToFile(*cfg, n.path("kubeconfig"))
}

// emptyRegistry answers as a registry that lacks the requested image.
func emptyRegistry(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/v2/" {
		return
	}
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, `{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}`)
}

// forward forwards connections until the listener is closed.
func forward(from net.Listener, dial func() (net.Conn, error)) {
	for {
		near, err := from.Accept()
		if err != nil {
			return
		}
		go func() {
			defer near.Close()
			far, err := dial()
			if err != nil {
				return
			}
			defer far.Close()
			go func() {
				_, _ = io.Copy(far, near)
				far.Close()
			}()
			_, _ = io.Copy(near, far)
		}()
	}
}

// importImages waits for containerd and imports the images of the pods.
func (n *Node) importImages(t testing.TB) error {
	ctx := context.Background()
	if err := n.until(func() error { return n.runCtr(ctx, nil, "version") }); err != nil {
		return err
	}
	if err := n.Import(ctx, bytes.NewReader(busyboxArchive(t))); err != nil {
		return err
	}
	return n.write("imported", "")
}

func (n *Node) waitReady(c *kube.Cluster) error {
	return n.until(func() error {
		node, err := c.Client.CoreV1().Nodes().Get(context.Background(), n.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, cond := range node.Status.Conditions {
			if cond.Type == corev1.NodeReady && cond.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("node %s is not ready", n.Name)
	})
}

// until waits two minutes for a condition, but stops if the node has ended.
func (n *Node) until(check func() error) error {
	end, tick := time.After(2*time.Minute), time.NewTicker(100*time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-n.ended:
			return errors.Join(errors.New("the node ended"), err)
		case <-end:
			return err
		case <-tick.C:
		}
	}
}

// stop ends the node and removes its leftovers.
func (n *Node) stop(t testing.TB) {
	if t.Failed() {
		t.Logf("the node's logs:\n%s", n.logs())
	}
	if n.cmd != nil && n.cmd.Process != nil {
		_ = n.cmd.Process.Kill() // it may have ended already
		<-n.ended
	}
	for _, d := range n.doors {
		d.Close()
	}
	if n.registry != nil {
		n.registry.Close()
	}
	if err := n.removeCgroups(); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(n.dir); err != nil {
		t.Error(err)
	}
}

// logs returns the last lines of each program.
func (n *Node) logs() string {
	var b strings.Builder
	for _, name := range []string{"node", "containerd", "kubelet", "kube-proxy", "coredns"} {
		text, _ := os.ReadFile(n.path(name + ".log"))
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		fmt.Fprintf(&b, "%s:\n%s\n", name, strings.Join(lines[max(0, len(lines)-12):], "\n"))
	}
	return b.String()
}
