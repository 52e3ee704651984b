package assistant_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/mlp-platform/platform/libs/samplecluster"
	"github.com/mlp-platform/platform/libs/testenv"
)

// site is a cluster with an API server that listens.
type site struct {
	url    string
	down   atomic.Bool // it does not answer
	client *kubernetes.Clientset
}

// serveSite runs a sample cluster. The namespace of its name is in no other one.
func serveSite(t *testing.T, name string) *site {
	t.Helper()
	c := samplecluster.New(time.Now)
	t.Cleanup(c.Close)
	cfg := c.Config()
	at, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }, Transport: cfg.Transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.down.Load() {
			panic(http.ErrAbortHandler)
		}
		body, err := io.ReadAll(r.Body) // a pipe in memory takes the request as a whole
		if err != nil {
			panic(http.ErrAbortHandler) // its client is gone
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	if s.client, err = kubernetes.NewForConfig(cfg); err != nil {
		t.Fatal(err)
	}
	own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "only-" + name}}
	if _, err := s.client.CoreV1().Namespaces().Create(t.Context(), own, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.url = server.URL
	return s
}

// replicas are those of the deployment web, which every sample cluster has in the namespace shop.
func (s *site) replicas(t *testing.T) int32 {
	t.Helper()
	d, err := s.client.AppsV1().Deployments("shop").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return *d.Spec.Replicas
}

// sites are two clusters that differ in one namespace each.
type sites struct {
	east, west *site
	env        []string // of an assistant that serves both, with east as the default
}

