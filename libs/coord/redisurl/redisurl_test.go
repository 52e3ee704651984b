package redisurl_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/coord/redisurl"
	"github.com/mlp-platform/platform/libs/embedded/child"
	"github.com/mlp-platform/platform/libs/testenv"
)

func TestRefusedURLs(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "host:6379", "http://host", "redis://:hunter22@host:6379/x", "redis://:hunter22@host:6379?master_name=", "redis://:hunter22@host?master_name=m&addr=nowhere", "redis://:hunter22@host?master_name=m&color=red"} {
		c, err := redisurl.Connect(text, time.Second, time.Second)
		if err == nil {
			c.Close()
			t.Errorf("%q: got a client, want an error", text)
		} else if strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%q: the error repeats the password: %v", text, err)
		}
	}
}

// Over TLS each sentinel and each server is held to its own name, not to the first sentinel's.
func TestSentinelsOverTLSHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	c, err := redisurl.Connect("rediss://:hunter22@sentinel-1:26379/0?master_name=platform&addr=sentinel-2:26379", time.Second, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	tls := c.Options().TLSConfig
	if tls == nil || tls.ServerName != "" || tls.InsecureSkipVerify {
		t.Errorf("TLS settings %+v; want some, without a name, so that the dialled host is checked", tls)
	}
}

// The client follows the sentinels to the server that they promote when the master dies.
func TestSentinelsPromoteAnother(t *testing.T) {
	t.Parallel()
	const password = "sentinel-test-password"
	masterPort, replicaPort := freePort(t), freePort(t)
	master := startRedis(t, "", "--port", masterPort, "--requirepass", password, "--masterauth", password)
	startRedis(t, "", "--port", replicaPort, "--requirepass", password, "--masterauth", password, "--replicaof", "127.0.0.1 "+masterPort)
	url := "redis://:" + password + "@"
	var ports []string
	for range 3 {
		port := freePort(t)
		startRedis(t, fmt.Sprintf("port %s\nrequirepass %s\nsentinel sentinel-pass %s\nsentinel monitor platform 127.0.0.1 %s 2\nsentinel auth-pass platform %s\nsentinel down-after-milliseconds platform 1000\nsentinel failover-timeout platform 3000\n",
			port, password, password, masterPort, password))
		ports = append(ports, port)
	}
	url += "127.0.0.1:" + ports[0] + "/0?master_name=platform&addr=127.0.0.1:" + ports[1] + "&addr=127.0.0.1:" + ports[2]
	client, err := redisurl.Connect(url, 2*time.Second, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	ctx := t.Context()
	testenv.Eventually(t, 30*time.Second, func() error { // the replica follows, and the sentinels know it
		if err := client.Set(ctx, "k", "kept", 0).Err(); err != nil {
			return err
		}
		if n, err := client.Wait(ctx, 1, 500*time.Millisecond).Result(); err != nil || n != 1 {
			return fmt.Errorf("replicas that acknowledged: %d, %v; want 1", n, err)
		}
		return sentinelsKnow(t, ports, password)
	})
	if err := master.Stop(ctx, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, 60*time.Second, func() error {
		if err := client.Set(ctx, "after", "1", 0).Err(); err != nil {
			return err
		}
		if got, err := client.Get(ctx, "k").Result(); err != nil || got != "kept" {
			return fmt.Errorf("k is %q, %v; want kept", got, err)
		}
		return nil
	})
}

// sentinelsKnow reports whether each sentinel knows the replica and the two others.
func sentinelsKnow(t *testing.T, ports []string, password string) error {
	for _, port := range ports {
		s, err := redisurl.Connect("redis://:"+password+"@127.0.0.1:"+port, time.Second, time.Second)
		if err != nil {
			return err
		}
		state, err := s.Do(t.Context(), "sentinel", "master", "platform").Result()
		s.Close()
		if err != nil {
			return err
		}
		facts := fmt.Sprint(state)
		if !strings.Contains(facts, "num-slaves:1") && !strings.Contains(facts, "num-slaves 1") || !strings.Contains(facts, "num-other-sentinels:2") && !strings.Contains(facts, "num-other-sentinels 2") {
			return fmt.Errorf("the sentinel at %s knows: %s", port, facts)
		}
	}
	return nil
}

// startRedis runs a server, or with a configuration a sentinel.
func startRedis(t *testing.T, sentinel string, args ...string) *child.Process {
	t.Helper()
	dir := t.TempDir()
	if sentinel != "" {
		file := filepath.Join(dir, "sentinel.conf")
		if err := os.WriteFile(file, []byte(sentinel), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append([]string{file, "--sentinel"}, args...)
	} else {
		args = append(args, "--save", "", "--repl-diskless-sync-delay", "0")
	}
	cmd := exec.Command("redis-server", append(args, "--bind", "127.0.0.1", "--dir", dir)...)
	p, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(t.Context(), syscall.SIGKILL) })
	return p
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
