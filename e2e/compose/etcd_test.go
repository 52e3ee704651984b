//go:build e2e

package compose

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// etcdOf starts the three members of compose.ha.yaml on this machine, with their environment from that file, and
// returns their addresses.
func etcdOf(t *testing.T, secrets string) (clients, peers []string) {
	t.Helper()
	f := loadFile(t, "compose.ha.yaml")
	out, err := exec.Command(filepath.Join(harness.Root(t), "scripts", "tool.sh"), "etcd").Output()
	if err != nil {
		t.Fatal(err)
	}
	binary := strings.TrimSpace(string(out))
	clients, peers = harness.FreePorts(t, 3), harness.FreePorts(t, 3)
	var moved []string // from the containers' addresses to these
	for i := range clients {
		host := fmt.Sprintf("etcd-%d", i+1)
		moved = append(moved, host+":2379", clients[i], host+":2380", peers[i])
	}
	for i := range clients {
		name := fmt.Sprintf("etcd-%d", i+1)
		here := strings.NewReplacer(append(moved, "0.0.0.0:2379", clients[i], "0.0.0.0:2380", peers[i],
			"/run/secrets/", filepath.Join(secrets, name)+"/", "/data/etcd", t.TempDir())...)
		cmd := exec.Command(binary, "--unsafe-no-fsync")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		for variable, value := range f.Services[name].Environment {
			if strings.HasPrefix(variable, "ETCD_") && value != nil {
				cmd.Env = append(cmd.Env, variable+"="+here.Replace(*value))
			}
		}
		log, err := os.Create(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			log.Close()
			if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
				t.Logf("%s: %s", name, text[max(0, len(text)-2000):])
			}
		})
	}
	return clients, peers
}

// A client that can write to etcd decides which containers run beside the databases, and every user of the machine
// reaches the containers' addresses: it accepts only Patroni's certificate, and its members only each other's.
func TestEtcdAnswersCertificatesAlone(t *testing.T) {
	t.Parallel()
	secrets := t.TempDir()
	if out, err := exec.Command(harness.Bin(t, "stack"), "secrets", secrets).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	clients, peers := etcdOf(t, secrets)
	// The settings of patroni.yml, as Patroni uses them: keys through the JSON form of etcd's API.
	folder := filepath.Join(secrets, "postgres-ha")
	ca, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	own, err := tls.LoadX509KeyPair(filepath.Join(folder, "etcd.crt"), filepath.Join(folder, "etcd.key"))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(scheme, addr string, certs ...tls.Certificate) (int, string, error) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: certs}}
		defer transport.CloseIdleConnections()
		client := http.Client{Transport: transport, Timeout: 10 * time.Second}
		resp, err := client.Post(scheme+"://"+addr+"/v3/kv/put", "application/json", strings.NewReader(`{"key":"L3BhdHJvbmkv","value":"eA=="}`))
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text), err
	}
	for _, addr := range clients {
		var last string
		harness.Eventually(t, time.Minute, func() error {
			status, text, err := ask("https", addr, own)
			if last = text; err == nil && status != http.StatusOK {
				err = fmt.Errorf("%s answers Patroni's certificate %d %s", addr, status, text)
			}
			return err
		})
		if !strings.Contains(last, "revision") {
			t.Errorf("etcd answers %s; want a revision", last)
		}
	}
	for _, addr := range append(clients, peers...) {
		if status, text, err := ask("http", addr); err == nil && status != http.StatusBadRequest {
			t.Errorf("plain HTTP at %s: %d %s; want a refusal", addr, status, text)
		}
		if status, text, err := ask("https", addr); err == nil {
			t.Errorf("no certificate at %s: %d %s; want a refusal", addr, status, text)
		} else if strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%s: %v; want a refusal by TLS", addr, err)
		}
	}
	// Nor does a certificate of another authority help.
	other := t.TempDir()
	if out, err := exec.Command(harness.Bin(t, "stack"), "secrets", other).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	foreign, err := tls.LoadX509KeyPair(filepath.Join(other, "postgres-ha", "etcd.crt"), filepath.Join(other, "postgres-ha", "etcd.key"))
	if err != nil {
		t.Fatal(err)
	}
	if status, text, err := ask("https", clients[0], foreign); err == nil {
		t.Errorf("a foreign certificate: %d %s; want a refusal", status, text)
	}
}
