package snapshot_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/snapshot"
)

// gatewayServer serves pods and a part of the Gateway API, and records the requests for that group.
type gatewayServer struct {
	answers map[string]string

	mu    sync.Mutex
	asked []string // guarded by mu
}

func (s *gatewayServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/apis/gateway.networking.k8s.io/v1/") {
		s.mu.Lock()
		s.asked = append(s.asked, r.URL.Path)
		s.mu.Unlock()
	}
	w.Header().Set("Content-Type", "application/json")
	body, ok := s.answers[r.URL.Path]
	switch {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
	case body == busy:
		w.WriteHeader(http.StatusInternalServerError)
		body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}`
	case body == "":
		w.WriteHeader(http.StatusForbidden)
		body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
	}
	_, _ = w.Write([]byte(body))
}

// busy marks a response as a server error.
const busy = "busy"

const gatewayPath = "/apis/gateway.networking.k8s.io/v1/"

// gatewayAnswers are the responses of a cluster with gateways and routes; listing grants is refused.
func gatewayAnswers() map[string]string {
	resource := func(name, kind string) string {
		return `{"name":"` + name + `","kind":"` + kind + `","namespaced":true,"verbs":["get","list"]}`
	}
	return map[string]string{
		"/api":         discovery["/api"],
		"/api/v1":      discovery["/api/v1"],
		"/api/v1/pods": `{"kind":"PodList","apiVersion":"v1","items":[]}`,
		"/apis":        `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"gateway.networking.k8s.io","versions":[{"groupVersion":"gateway.networking.k8s.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"gateway.networking.k8s.io/v1","version":"v1"}}]}`,
		"/apis/gateway.networking.k8s.io/v1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"gateway.networking.k8s.io/v1","resources":[` +
			resource("gateways", "Gateway") + "," + resource("httproutes", "HTTPRoute") + "," + resource("grpcroutes", "GRPCRoute") + "," + resource("referencegrants", "ReferenceGrant") + `]}`,
		gatewayPath + "gateways": `{"kind":"GatewayList","apiVersion":"gateway.networking.k8s.io/v1","items":[
			{"metadata":{"namespace":"infra","name":"public"},"spec":{"gatewayClassName":"edge","listeners":[{"name":"http","port":80,"protocol":"HTTP"}]},"status":{"conditions":[{"type":"Accepted","status":"False","reason":"X","message":"password=hunter2-value","lastTransitionTime":"2026-01-01T00:00:00Z"}]}},
			{"metadata":{"namespace":"dark","name":"hidden"},"spec":{}},
			{"metadata":{"namespace":"infra","name":"odd"},"spec":{"listeners":"none"}}]}`,
		gatewayPath + "httproutes":      `{"kind":"HTTPRouteList","apiVersion":"gateway.networking.k8s.io/v1","items":[{"metadata":{"namespace":"shop","name":"front"},"spec":{"parentRefs":[{"name":"public","namespace":"infra","port":80}],"hostnames":["a.example"]}}]}`,
		gatewayPath + "grpcroutes":      `{"kind":"GRPCRouteList","apiVersion":"gateway.networking.k8s.io/v1","items":[{"metadata":{"namespace":"shop","name":"api"},"spec":{}}]}`,
		gatewayPath + "referencegrants": "",
	}
}

// readFrom takes a snapshot of a whole cluster with the given responses.
func readFrom(t *testing.T, answers map[string]string) (*engine.Snapshot, *gatewayServer, *shown) {
	t.Helper()
	server := &gatewayServer{answers: answers}
	at := httptest.NewServer(server)
	t.Cleanup(at.Close)
	c, err := cluster.Open(t.Context(), cluster.Options{Seeded: func() (*rest.Config, func()) { return &rest.Config{Host: at.URL}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	calls := &shown{t: t}
	s, err := snapshot.Read(t.Context(), c, guard.Policy{Hidden: []string{"dark"}}, "", time.Now(), calls.show)
	if err != nil {
		t.Fatal(err)
	}
	return s, server, calls
}

// TestGateways: the Gateway API kinds that the cluster serves are read, without hidden or secret data, and the others
// are not requested.
func TestGateways(t *testing.T) {
	t.Parallel()
	s, server, calls := readFrom(t, gatewayAnswers())
	slices.Sort(server.asked)
	if want := []string{gatewayPath + "gateways", gatewayPath + "grpcroutes", gatewayPath + "httproutes", gatewayPath + "referencegrants"}; !slices.Equal(server.asked, want) {
		t.Errorf("asked for %v; want %v", server.asked, want)
	}
	if len(s.Gateways) != 1 || s.Gateways[0].Name != "public" || s.Gateways[0].Spec.Listeners[0].Port != 80 || strings.Contains(s.Gateways[0].Status.Conditions[0].Message, "hunter2") {
		t.Errorf("gateways %+v; want the one that is visible and has the form of a gateway, without the password", s.Gateways)
	}
	if len(s.Routes) != 2 || s.Routes[0].Kind != "HTTPRoute" || s.Routes[1].Kind != "GRPCRoute" || *s.Routes[0].Spec.ParentRefs[0].Port != 80 {
		t.Errorf("routes %+v; want an HTTPRoute at port 80 and a GRPCRoute", s.Routes)
	}
	if !s.Unread["referencegrants"] || !s.Unread["gateways"] || s.Unread["httproutes"] || s.Unread["gatewayclasses"] {
		t.Errorf("not read: %v; want the grants, which are forbidden, and the gateways, of which one has another form", s.Unread)
	}
	if line := calls.lines[len(calls.lines)-1]; !strings.Contains(line, "gateways,httproutes,grpcroutes,referencegrants") {
		t.Errorf("the last call is %s; want the kinds of the group in one line", line)
	}
}

// TestNoGateways: a cluster that does not serve the group gets no request for it, and no answer mentions it.
func TestNoGateways(t *testing.T) {
	t.Parallel()
	answers := gatewayAnswers()
	answers["/apis"] = discovery["/apis"]
	s, server, calls := readFrom(t, answers)
	if len(server.asked) > 0 || s.Unread["gateways"] || strings.Contains(strings.Join(calls.lines, "\n"), "gateway") {
		t.Errorf("asked for %v, not read %v, calls\n%s; want nothing of the group", server.asked, s.Unread, strings.Join(calls.lines, "\n"))
	}
}

// TestGatewaysUnlisted: if the server does not report which kinds of the group it serves, none of their objects counts
// as absent.
func TestGatewaysUnlisted(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/apis", "/apis/gateway.networking.k8s.io/v1"} {
		answers := gatewayAnswers()
		answers[path] = busy
		s, _, _ := readFrom(t, answers)
		for _, kind := range []string{"gatewayclasses", "gateways", "httproutes", "grpcroutes", "tlsroutes", "referencegrants"} {
			if !s.Unread[kind] {
				t.Errorf("%s fails: not read are %v; want %s among them", path, s.Unread, kind)
			}
		}
	}
}