func serveSites(t *testing.T) sites {
	t.Helper()
	s := sites{east: serveSite(t, "east"), west: serveSite(t, "west")}
	file := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"east","users":[{"name":"u","user":{"token":"t"}}],
"clusters":[{"name":"e","cluster":{"server":%q}},{"name":"w","cluster":{"server":%q}}],
"contexts":[{"name":"west","context":{"cluster":"w","user":"u"}},{"name":"east","context":{"cluster":"e","user":"u"}}]}`, s.east.url, s.west.url)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.env = []string{"KUBECONFIG=" + file, "ASSISTANT_CLUSTER=", "ASSISTANT_CONTEXTS=east,west", "ASSISTANT_ALERT_KEYS=" + alertKey}
	return s
}

// serveWith runs the bench's next process with other clusters.
func (b *bench) serveWith(contexts string) {
	b.t.Helper()
	b.stop()
	b.env = slices.DeleteFunc(slices.Clone(b.env), func(kv string) bool { return strings.HasPrefix(kv, "ASSISTANT_CONTEXTS=") })
	b.env = append(b.env, "ASSISTANT_CONTEXTS="+contexts)
	b.serve()
}

// sayIn asks in a session of a cluster; an empty one is not named.
func (b *bench) sayIn(cluster, key, session, text string) stream {
	b.t.Helper()
	return b.stream(b.want(200, "POST", chatPath, key, chatBody(text), "X-Session-ID", session, "X-Cluster", cluster))
}

// proposeIn requests a write in a session of a cluster and returns the action's id.
func (b *bench) proposeIn(cluster, key, session, text string) string {
	b.t.Helper()
	s := b.sayIn(cluster, key, session, text)
	if len(s.prompts()) != 1 {
		b.t.Fatalf("%d prompts, want 1: %s", len(s.prompts()), s.raw)
	}
	return s.prompts()[0].ActionID
}

func (b *bench) decide(status int, key, session, id, decision string) answer {
	b.t.Helper()
	return b.want(status, "POST", "/v1/sessions/"+session+"/actions/"+id, key, `{"decision":"`+decision+`"}`)
}

const listNamespaces = "kubectl get namespaces"

// A session is of the cluster that its first request names, and what it asks, proposes and carries out is there alone.
func TestClusters(t *testing.T) {
	t.Parallel()
	s := serveSites(t)
	b := startBench(t, s.env...)
	first := s.east.replicas(t)

	b.contains(b.sayIn("", operator, "one", listNamespaces), "only-east", "\n\nCluster: `east`.")
	there := b.sayIn("west", operator, "two", listNamespaces)
	b.contains(there, "only-west", "\n\nCluster: `west`.")
	if strings.Contains(there.text, "only-east") {
		t.Errorf("got the other cluster's namespace:\n%s", there.text)
	}
	b.contains(b.sayIn("", operator, "two", listNamespaces), "only-west") // it stays so without the header
	for name, want := range map[string]string{"one": "east", "two": "west"} {
		if got := b.want(200, "GET", "/v1/sessions/"+name, operator, "").document(t)["cluster"]; got != want {
			t.Errorf("session %s: got the cluster %v, want %s", name, got, want)
		}
	}

	b.refused(409, "other_cluster", "POST", chatPath, operator, chatBody(listNamespaces), "X-Session-ID", "two", "X-Cluster", "east")
	wantPieces(t, string(b.call("POST", chatPath, operator, chatBody("why?"), "X-Session-ID", "two", "X-Cluster", "east").body), "is of the cluster west")
	unknown := b.want(422, "POST", chatPath, operator, chatBody("why?"), "X-Session-ID", "three", "X-Cluster", "north")
	wantPieces(t, string(unknown.body), "must be one of east, west")
	if n := b.count("select count(*) from sessions where id = 'three'"); n != 0 {
		t.Error("a refused request made a session")
	}
	// Another person does not learn the cluster of the session.
	if got := b.want(403, "POST", chatPath, other, chatBody("why?"), "X-Session-ID", "two", "X-Cluster", "east"); strings.Contains(string(got.body), "west") {
		t.Errorf("got %s; want no word of the cluster", got)
	}

	asked := b.sayIn("", operator, "two", scaleWebTo(5))
	b.contains(asked, "This change in cluster `west` waits for approval")
	wantPieces(t, string(asked.raw), `"cluster":"west"`)
	if len(asked.prompts()) != 1 {
		t.Fatalf("got %d prompts, want 1", len(asked.prompts()))
	}
	id := asked.prompts()[0].ActionID
	if got := b.action(operator, "two", id)["cluster"]; got != "west" {
		t.Errorf("got an action of %v, want west", got)
	}
	b.contains(b.sayIn("", operator, "two", "yes"), "Done: `"+scaleWebTo(5)+"` in cluster `west`.")
	if east, west := s.east.replicas(t), s.west.replicas(t); east != first || west != 5 {
		t.Errorf("got %d replicas in east and %d in west, want %d and 5", east, west, first)
	}
	for _, name := range []string{"action_proposed", "action_decided", "action_executed", "turn_finished"} {
		if n := b.count("select count(*) from outbox where name = $1 and payload->>'cluster' = 'west'", name); n == 0 {
			t.Errorf("%s: no event names the cluster", name)
		}
	}
	if n := b.count("select count(*) from outbox where namespace = 'audit' and payload->>'action' like 'assistant.action.%' and payload->'details'->>'cluster' = 'west'"); n != 3 {
		t.Errorf("got %d facts of the action that name the cluster, want 3", n)
	}

	// From a session of the other cluster: the action is carried out where it was proposed.
	id = b.proposeIn("west", operator, "two", scaleWebTo(6))
	b.contains(b.sayIn("east", operator, "one", "approve "+id), "Done: `"+scaleWebTo(6)+"` in cluster `west`.")
	if east, west := s.east.replicas(t), s.west.replicas(t); east != first || west != 6 {
		t.Errorf("got %d replicas in east and %d in west, want %d and 6", east, west, first)
	}
}

// The list of namespaces is that of the cluster in the header, and lists the clusters too.
func TestNamespacesOfClusters(t *testing.T) {
	t.Parallel()
	s := serveSites(t)
	b := startBench(t, s.env...)
	for header, want := range map[string]string{"": "east", "east": "east", "west": "west"} {
		doc := b.want(200, "GET", "/v1/namespaces", readonly, "", "X-Cluster", header).document(t)
		list, _ := doc["namespaces"].([]any)
		if doc["cluster"] != want || fmt.Sprint(doc["clusters"]) != "[east west]" || !slices.Contains(list, any("only-"+want)) {
			t.Errorf("X-Cluster %q: got %v; want that of %s", header, doc, want)
		}
	}
	b.refused(422, "validation_error", "GET", "/v1/namespaces", readonly, "", "X-Cluster", "north")
}

// A cluster that is down is said, and takes the others not down.
func TestOneOfTwoClustersIsDown(t *testing.T) {
	t.Parallel()
	s := serveSites(t)
	s.west.down.Store(true)
	b := startBench(t, s.env...)
	ready := b.want(200, "GET", "/readyz", "", "").document(t)
	checks, _ := ready["checks"].(map[string]any)
	if checks["cluster east"] != "ok" || !strings.HasPrefix(fmt.Sprint(checks["cluster west"]), "warn: ") || ready["status"] != "degraded" {
		t.Errorf("got %v; want east ok, and a warning of west", ready)
	}
	b.contains(b.sayIn("", operator, "one", listNamespaces), "only-east")
	b.contains(b.sayIn("west", operator, "two", listNamespaces), "The cluster does not answer.", "Cluster: `west`.")
	down := b.want(503, "GET", "/v1/namespaces", readonly, "", "X-Cluster", "west").document(t)
	if down["cluster"] != "west" || fmt.Sprint(down["clusters"]) != "[east west]" {
		t.Errorf("got %v; want the name of the cluster and of all", down)
	}
}

// What was approved is carried out where it was proposed, by a later process with another default; a process that does not
// know the cluster carries it out nowhere.
func TestApprovedInOneClusterAndRestarted(t *testing.T) {
	t.Parallel()
	s := serveSites(t)
	b := startBench(t, s.env...)
	first := s.east.replicas(t)
	approved := b.proposeIn("west", operator, "two", scaleWebTo(5))
	b.decide(200, other, "two", approved, "approve")
	b.proposeIn("east", operator, "one", scaleWebTo(4))
	waiting := b.proposeIn("west", operator, "wait", scaleWebTo(7))
	denied := b.proposeIn("west", operator, "wait", scaleWebTo(8))

	b.serveWith("east")
	for _, cluster := range []string{"", "east"} {
		b.refused(409, "other_cluster", "POST", chatPath, operator, chatBody("go on"), "X-Session-ID", "two", "X-Cluster", cluster)
	}
	wantPieces(t, string(b.decide(409, other, "wait", waiting, "approve").body), `"west\" is not configured any more`)
	b.contains(b.sayIn("", operator, "one", "approve "+waiting), `The cluster "west" is not configured any more.`)
	b.decide(200, other, "wait", denied, "deny")
	if got := b.action(operator, "two", approved)["state"]; got != "approved" {
		t.Errorf("got the state %v, want approved", got)
	}

	b.serveWith("west,east")
	b.contains(b.sayIn("", operator, "one", listNamespaces), "only-east")
	b.contains(b.sayIn("", operator, "two", "go on"), "Done: `"+scaleWebTo(5)+"` in cluster `west`.")
	if east, west := s.east.replicas(t), s.west.replicas(t); east != first || west != 5 {
		t.Errorf("got %d replicas in east and %d in west, want %d and 5", east, west, first)
	}
	b.contains(b.sayIn("", operator, "one", "yes"), "Done: `"+scaleWebTo(4)+"` in cluster `east`.")
	if east, west := s.east.replicas(t), s.west.replicas(t); east != 4 || west != 5 {
		t.Errorf("got %d replicas in east and %d in west, want 4 and 5", east, west)
	}
}

