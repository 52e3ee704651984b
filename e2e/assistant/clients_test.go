//go:build e2e

package assistant_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/e2e/kube"
	"github.com/mlp-platform/platform/libs/samplecluster/program"
)

// clientWorld has a deployment that crashes and one that can be scaled.
func clientWorld(t *testing.T) *world {
	w := newWorld(t, nil)
	if err := w.Namespace(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	for _, d := range []diagnosis{
		{deployment: setEnvironment(kube.Deployment("shop", "api", goodImage, 1, crashing), corev1.EnvVar{Name: "DATABASE_URL"})},
		{deployment: kube.Deployment("shop", "web", "registry.test/web:1", 1, program.Program{})},
	} {
		if _, err := w.Client.AppsV1().Deployments("shop").Create(t.Context(), d.deployment, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := retryUntil(60*time.Second, joinChecks(w.waiting("shop", 1, "CrashLoopBackOff"), w.readyPods("shop", 1))); err != nil {
		t.Fatal(err)
	}
	return w
}

func venvPython(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(harness.Root(t), ".cache/venv-assistant/bin", name)
}

// TestClients tests unmodified third-party clients, and a metrics store.
func TestClients(t *testing.T) {
	t.Parallel()
	w := clientWorld(t)
	t.Run("all", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *world){
			"openai SDK": testOpenAISDK, "kube-q": testKubeQ, "the manual's program": testManualSDK, "the manual's account": testAccount,
			"Prometheus": testPrometheus, "the Model Context Protocol's SDKs": testMCP, "the Model Context Protocol's Inspector": testInspector,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, w)
			})
		}
	})
}

// testOpenAISDK: the official SDK, unmodified, in the strict profile: no exception on any turn.
func testOpenAISDK(t *testing.T, w *world) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, venvPython(t, "python"), "testdata/sdk.py", w.process.url, adminKey, "shop")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	var seen struct {
		Models                                       []string
		Model, Answer, Denied, Done, Nothing, Header string
		Async                                        string
		Usage                                        map[string]any
		Asked                                        struct {
			Text     string
			Required bool   `json:"hitl_required"`
			ID       string `json:"action_id"`
			Risk     string `json:"risk_level"`
			Summary  string `json:"human_summary"`
		}
		Helper     struct{ Role, Text string }
		Unstreamed struct{ Code, Param, Type, Message string }
		Stranger   struct{ Code, Type string }
	}
	if err := json.Unmarshal(out, &seen); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !slices.Equal(seen.Models, []string{"cluster-assistant", "cluster-assistant-openai"}) || seen.Model != "cluster-assistant-openai" {
		t.Errorf(`models %v, %s; want slices.Equal(seen.Models, []string{"cluster-assistant", "cluster-assistant-openai"}) && seen.Model == "cluster-assistant-openai"`, seen.Models, seen.Model)
	}
	if !strings.Contains(seen.Answer, "DATABASE_URL") || seen.Usage["total_tokens"] != 0.0 {
		t.Errorf(`answer %q, usage %v; want strings.Contains(seen.Answer, "DATABASE_URL") && seen.Usage["total_tokens"] == 0.0`, seen.Answer, seen.Usage)
	}
	if a := seen.Asked; !a.Required || a.ID == "" || a.Risk != "medium" || a.Summary != "kubectl scale deployment/web -n shop --replicas=2" {
		t.Errorf(`asked %+v; want a.Required && a.ID != "" && a.Risk == "medium" && a.Summary == "kubectl scale deployment/web -n shop --replicas=2"`, a)
	}
	if !strings.Contains(seen.Denied, "Denied") || !regexp.MustCompile(`2 of 2|2/2|2 ready`).MatchString(seen.Done) || !strings.Contains(seen.Nothing, "Nothing is waiting") {
		t.Errorf("denied %q\ndone %q\nnothing %q; want strings.Contains(seen.Denied, \"Denied\") && regexp.MustCompile(`2 of 2|2/2|2 ready`).MatchString(seen.Done) && strings.Contains(seen.Nothing, \"Nothing is waiting\")", seen.Denied, seen.Done, seen.Nothing)
	}
	if seen.Header == "" || seen.Async == "" || seen.Helper.Role != "assistant" || seen.Helper.Text != seen.Async || seen.Header != seen.Async {
		t.Errorf("header %q\nhelper %+v\nasync %q; want seen.Header != \"\" && seen.Async != \"\" && seen.Helper.Role == \"assistant\" && seen.Helper.Text == seen.Async && seen.Header == seen.Async", seen.Header, seen.Helper, seen.Async)
	}
	if u := seen.Unstreamed; u.Code != "stream_required" || u.Param != "stream" || u.Type != "invalid_request_error" {
		t.Errorf(`unstreamed %+v; want u.Code == "stream_required" && u.Param == "stream" && u.Type == "invalid_request_error"`, u)
	}
	if s := seen.Stranger; s.Code != "unauthenticated" || s.Type != "authentication_error" {
		t.Errorf(`stranger %+v; want s.Code == "unauthenticated" && s.Type == "authentication_error"`, s)
	}
	if n := len(w.door.written(0, "shop")); n != 1 {
		t.Errorf("%d writes, want the one that was approved", n)
	}
}
