//go:build e2e

package assistant_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/e2e/kube"
	"github.com/mlp-platform/platform/libs/samplecluster/program"
)

// testManualSDK runs the program in the manual.
func testManualSDK(t *testing.T, w *world) {
	page, err := os.ReadFile(filepath.Join(harness.Root(t), "docs/assistant.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```python\n(.*?)```").FindSubmatch(page)
	if m == nil {
		t.Fatal("the manual shows no program in Python")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, venvPython(t, "python"), "-c", string(m[1]))
	cmd.Env = append(os.Environ(), "ASSISTANT_URL="+w.process.url, "ASSISTANT_OPERATOR_KEY="+operatorKey)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "DATABASE_URL") {
		t.Errorf("%v\n%s; want strings.Contains(string(out), \"DATABASE_URL\")", err, out)
	}
}

// testAccount: with the account in the manual, and the API server's own RBAC, a diagnosis reads everything it needs,
// and an approved change is made.
func testAccount(t *testing.T, w *world) {
	ctx := t.Context()
	for _, ns := range []string{"platform", "billing"} {
		if err := w.Namespace(ctx, ns); err != nil {
			t.Fatal(err)
		}
	}
	applyFile(t, w, filepath.Join(harness.Root(t), "deploy/kubernetes/assistant-account.yaml"))
	for _, d := range []diagnosis{
		{deployment: setEnvironment(kube.Deployment("billing", "ledger", goodImage, 1, crashing), corev1.EnvVar{Name: "DATABASE_URL"})},
		{deployment: kube.Deployment("billing", "web", "registry.test/web:1", 1, program.Program{})},
	} {
		if _, err := w.Client.AppsV1().Deployments("billing").Create(ctx, d.deployment, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := retryUntil(60*time.Second, joinChecks(w.waiting("billing", 1, "CrashLoopBackOff"), w.readyPods("billing", 1))); err != nil {
		t.Fatal(err)
	}
	token, err := w.Client.CoreV1().ServiceAccounts("platform").CreateToken(ctx, "cluster-assistant", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(w.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	p := launchAssistant(t, newDatabase(t), file, "ASSISTANT_ENGINE=playbooks")
	k := &talk{t: t, url: p.url, key: operatorKey, session: "account", scope: "billing"}
	a := k.say("what is wrong?")
	requireMatches(t, a, `DATABASE_URL`)
	if strings.Contains(a.text, "Not read") || strings.Contains(a.text, "forbidden") {
		t.Errorf("the account may not read all:\n%s; want !strings.Contains(a.text, \"Not read\") && !strings.Contains(a.text, \"forbidden\")", a.text)
	}
	requireOneApproval(t, k.say("scale web to 2"))
	requireMatches(t, k.say("yes"), `2 of 2`)
	// It may not change permissions, so no approval could grant it one.
	review, err := w.Client.RbacV1().ClusterRoles().Get(ctx, "cluster-assistant-writer", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range review.Rules {
		for _, group := range rule.APIGroups {
			if group == rbacv1.GroupName || group == "*" {
				t.Errorf(`the writer may change %v of %s; want group != rbacv1.GroupName && group != "*"`, rule.Resources, group)
			}
		}
	}
}

// applyFile creates the objects of a file.
func applyFile(t *testing.T, w *world, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, made := t.Context(), 0
	for documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; made++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		switch o := object.(type) {
		case *corev1.ServiceAccount:
			_, err = w.Client.CoreV1().ServiceAccounts(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
		case *rbacv1.ClusterRole:
			_, err = w.Client.RbacV1().ClusterRoles().Create(ctx, o, metav1.CreateOptions{})
		case *rbacv1.ClusterRoleBinding:
			_, err = w.Client.RbacV1().ClusterRoleBindings().Create(ctx, o, metav1.CreateOptions{})
		default:
			t.Fatalf("%s holds a %T", path, o)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if made != 5 {
		t.Errorf("%s holds %d objects; want made == 5", path, made)
	}
}
