package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// writeKubeconfig writes one with the contexts a and b, of which a is the current one.
func writeKubeconfig(t *testing.T, server string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"a","clusters":[{"name":"c","cluster":{"server":%q}}],"users":[{"name":"u","user":{"token":"t"}}],
"contexts":[{"name":"a","context":{"cluster":"c","user":"u"}},{"name":"b","context":{"cluster":"c","user":"u"}},{"name":"broken","context":{"cluster":"none","user":"u"}}]}`, server)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// newServedCluster is a cluster that answers every call as h does.
func newServedCluster(t *testing.T, h http.HandlerFunc) *cluster.Cluster {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c, err := cluster.Open(t.Context(), cluster.Options{Kubeconfig: writeKubeconfig(t, server.URL)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestWhichCluster(t *testing.T) {
	t.Parallel()
	file := writeKubeconfig(t, "https://127.0.0.1:1")
	seeded := func() (*rest.Config, func()) {
		t.Error("the seeded cluster starts although there is another")
		return &rest.Config{}, nil
	}
	for _, tc := range []struct {
		options cluster.Options
		name    string
	}{
		{cluster.Options{Kubeconfig: file, Seeded: seeded}, "a"}, {cluster.Options{Kubeconfig: file, Context: "b"}, "b"}, {cluster.Options{Kubeconfig: file, Name: "prod"}, "prod"},
		{cluster.Options{Kubeconfig: filepath.Join(t.TempDir(), "absent") + string(os.PathListSeparator) + file}, "a"},
	} {
		c, err := cluster.Open(t.Context(), tc.options)
		if err != nil || c.Name() != tc.name || c.Seeded() || !c.Seen().IsZero() {
			t.Fatalf("%+v: %v; want c.Name() == tc.name && !c.Seeded() && c.Seen().IsZero()", tc.options, err)
		}
		c.Close()
	}
	for want, options := range map[string]cluster.Options{
		"does not exist or has no context": {Kubeconfig: filepath.Join(t.TempDir(), "absent"), Seeded: seeded}, `no context "x"`: {Kubeconfig: file, Context: "x"},
		`use context "broken"`: {Kubeconfig: file, Context: "broken"}, "set KUBECONFIG": {},
	} {
		if _, err := cluster.Open(t.Context(), options); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want an error && strings.Contains(err.Error(), want)", options, err)
		}
	}
}

// The seeded cluster is one like others: it has an identity and is seen.
func TestSeeded(t *testing.T) {
	t.Parallel()
	c := openSample(t)
	if !c.Seeded() || c.Name() != "seeded" || !c.Seen().IsZero() {
		t.Errorf(`%s, seeded %v, seen %v; want c.Seeded() && c.Name() == "seeded" && c.Seen().IsZero()`, c.Name(), c.Seeded(), c.Seen())
	}
	names, err := c.Namespaces(t.Context())
	if err != nil || !slices.IsSorted(names) || !slices.Contains(names, "shop") {
		t.Errorf(`namespaces %v, %v; want slices.IsSorted(names) && slices.Contains(names, "shop")`, names, err)
	}
	uid, err := c.UID(t.Context())
	if again, _ := c.UID(t.Context()); err != nil || uid == "" || again != uid {
		t.Errorf(`uid %q, then %q, %v; want uid != "" && again == uid`, uid, again, err)
	}
	if c.Seen().IsZero() {
		t.Error("the cluster answered and was not seen")
	}
	r, err := c.Resolve(t.Context(), "deploy")
	if err != nil || !r.Subresources["scale"] || !r.Can("list") || r.Can("fly") || r.GVR() != (schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}) {
		t.Errorf(`%+v, %v; want r.Subresources["scale"] && r.Can("list") && !r.Can("fly") && r.GVR() == (schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"})`, r, err)
	}
	if got := r.Ref("shop", "api"); got != (operation.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespace: "shop", Name: "api"}) {
		t.Errorf(`ref %+v; want got == (operation.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespace: "shop", Name: "api"})`, got)
	}
	node, err := c.Resolve(t.Context(), "nodes")
	if err != nil || node.Ref("shop", "a").Namespace != "" {
		t.Errorf(`a node in a namespace: %+v, %v; want node.Ref("shop", "a").Namespace == ""`, node, err)
	}
	c.Close()
	if _, err := c.Namespaces(t.Context()); err == nil {
		t.Error("a closed cluster answers")
	}
}

