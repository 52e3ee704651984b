// Package kube starts a real Kubernetes control plane on loopback: etcd, API server, controller manager and scheduler,
// and kwok in place of kubelets.
//
// Package kubelet runs the pods that carry its annotation; every other scheduled pod is ready at once.
// StartWithoutNodes leaves kwok out: package node provides a real kubelet.
package kube

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	_ "embed"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/e2e/kube/kubelet"
)

//go:embed stages.yaml
var stages []byte

// Cluster is a running control plane.
type Cluster struct {
	Dir        string
	Kubeconfig string // of an administrator
	Config     *rest.Config
	Client     *kubernetes.Clientset
	Kubelet    *kubelet.Kubelet
	Etcd       string // address of the store, for objects that no API server accepts any more

	port  int
	token string
	parts []*part
	stop  context.CancelFunc
	ended chan error
}

// part is one process of the control plane.
type part struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// Start builds missing programs, starts everything, and waits until the scheduler has nodes for pods. The caller stops
// it.
func Start(t testing.TB, nodes ...Node) *Cluster {
	t.Helper()
	return launch(t, "lease", func(c *Cluster) error { return c.simulate(t, nodes) })
}

// StartWithoutNodes starts the control plane alone, for a caller that brings its own node. That node also defines where
// pods reach the API server.
func StartWithoutNodes(t testing.TB) *Cluster {
	t.Helper()
	return launch(t, "none", func(*Cluster) error { return nil })
}

func launch(t testing.TB, endpoints string, addNodes func(*Cluster) error) *Cluster {
	t.Helper()
	dir, err := os.MkdirTemp("", "kube-")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{Dir: dir}
	err = c.start(t, endpoints)
	if err == nil {
		err = addNodes(c)
	}
	if err != nil {
		text := c.logs()
		c.Stop()
		t.Fatalf("start a control plane: %v\n%s", err, text)
	}
	return c
}

// start starts everything but nodes; endpoints is how the API server keeps its own Service's endpoints.
func (c *Cluster) start(t testing.TB, endpoints string) error {
	ports, err := freePorts(5)
	if err != nil {
		return err
	}
	var secret [16]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return err
	}
	c.port, c.token = ports[2], hex.EncodeToString(secret[:])
	if err := c.credentials(); err != nil {
		return err
	}
	c.Etcd = loopbackURL(ports[0])
	if err := c.run(t, "etcd", "--name=e2e", "--data-dir="+c.path("etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+loopbackURL(ports[0]), "--advertise-client-urls="+loopbackURL(ports[0]),
		"--listen-peer-urls="+loopbackURL(ports[1]), "--initial-advertise-peer-urls="+loopbackURL(ports[1]), "--initial-cluster=e2e="+loopbackURL(ports[1])); err != nil {
		return err
	}
	if err := c.run(t, "kube-apiserver", "--etcd-servers="+loopbackURL(ports[0]), "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", c.port),
		"--cert-dir="+c.path("certs"), "--token-auth-file="+c.path("tokens.csv"), "--authorization-mode=RBAC", "--anonymous-auth=false",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+c.path("sa.pub"), "--service-account-signing-key-file="+c.path("sa.key"),
		"--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged", "--kubelet-preferred-address-types=InternalIP", "--enable-aggregator-routing=false",
		"--endpoint-reconciler-type="+endpoints,
		"--watch-cache=true", "--profiling=false"); err != nil {
		return err
	}
	if err := c.kubeconfig(); err != nil {
		return err
	}
	if err := c.ready(); err != nil {
		return err
	}
	if c.Kubelet, err = kubelet.New(c.Client); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	c.stop, c.ended = stop, make(chan error, 1)
	go func() { c.ended <- c.Kubelet.Run(ctx) }()
	shared := []string{"--kubeconfig=" + c.Kubeconfig, "--leader-elect=false", "--authentication-skip-lookup", "--bind-address=127.0.0.1"}
	return errors.Join(
		c.run(t, "kube-controller-manager", append(shared, fmt.Sprintf("--secure-port=%d", ports[3]), "--cert-dir="+c.path("certs-kcm"), "--use-service-account-credentials=false",
			"--service-account-private-key-file="+c.path("sa.key"), "--root-ca-file="+c.ca(), "--node-monitor-grace-period=12s", "--node-monitor-period=1s",
			"--horizontal-pod-autoscaler-sync-period=2s", "--concurrent-deployment-syncs=10")...),
		c.run(t, "kube-scheduler", append(shared, fmt.Sprintf("--secure-port=%d", ports[4]), "--cert-dir="+c.path("certs-sched"))...),
	)
}