// Sessions and actions from before clusters were configured by name are the default's; a write that was proposed to another
// cluster than the one that gets the name is not carried out there.
func TestClustersAreNamedLater(t *testing.T) {
	t.Parallel()
	s := serveSites(t)
	b := startBench(t, append(s.env, "ASSISTANT_CONTEXTS=")...)
	first := s.east.replicas(t)
	b.refused(422, "validation_error", "POST", chatPath, operator, chatBody("why?"), "X-Session-ID", "one", "X-Cluster", "west")
	old := b.proposeIn("east", operator, "one", scaleWebTo(5)) // the name of the one cluster there is
	if doc := b.action(operator, "one", old); doc["cluster"] != nil {
		t.Errorf("got %v; want no cluster", doc)
	}
	wrong := b.proposeIn("", operator, "two", scaleWebTo(7))
	if n := b.count("select count(*) from sessions where cluster <> ''"); n != 0 {
		t.Errorf("got %d sessions with a cluster, want none", n)
	}

	b.serveWith("west,east")
	b.decide(410, operator, "two", wrong, "approve")
	if east, west := s.east.replicas(t), s.west.replicas(t); east != first || west == 7 {
		t.Errorf("got %d replicas in east and %d in west, want no change", east, west)
	}
	b.serveWith("east,west") // the names stay
	if got := b.want(200, "GET", "/v1/sessions/one", operator, "").document(t)["cluster"]; got != "west" {
		t.Errorf("got the cluster %v, want west, which was the default when names came", got)
	}
}

