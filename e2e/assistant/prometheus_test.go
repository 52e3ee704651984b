//go:build e2e

package assistant_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/libs/scriptedmodel"
)

// prometheus is a real Prometheus, on loopback.
type prometheus struct {
	url  string
	cmd  *exec.Cmd
	done chan struct{}
}

// startPrometheus scrapes itself and the target once a second. The target's series carry labels of the scrape, as {name: value}.
func startPrometheus(t *testing.T, addr, target, labels string) *prometheus {
	t.Helper()
	dir := t.TempDir()
	config := fmt.Sprintf(`
global: {scrape_interval: 1s}
scrape_configs:
- job_name: prometheus
  static_configs: [{targets: [%q]}]
- job_name: assistant
  static_configs: [{targets: [%q], labels: %s}]
`, addr, target, labels)
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "prometheus.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // the process has its own handle
	p := &prometheus{url: "http://" + addr, done: make(chan struct{})}
	p.cmd = exec.Command("prometheus", "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // its log shows how it ended
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("prometheus's log:\n%s", logTail(log.Name()))
		}
	})
	return p
}

func (p *prometheus) kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.done
}

// value returns the value of an expression; an error if it has none.
func (p *prometheus) value(promql string) (string, error) {
	resp, err := http.Get(p.url + "/api/v1/query?query=" + url.QueryEscape(promql))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var doc struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil {
		return "", err
	}
	if len(doc.Data.Result) == 0 {
		return "", fmt.Errorf("%s gives nothing", promql)
	}
	return fmt.Sprint(doc.Data.Result[0].Value[1]), nil
}

// testPrometheus asks both engines about data that a real Prometheus has scraped.
func testPrometheus(t *testing.T, w *world) {
	addr := harness.FreePorts(t, 1)[0]
	query := func(when, arguments string) scriptedmodel.Conversation {
		return scriptedmodel.Conversation{When: when, Steps: []scriptedmodel.Step{callTool("query_prometheus", arguments), {Echo: true}}}
	}
	m := openModel(t, scriptedmodel.Script{Conversations: []scriptedmodel.Conversation{
		query("which jobs answer", `{"promql":"sum by (job) (up)"}`),
		query("how did that go", `{"promql":"sum by (job) (up)","range_minutes":5}`),
		query("is that PromQL", `{"promql":"sum by (job (up)"}`),
		query("does that exist", `{"promql":"no_such_metric_at_all"}`),
		query("is that labelled so", `{"promql":"sum(http_requests_total{namespace=\"shop\"})"}`),
	}})
	plain := w.launch(t, w.door, "ASSISTANT_ENGINE=playbooks", "PROMETHEUS_URL=http://"+addr)
	asking := w.launch(t, w.door, append(m.env, "PROMETHEUS_URL=http://"+addr)...)
	// What is scraped carries the name of a pod of web in labels of an older scrape configuration.
	web, err := w.Client.CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil || len(web.Items) == 0 {
		t.Fatalf("%v, %d pods of web", err, len(web.Items))
	}
	p := startPrometheus(t, addr, strings.TrimPrefix(plain.url, "http://"), fmt.Sprintf("{kubernetes_namespace: shop, kubernetes_pod_name: %s}", web.Items[0].Name))
	talk := func(p *process, name string) *talk {
		k := w.talk(t, "shop")
		k.url, k.session = p.url, "prometheus-"+name
		return k
	}
	llm, playbooks := talk(asking, "llm"), talk(plain, "playbooks")

	// Answers of 503 and of 200, so that there is an error rate; a rate needs two scrapes.
	failing := func() error {
		if a, err := harness.TryCall(http.MethodPost, plain.url+"/v1/auth/demo-keys", adminKey, map[string]string{"email": "a@b.c"}); err != nil || a.Status != http.StatusServiceUnavailable {
			return fmt.Errorf("demo keys answer %d, %v", a.Status, err)
		}
		if a, err := harness.TryCall(http.MethodGet, plain.url+"/v1/models", adminKey, nil); err != nil || a.Status != http.StatusOK {
			return fmt.Errorf("models answer %d, %v", a.Status, err)
		}
		_, err := p.value(`rate(http_requests_total{status="503"}[5m]) > 0 and on() rate(http_requests_total{status="200",route="/v1/models"}[5m]) > 0 and on() count(up == 1) == 2`)
		return err
	}
	if err := retryUntil(60*time.Second, failing); err != nil {
		t.Fatal(err)
	}

	a := llm.say("which jobs answer?")
	requireMatches(t, a, `prometheus\S* 1\b`, `assistant\S* 1\b`)
	if !strings.Contains(strings.Join(a.tools, "\n"), "sum by (job) (up)") {
		t.Errorf("its tool lines are %q; want strings.Contains(strings.Join(a.tools, \"\\n\"), \"sum by (job) (up)\")", a.tools)
	}
	requireMatches(t, llm.say("how did that go?"), `assistant.* last 1, min`)
	requireMatches(t, llm.say("is that PromQL?"), `Prometheus refuses the query`, `(?i)parse error`)
	requireMatches(t, llm.say("does that exist?"), `No series match`)
	requireMatches(t, llm.say("is that labelled so?"), `Not measured: no series of http_requests_total has these labels`, `kubernetes_namespace="shop"`)
	a = playbooks.say("what is the error rate?")
	requireMatches(t, a, `ended with 5xx`, `shop\S* 0\.\d*[1-9]`)
	requireMatches(t, playbooks.say("what is the latency?"), `99th percentile`, `shop\S* \d`)
	requireMatches(t, playbooks.say("what is the error rate of web?"), `ended with 5xx`, `shop\S* 0\.\d*[1-9]`)
	requireMatches(t, playbooks.say("what is the error rate of api?"), "Not measured: the metrics store's series of `http_requests_total` carry no label with the name of a pod of deployment `api`", `kubernetes_pod_name`)

	p.kill()
	a = llm.say("which jobs answer?")
	requireMatches(t, a, `(?i)metrics store`)
	if len(a.errors) > 0 {
		t.Errorf("a store that is away ends the turn: %v; want len(a.errors) <= 0", a.errors)
	}
	requireMatches(t, playbooks.say("what is the error rate?"), `(?i)metrics store`, `DATABASE_URL`)
	if calls := w.door.written(0, "shop"); len(calls) > 1 { // the other client's own
		t.Errorf("%d writes:\n%s; want len(calls) <= 1", len(calls), formatCalls(calls))
	}
	m.judge(t)
}