// A cluster that is never queried is not started, not even by closing it.
func TestSeededIsLazy(t *testing.T) {
	t.Parallel()
	c, err := cluster.Open(t.Context(), cluster.Options{Seeded: func() (*rest.Config, func()) {
		t.Error("started")
		return &rest.Config{}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, err := c.Namespaces(t.Context()); err == nil {
		t.Error("a closed cluster answers")
	}
}

// The search continues until the context ends, and a server that fails is not seen.
func TestRun(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 10)
	var healthy atomic.Bool
	c := newServedCluster(t, func(w http.ResponseWriter, _ *http.Request) {
		if !healthy.Load() {
			w.WriteHeader(http.StatusBadGateway)
		}
		asked <- struct{}{}
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	<-asked
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if !c.Seen().IsZero() {
		t.Error("a bad gateway counts as seen")
	}
	healthy.Store(true)
	if _, err := c.Typed().Discovery().ServerVersion(); err == nil || c.Seen().IsZero() { // an empty answer is no version
		t.Errorf("%v, seen %v; want an error && !c.Seen().IsZero()", err, c.Seen())
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	c := newServedCluster(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Warning", `299 - "v1beta1 is deprecated"`)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Pod","apiVersion":"v1"}`))
	})
	ctx, warnings := cluster.Warnings(t.Context())
	for range 2 {
		if _, err := c.Typed().CoreV1().Pods("a").Get(ctx, "b", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := warnings(); !slices.Equal(got, []string{"v1beta1 is deprecated"}) {
		t.Errorf(`warnings %q; want slices.Equal(got, []string{"v1beta1 is deprecated"})`, got)
	}
}

// Every error is a sentence for the reader, and what it was stays in the chain.
func TestFail(t *testing.T) {
	t.Parallel()
	pods := corev1.Resource("pods")
	for _, tc := range []struct {
		err    error
		reason operation.Reason
		says   string
	}{
		{apierrors.NewNotFound(pods, "api"), operation.NotFound, `The cluster has no such object: pods "api" not found.`},
		{&apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Reason: "NotRecorded", Message: "pods were not recorded"}}, operation.Forbidden, `The recording does not have this: pods were not recorded.`},
		{apierrors.NewForbidden(pods, "api", errors.New("no")), operation.Forbidden, `The cluster does not let the assistant do this: pods "api" is forbidden: no.`},
		{apierrors.NewForbidden(pods, "api", errors.New("exceeded quota: a")), operation.Rejected, `The cluster refuses this: pods "api" is forbidden: exceeded quota: a.`},
		{apierrors.NewConflict(pods, "api", errors.New("moved")), operation.Conflict, `The object was changed meanwhile: Operation cannot be fulfilled on pods "api": moved.`},
		{apierrors.NewBadRequest("password=hunter2 is wrong"), operation.Rejected, `The cluster refuses this: password=[redacted 7 bytes] is wrong.`},
		{apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), `{"a":"`+strings.Repeat("x", 2000)+`"}`, `unknown field "spec.replcas"`)}), operation.Rejected,
			`The cluster refuses this: "" is invalid: patch: Invalid value: unknown field "spec.replcas".`},
		{apierrors.NewTooManyRequests("budget", 1), operation.Rejected, "The cluster refuses this: budget."},
		{apierrors.NewInternalError(errors.New("failed calling webhook")), operation.Unavailable, "The cluster failed at this: Internal error occurred: failed calling webhook."},
		{apierrors.NewTimeoutError("slow", 1), operation.TimedOut, "The cluster took too long to answer: Timeout: slow."},
		{fmt.Errorf("read: %w", context.DeadlineExceeded), operation.TimedOut, "The cluster took too long to answer; narrow the request."},
	} {
		err := cluster.Fail(tc.err)
		var f *operation.Fault
		if !errors.As(err, &f) || f.Reason != tc.reason || f.Error() != tc.says || !errors.Is(err, tc.err) {
			t.Errorf("%v: %v; want errors.As(err, &f) && f.Reason == tc.reason && f.Error() == tc.says && errors.Is(err, tc.err)", tc.err, err)
		}
		if again := cluster.Fail(err); !errors.Is(again, err) {
			t.Errorf("twice: %v; want errors.Is(again, err)", again)
		}
	}
	for err, want := range map[error]fault.Failure{
		errors.New("dial tcp: connection refused"): fault.ClusterUnreachable, apierrors.NewUnauthorized("who?"): fault.ClusterForbidden,
	} {
		var f *turn.Fail
		if got := cluster.Fail(err); !errors.As(got, &f) || f.Failure != want || !errors.Is(got, err) {
			t.Errorf("%v: %v; want errors.As(got, &f) && f.Failure == want && errors.Is(got, err)", err, got)
		}
	}
	if cluster.Fail(nil) != nil || !errors.Is(cluster.Fail(context.Canceled), context.Canceled) {
		t.Error("nil or the caller's own end changes")
	}
	long := cluster.Fail(apierrors.NewBadRequest(strings.Repeat("é", 5000)))
	if n := len([]rune(long.Error())); n > 1100 {
		t.Errorf("a sentence of %d letters; want n <= 1100", n)
	}
}

// One part of the API that does not answer hides nothing but itself.
func TestPartOfDiscoveryFails(t *testing.T) {
	t.Parallel()
	c := newServedCluster(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			_, _ = w.Write([]byte(`{"kind":"APIVersions","versions":["v1"]}`))
		case "/apis":
			_, _ = w.Write([]byte(`{"kind":"APIGroupList","groups":[{"name":"metrics.k8s.io","versions":[{"groupVersion":"metrics.k8s.io/v1beta1","version":"v1beta1"}],"preferredVersion":{"groupVersion":"metrics.k8s.io/v1beta1","version":"v1beta1"}}]}`))
		case "/api/v1":
			_, _ = w.Write([]byte(`{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","kind":"Pod","namespaced":true,"verbs":["list"]}]}`))
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	if r, err := c.Resolve(t.Context(), "pod"); err != nil || r.Resource != "pods" {
		t.Errorf(`%+v, %v; want r.Resource == "pods"`, r, err)
	}
	_, err := c.Resolve(t.Context(), "widgets")
	var f *operation.Fault
	if !errors.As(err, &f) || f.Reason != operation.Unavailable {
		t.Errorf("a kind that may be there: %v; want errors.As(err, &f) && f.Reason == operation.Unavailable", err)
	}
}

// A kind that was made a moment after the last look is found, and asking for one that is not there does not read the
// discovery every time.
func TestResolveFindsNewKinds(t *testing.T) {
	t.Parallel()
	var reads, made atomic.Int32
	c := newServedCluster(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			reads.Add(1)
			_, _ = w.Write([]byte(`{"kind":"APIVersions","versions":["v1"]}`))
		case "/apis":
			_, _ = w.Write([]byte(`{"kind":"APIGroupList","groups":[]}`))
		case "/api/v1":
			kinds := `{"name":"pods","singularName":"pod","kind":"Pod","namespaced":true,"verbs":["list"]}`
			if made.Load() > 0 {
				kinds += `,{"name":"widgets","singularName":"widget","kind":"Widget","namespaced":true,"verbs":["list"]}`
			}
			_, _ = w.Write([]byte(`{"kind":"APIResourceList","groupVersion":"v1","resources":[` + kinds + `]}`))
		}
	})
	if _, err := c.Resolve(t.Context(), "pod"); err != nil {
		t.Fatal(err)
	}
	made.Add(1)
	if r, err := c.Resolve(t.Context(), "widget"); err != nil || r.Resource != "widgets" {
		t.Errorf(`%+v, %v; want r.Resource == "widgets"`, r, err)
	}
	for range 200 {
		if _, err := c.Resolve(t.Context(), "gadget"); err == nil {
			t.Fatal("there is no such kind")
		}
	}
	if n := reads.Load(); n > 50 {
		t.Errorf("the discovery was read %d times; want n <= 50", n)
	}
}

// A cluster that hangs costs the caller its own patience, not more.
func TestResolveGivesUp(t *testing.T) {
	t.Parallel()
	c := newServedCluster(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Resolve(ctx, "pods"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v; want errors.Is(err, context.Canceled)", err)
	}
}

// Closing cancels the calls under way, and no caller mistakes that for the end of its context.
func TestCloseEndsCalls(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 10)
	c := newServedCluster(t, func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	})
	failed := make(chan error, 1)
	go func() {
		_, err := c.Namespaces(t.Context())
		failed <- err
	}()
	<-asked
	c.Close()
	var f *turn.Fail
	if err := cluster.Fail(<-failed); !errors.As(err, &f) || errors.Is(err, context.Canceled) {
		t.Errorf("%v; want errors.As(err, &f) && !errors.Is(err, context.Canceled)", err)
	}
}