// No one approves their own request, whichever cluster it is for.
func TestFourEyesInSeveralClusters(t *testing.T) {
	t.Parallel()
	s := serveSites(t)
	b := startBench(t, append(s.env, "ASSISTANT_APPROVAL_POLICY=four-eyes")...)
	first := s.east.replicas(t)
	id := b.proposeIn("west", operator, "two", scaleWebTo(5))
	b.contains(b.sayIn("", operator, "two", "yes"), "another person has to approve it")
	b.decide(403, operator, "two", id, "approve")
	b.contains(b.sayIn("east", other, "elsewhere", "approve "+id), "Done", "in cluster `west`")
	if east, west := s.east.replicas(t), s.west.replicas(t); east != first || west != 5 {
		t.Errorf("got %d replicas in east and %d in west, want %d and 5", east, west, first)
	}
}

// A program names the cluster in the arguments, and each reference of a result does.
func TestMCPOfClusters(t *testing.T) {
	t.Parallel()
	s := serveSites(t)
	b := startBench(t, s.env...)
	session := connectMCP(t, b, operator)
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range list.Tools {
		raw, err := json.Marshal(one.InputSchema)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(raw), `"enum":["east","west"]`) {
			t.Errorf("%s: got the arguments %s; want the names of the clusters", one.Name, raw)
		}
	}
	call := func(name string, arguments map[string]any) (text, structured string, failed bool) {
		t.Helper()
		out, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		raw, err := json.Marshal(out.StructuredContent)
		if err != nil {
			t.Fatal(err)
		}
		return out.Content[0].(*mcp.TextContent).Text, string(raw), out.IsError
	}
	for name, arguments := range map[string]map[string]any{
		"diagnose": {"namespace": "shop"}, "list": {"kind": "namespaces"}, "dependencies": {"namespace": "shop", "name": "api"}, "capacity": {}, "events_in_time": {"namespace": "shop"},
	} {
		arguments["cluster"] = "west"
		text, structured, failed := call(name, arguments)
		named, kinds := strings.Count(structured, `"cluster":"west"`), strings.Count(structured, `"kind":`)
		if failed || named == 0 || named < kinds || !strings.HasSuffix(text, "\nCluster: west") {
			t.Errorf("%s: got %d references with the cluster and %d kinds, %s\n%s", name, named, kinds, structured, text)
		}
	}
	if text, _, failed := call("list", map[string]any{"kind": "namespaces"}); failed || !strings.Contains(text, "only-east") {
		t.Errorf("without a cluster: got %s; want that of east", text)
	}
	if text, _, failed := call("list", map[string]any{"kind": "namespaces", "cluster": "north"}); !failed || !strings.Contains(text, "the clusters are east, west") {
		t.Errorf("an unknown cluster: got %s; want a refusal", text)
	}
	text, structured, failed := call("propose_change", map[string]any{"kubectl": scaleWebTo(5), "cluster": "west", "session_id": "two"})
	if failed || !strings.Contains(structured, `"cluster":"west"`) || !strings.Contains(text, "The change in cluster west waits") {
		t.Fatalf("got %s, %s; want a proposal for west", structured, text)
	}
	if text, _, failed := call("propose_change", map[string]any{"kubectl": scaleWebTo(6), "cluster": "east", "session_id": "two"}); !failed || !strings.Contains(text, "is of the cluster west") {
		t.Errorf("another cluster's session: got %s; want a refusal", text)
	}
	first := s.east.replicas(t)
	b.contains(b.sayIn("", operator, "two", "yes"), "Done: `"+scaleWebTo(5)+"` in cluster `west`.")
	if east, west := s.east.replicas(t), s.west.replicas(t); east != first || west != 5 {
		t.Errorf("got %d replicas in east and %d in west, want %d and 5", east, west, first)
	}
	if n := b.count("select count(*) from outbox where name = 'tool_called' and payload->>'cluster' = 'west'"); n != 6 {
		t.Errorf("got %d calls with the name of west, want 6", n)
	}
}

