//go:build e2e

package assistant_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/e2e/kube"
)

// resident returns a process's memory in MiB.
func (p *process) resident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var kib int
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			return kib / 1024
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// TestBigCluster asks about 5,000 pods.
func TestBigCluster(t *testing.T) {
	const nodes, pods = 50, 5000
	var list []kube.Node
	for i := range nodes {
		list = append(list, kube.Node{Name: fmt.Sprintf("node-%02d", i), CPU: "64", Memory: "256Gi"})
	}
	w := newWorld(t, list)
	for n := range 10 {
		if err := w.Namespace(t.Context(), fmt.Sprintf("team-%d", n)); err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(32)
	for i := range pods {
		g.Go(func() error {
			_, err := w.Client.CoreV1().Pods(fmt.Sprintf("team-%d", i%10)).Create(ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("app-%04d", i), Labels: map[string]string{"app": fmt.Sprintf("app-%d", i%200)}},
				Spec:       corev1.PodSpec{NodeName: fmt.Sprintf("node-%02d", i%nodes), Containers: []corev1.Container{{Name: "app", Image: "registry.test/app:1", Resources: resourceRequests("10m", "32Mi")}}},
			}, metav1.CreateOptions{})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := retryUntil(3*time.Minute, func() error {
		list, err := w.Client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{ResourceVersion: "0", FieldSelector: "status.phase=Running"})
		if err == nil && len(list.Items) < pods {
			err = fmt.Errorf("%d pods run", len(list.Items))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d pods run after %s", pods, time.Since(begin).Round(time.Second))
	k := w.talk(t, "")
	k.session = "big"
	for _, q := range []string{"what is wrong?", "which pods are unhealthy?", "what is wrong in team-3?", "node capacity"} {
		var best time.Duration
		for range 3 {
			begin := time.Now()
			a := k.say(q)
			if took := time.Since(begin); best == 0 || took < best {
				best = took
			}
			if len(a.errors) > 0 {
				t.Errorf("%q: %v\n%s; want len(a.errors) <= 0", q, a.errors, a.text)
			}
		}
		t.Logf("%-28q %s, resident %d MiB", q, best.Round(time.Millisecond), w.process.resident(t))
	}
}

// TestManyStreams keeps 500 streams open, and measures how long a single one waits alone.
func TestManyStreams(t *testing.T) {
	const streams = 500
	w := newWorld(t, nil, "ASSISTANT_MAX_STREAMS=1000")
	w.web(t, "shop")
	k := w.talk(t, "shop")

	// Alone: the handshake and the first status against the request.
	var handshake, status time.Duration
	for i := range 20 {
		h, s := k.first(t, fmt.Sprintf("alone-%d", i))
		if i == 0 || h < handshake {
			handshake = h
		}
		if i == 0 || s < status {
			status = s
		}
	}
	// The baseline: an answer of the same server that does nothing.
	floor := time.Hour
	for range 20 {
		begin := time.Now()
		k.get("/healthz")
		floor = min(floor, time.Since(begin))
	}
	t.Logf("handshake %s, first status %s, bare answer %s: best of 20", handshake, status, floor)

	before := w.process.resident(t)
	most := before
	for round := range 3 {
		begin := time.Now()
		var wg sync.WaitGroup
		failed := make(chan error, streams)
		for i := range streams {
			wg.Go(func() {
				own := talk{t: t, url: k.url, key: adminKey, session: fmt.Sprintf("many-%d-%d", round, i), scope: "shop"}
				if _, err := own.try("what is wrong?"); err != nil {
					failed <- err
				}
			})
		}
		wg.Wait()
		close(failed)
		for err := range failed {
			t.Fatal(err)
		}
		now := w.process.resident(t)
		t.Logf("round %d: %d streams in %s, resident %d MiB (before all: %d)", round+1, streams, time.Since(begin).Round(time.Millisecond), now, before)
		if round > 0 && now > 2*most {
			t.Errorf("memory grows with every round: %d MiB after %d; want (round <= 0 || now <= 2 * most)", now, most)
		}
		most = max(most, now)
	}
}

// first measures the time to the handshake and to the first status.
func (k *talk) first(t *testing.T, session string) (handshake, status time.Duration) {
	t.Helper()
	own := talk{t: t, url: k.url, key: k.key, session: session, scope: k.scope}
	r, err := own.request("what is wrong?", turn{key: own.key})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	resp, err := http.DefaultClient.Do(r.WithContext(context.Background()))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	sc := bufio.NewReader(resp.Body)
	for {
		line, err := sc.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, "stream.start") {
			handshake = time.Since(begin)
		}
		if strings.Contains(line, `"status"`) {
			status = time.Since(begin)
			break
		}
	}
	_, _ = io.Copy(io.Discard, sc) // to its end, so that the connection is reused
	return handshake, status
}
