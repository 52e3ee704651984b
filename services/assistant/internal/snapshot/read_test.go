package snapshot_test

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mlp-platform/platform/libs/samplecluster"
	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/snapshot"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// shared is the cluster of all read-only tests.
var shared = sync.OnceValue(func() *samplecluster.Cluster { return samplecluster.New(time.Now) })

func TestMain(m *testing.M) {
	code := m.Run()
	shared().Close()
	os.Exit(code)
}

func openCluster(t *testing.T) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Open(t.Context(), cluster.Options{Seeded: func() (*rest.Config, func()) { return shared().Config(), nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// shown records the calls, and checks that each ends before the next begins.
type shown struct {
	t     *testing.T
	lines []string
	open  bool
}

func (s *shown) show(op operation.Operation) func(turn.Output, error) {
	if s.open {
		s.t.Errorf("%s begins inside another call; want !s.open", op.Verb)
	}
	if err := operation.Normalize(op).Validate(); err != nil {
		s.t.Errorf("%+v is not valid: %v", op, err)
	}
	line := kubectl.Render(op)
	s.open, s.lines = true, append(s.lines, line)
	return func(out turn.Output, err error) {
		if s.open = false; out.Text == "" && err == nil {
			s.t.Errorf(`%s shows nothing; want (out.Text != "" || an error)`, line)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	c := openCluster(t)
	var first []string
	for range 2 {
		calls := &shown{t: t}
		s, err := snapshot.Read(t.Context(), c, guard.Policy{}, "shop", time.Now(), calls.show)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Unread) > 0 {
			t.Errorf("not read: %v; want len(s.Unread) <= 0", s.Unread)
		}
		if len(s.Nodes) == 0 || len(s.Deployments) == 0 || len(s.Events) == 0 || len(s.Namespaces) < 5 || !s.Served["apps/v1"] || !s.Served["v1"] {
			t.Errorf(`%d nodes, %d deployments, %d events, %d namespaces, %v; want len(s.Nodes) != 0 && len(s.Deployments) != 0 && len(s.Events) != 0 && len(s.Namespaces) >= 5 && s.Served["apps/v1"] && s.Served["v1"]`, len(s.Nodes), len(s.Deployments), len(s.Events), len(s.Namespaces), s.Served)
		}
		if len(s.Logs) == 0 {
			t.Error("no log of the crash was read")
		}
		if len(playbook.Diagnose(s, "shop")) < 3 {
			t.Error("what is wrong in shop was not found")
		}
		if first == nil {
			first = calls.lines
		}
		if got, want := strings.Join(calls.lines, "\n"), strings.Join(first, "\n"); got != want {
			t.Errorf("calls differ:\n%s\nbefore:\n%s", got, want)
		}
	}
	if !strings.HasPrefix(first[0], "kubectl get pods -n shop") || !strings.Contains(strings.Join(first, "\n"), "kubectl logs api-") {
		t.Errorf("calls:\n%s; want strings.HasPrefix(first[0], \"kubectl get pods -n shop\") && strings.Contains(strings.Join(first, \"\\n\"), \"kubectl logs api-\")", strings.Join(first, "\n"))
	}
}

func TestHiddenAndSecret(t *testing.T) {
	t.Parallel()
	c := openCluster(t)
	notes, used := &shown{t: t}, ""
	s, err := snapshot.Read(t.Context(), c, guard.Policy{Hidden: []string{"payments"}}, "", time.Now(), func(op operation.Operation) func(turn.Output, error) {
		done := notes.show(op)
		return func(out turn.Output, err error) {
			if done(out, err); op.Verb == operation.Top {
				used = out.Text
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	rows, more := strings.Count(used, " cpu="), 0
	if _, rest, ok := strings.Cut(used, "\n  and "); ok {
		if _, err := fmt.Sscanf(rest, "%d more", &more); err != nil {
			t.Fatal(err)
		}
	}
	if rows+more != len(s.Usage) || rows == 0 {
		t.Errorf("%d containers in use are told; want the %d visible ones:\n%s", rows+more, len(s.Usage), used)
	}
	load := 0
	for _, p := range s.Pods {
		switch {
		case p.Namespace == "payments":
			t.Errorf("pod %s of a hidden namespace", p.Name)
		case p.Name == "":
			load++
		}
	}
	if load == 0 {
		t.Error("what hidden pods hold on their nodes is forgotten")
	}
	for _, n := range s.Namespaces {
		if n.Name == "payments" {
			t.Error("a hidden namespace")
		}
	}
	for _, d := range s.Deployments {
		if d.Namespace == "payments" {
			t.Error("a hidden deployment")
		}
	}
	for _, m := range s.ConfigMaps {
		for key, value := range m.Data {
			if value != "" {
				t.Errorf(`config map %s has the value of %s; want value == ""`, m.Name, key)
			}
		}
	}
	for _, secret := range s.Secrets {
		if secret.Namespace == "payments" {
			t.Errorf(`secret %s of a hidden namespace; want secret.Namespace != "payments"`, secret.Name)
		}
	}
}

// A namespace in which a pod waits for a node needs the pods of all others.
func TestPendingReadsAllPods(t *testing.T) {
	t.Parallel()
	c := openCluster(t)
	all, err := snapshot.Read(t.Context(), c, guard.Policy{}, "", time.Now(), (&shown{t: t}).show)
	if err != nil {
		t.Fatal(err)
	}
	waiting, calm := map[string]bool{}, ""
	for _, p := range all.Pods {
		waiting[p.Namespace] = waiting[p.Namespace] || p.Status.Phase == corev1.PodPending && p.Spec.NodeName == ""
	}
	for namespace, waits := range waiting {
		if !waits && namespace != "kube-system" {
			calm = namespace
		}
	}
	for namespace, waits := range waiting {
		if !waits && namespace != calm {
			continue
		}
		s, err := snapshot.Read(t.Context(), c, guard.Policy{}, namespace, time.Now(), (&shown{t: t}).show)
		if err != nil {
			t.Fatal(err)
		}
		if waits != (len(s.Pods) == len(all.Pods)) {
			t.Errorf("%s: %d of %d pods, one waits: %v; want waits == (len(s.Pods) == len(all.Pods))", namespace, len(s.Pods), len(all.Pods), waits)
		}
	}
}

func TestNoSuchNamespace(t *testing.T) {
	t.Parallel()
	var refused *operation.Fault
	_, err := snapshot.Read(t.Context(), openCluster(t), guard.Policy{}, "absent", time.Now(), (&shown{t: t}).show)
	if !errors.As(err, &refused) || refused.Reason != operation.NotFound {
		t.Errorf("%v; want errors.As(err, &refused) && refused.Reason == operation.NotFound", err)
	}
}

func TestNoAnswer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Open(t.Context(), cluster.Options{Seeded: func() (*rest.Config, func()) { return &rest.Config{Host: address}, func() {} }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	var fail *turn.Fail
	calls := &shown{t: t}
	if _, err := snapshot.Read(t.Context(), c, guard.Policy{}, "shop", time.Now(), calls.show); !errors.As(err, &fail) || fail.Failure != fault.ClusterUnreachable || len(calls.lines) != 1 {
		t.Errorf("%v after %v; want errors.As(err, &fail) && fail.Failure == fault.ClusterUnreachable && len(calls.lines) == 1", err, calls.lines)
	}
}

// A shown result is the beginning of the data, not its size.
func TestShownResult(t *testing.T) {
	t.Parallel()
	texts := map[string]string{}
	_, err := snapshot.Read(t.Context(), openCluster(t), guard.Policy{}, "shop", time.Now(), func(op operation.Operation) func(turn.Output, error) {
		return func(out turn.Output, _ error) { texts[string(op.Verb)+" "+op.Kind] = out.Text }
	})
	if err != nil {
		t.Fatal(err)
	}
	pods := texts["list pods"]
	if at := strings.Index(pods, "CrashLoopBackOff"); at < 0 || at > 300 || !strings.Contains(pods, "shop/api-") || !strings.Contains(pods, " Running") {
		t.Errorf("pods are shown as %q; want names and states, the unhealthy first", pods)
	}
	for kind, text := range texts {
		if strings.HasPrefix(kind, "list deployments,") && (!strings.Contains(text, "shop/catalog") || !strings.Contains(text, "No cronjobs found.")) {
			t.Errorf("%s is shown as %q; want the names of its objects, and what there is none of", kind, text)
		}
	}
}

// TestCertificatesInSnapshot: the public part of a certificate is included, and a hidden namespace reveals none of its
// own.
func TestCertificatesInSnapshot(t *testing.T) {
	t.Parallel()
	s := samplecluster.New(time.Now)
	t.Cleanup(s.Close)
	client, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"shop", "payments"} {
		_, err := client.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "web-tls"}, Type: corev1.SecretTypeTLS, Data: map[string][]byte{"tls.crt": []byte("no certificate"), "tls.key": []byte("no key")},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	c, err := cluster.Open(t.Context(), cluster.Options{Seeded: func() (*rest.Config, func()) { return s.Config(), nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	read, err := snapshot.Read(t.Context(), c, guard.Policy{Hidden: []string{"payments"}}, "", time.Now(), (&shown{t: t}).show)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]redact.CertificateFault{}
	for _, secret := range read.Secrets {
		if secret.Certificate != nil {
			found[secret.Namespace+"/"+secret.Name] = secret.Certificate.Fault
		}
	}
	if want := map[string]redact.CertificateFault{"shop/web-tls": redact.CertificateNotPEM}; !maps.Equal(found, want) {
		t.Errorf("got %v, want %v", found, want)
	}
}