// The label of an alert chooses the cluster, and the session names it.
func TestAlertsOfClusters(t *testing.T) {
	t.Parallel()
	s := serveSites(t)
	b := startBench(t, s.env...)
	named := func(cluster string) map[string]any {
		return webhookAlert("firing", labels("alertname", "Down", "namespace", "shop", "deployment", "api", "cluster", cluster), nil)
	}
	for group, row := range map[string]struct {
		alerts  []map[string]any
		cluster string
		says    string
	}{
		"of west": {[]map[string]any{named("west")}, "west", "This is about the cluster `west`."},
		"without": {[]map[string]any{webhookAlert("firing", labels("alertname", "Down", "namespace", "shop", "deployment", "api"), nil)}, "east", "This is about the cluster `east`."},
		"unknown": {[]map[string]any{named("north")}, "east", "The labels also name clusters that are not configured: `north`."},
		"of both": {[]map[string]any{named("west"), named("east")}, "east", "Alerts with another cluster in their labels are not looked at: `west`."},
	} {
		session := b.alert(alertKey, webhook(t, group, "firing", row.alerts...))
		said := b.settled(readonly, session)
		if len(said) != 2 {
			t.Fatalf("%s: got %q; want a question and its answer", group, said)
		}
		wantPieces(t, said[1], row.says, "DATABASE_URL", "Cluster: `"+row.cluster+"`.")
		if got := b.want(200, "GET", "/v1/sessions/"+session, readonly, "").document(t)["cluster"]; got != row.cluster {
			t.Errorf("%s: got a session of %v, want %s", group, got, row.cluster)
		}
	}
	one, two := b.alert(alertKey, webhook(t, "moves", "firing", named("west"))), b.alert(alertKey, webhook(t, "moves", "firing", named("east")))
	if one == two {
		t.Error("a group that names another cluster got the session of the first")
	}
	b.settled(readonly, two)
	testenv.Eventually(t, 30*time.Second, func() error { // a person continues in the alert's cluster
		if got := b.sayIn("", operator, one, listNamespaces).text; !strings.Contains(got, "only-west") {
			return fmt.Errorf("got %s", got)
		}
		return nil
	})
}