// simulate starts kwok for the nodes and waits until the scheduler can place pods on them.
func (c *Cluster) simulate(t testing.TB, nodes []Node) error {
	if err := os.WriteFile(c.path("stages.yaml"), stages, 0o600); err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	if err := c.run(t, "kwok", "--kubeconfig="+c.Kubeconfig, "--manage-nodes-with-label-selector=type=kwok", "--config="+c.path("stages.yaml"), "--node-ip=127.0.0.1",
		fmt.Sprintf("--node-port=%d", c.Kubelet.Port()), fmt.Sprintf("--server-address=127.0.0.1:%d", ports[0]), "--node-lease-duration-seconds=8", "--cidr=10.244.0.0/16"); err != nil {
		return err
	}
	return c.join(nodes)
}

func (c *Cluster) path(name string) string { return filepath.Join(c.Dir, name) }

// ca returns the certificate that the API server made for itself.
func (c *Cluster) ca() string { return c.path("certs/apiserver.crt") }

func loopbackURL(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }

// credentials are those of one administrator, and the key that signs service account tokens.
func (c *Cluster) credentials() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(c.path("sa.key"), pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), 0o600),
		os.WriteFile(c.path("sa.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o600),
		os.WriteFile(c.path("tokens.csv"), []byte(c.token+`,e2e-admin,1,"system:masters"`+"\n"), 0o600),
	)
}

// kubeconfig waits for the API server's certificate and writes the kubeconfig file.
func (c *Cluster) kubeconfig() error {
	if err := pollUntil(30*time.Second, func() error { return checkCertificate(c.ca()) }); err != nil {
		return err
	}
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters["e2e"] = &clientcmdapi.Cluster{Server: fmt.Sprintf("https://127.0.0.1:%d", c.port), CertificateAuthority: c.ca()}
	cfg.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: c.token}
	cfg.Contexts["e2e"] = &clientcmdapi.Context{Cluster: "e2e", AuthInfo: "admin"}
	cfg.CurrentContext = "e2e"
	c.Kubeconfig = c.path("kubeconfig")
	if err := clientcmd.WriteToFile(*cfg, c.Kubeconfig); err != nil {
		return err
	}
	var err error
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		return err
	}
	c.Config.QPS = -1
	c.Client, err = kubernetes.NewForConfig(c.Config)
	return err
}

func checkCertificate(path string) error {
	b, err := os.ReadFile(path)
	if err == nil && !bytes.Contains(b, []byte("END CERTIFICATE")) {
		err = errors.New("half written: " + path)
	}
	return err
}

func (c *Cluster) ready() error {
	return pollUntil(60*time.Second, func() error {
		if p := c.dead(); p != nil {
			return stopWaiting{fmt.Errorf("%s ended", p.name)}
		}
		return c.Client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(context.Background()).Error()
	})
}

// run starts one process with its output in a file.
func (c *Cluster) run(t testing.TB, name string, args ...string) error {
	build := exec.Command("sh", filepath.Join(harness.Root(t), "scripts/tool.sh"), name)
	build.Stderr = os.Stderr
	bin, err := build.Output()
	if err != nil {
		return fmt.Errorf("build %s: %w", name, err)
	}
	p := &part{name: name, log: c.path(name + ".log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own handle
	p.cmd = exec.Command(strings.TrimSpace(string(bin)), args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	// A killed test binary leaves nothing behind.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // its log shows how it ended
	}()
	c.parts = append(c.parts, p)
	return nil
}

// dead returns a part that has ended, or nil.
func (c *Cluster) dead() *part {
	for _, p := range c.parts {
		select {
		case <-p.done:
			return p
		default:
		}
	}
	return nil
}

// Stop ends all processes and removes their data.
func (c *Cluster) Stop() {
	if c.stop != nil {
		c.stop()
		<-c.ended
	}
	for i := len(c.parts) - 1; i >= 0; i-- {
		_ = c.parts[i].cmd.Process.Kill() // it may have ended already
		<-c.parts[i].done
	}
	_ = os.RemoveAll(c.Dir) // in the temporary folder
}

// logs returns the last lines of each part.
func (c *Cluster) logs() string {
	var b strings.Builder
	for _, p := range c.parts {
		text, _ := os.ReadFile(p.log)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		fmt.Fprintf(&b, "%s:\n%s\n", p.name, strings.Join(lines[max(0, len(lines)-8):], "\n"))
	}
	return b.String()
}

// stopWaiting is an error that a retry will not fix.
type stopWaiting struct{ error }

func pollUntil(limit time.Duration, check func() error) error {
	end := time.Now().Add(limit)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		var final stopWaiting
		if err == nil || errors.As(err, &final) || time.Now().After(end) {
			return err
		}
		<-tick.C
	}
}

func freePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // all are held until the last is known
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}
