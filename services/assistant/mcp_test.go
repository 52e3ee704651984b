package assistant_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mlp-platform/platform/services/assistant/internal/mcpbridge"
)

// withKey adds a key to each request.
type withKey string

// RoundTrip is part of http.RoundTripper.
func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	return transport.RoundTrip(r)
}

// connectMCP opens a session of the Model Context Protocol.
func connectMCP(t *testing.T, b *bench, key string) *mcp.ClientSession {
	t.Helper()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: b.url + "/mcp", HTTPClient: &http.Client{Transport: withKey(key)}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A program reads, and proposes what a person decides in chat, whatever was approved in advance.
func TestMCP(t *testing.T) {
	t.Parallel()
	b := startBench(t)
	s := connectMCP(t, b, operator)
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	offered := map[string]bool{}
	for _, one := range list.Tools {
		if offered[one.Name] = true; one.Annotations.ReadOnlyHint == (one.Name == "propose_change") {
			t.Errorf("%s: got readOnlyHint %v", one.Name, one.Annotations.ReadOnlyHint)
		}
	}
	if !offered["diagnose"] || !offered["propose_change"] || offered["query_prometheus"] || offered["scale"] {
		t.Errorf("got the tools %v; want diagnose and propose_change, no write and no store that is not configured", offered)
	}
	read, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "diagnose", Arguments: map[string]any{"namespace": "shop"}})
	if err != nil || read.IsError || read.StructuredContent == nil {
		t.Fatalf("diagnose: got %+v, %v; want findings", read, err)
	}
	propose := func(of *mcp.ClientSession, arguments map[string]any) (map[string]any, string, bool) {
		t.Helper()
		out, err := of.CallTool(t.Context(), &mcp.CallToolParams{Name: "propose_change", Arguments: arguments})
		if err != nil {
			return nil, err.Error(), true
		}
		doc, _ := out.StructuredContent.(map[string]any)
		return doc, out.Content[0].(*mcp.TextContent).Text, out.IsError
	}
	made, text, failed := propose(s, map[string]any{"kubectl": scaleWeb, "reason": "more load"})
	session, _ := made["session_id"].(string)
	action, _ := made["action_id"].(string)
	if failed || made["state"] != "pending" || made["always_confirm"] != true || action == "" || !strings.Contains(text, "Nothing has changed yet") {
		t.Fatalf("got %v, %s; want a pending action that always asks", made, text)
	}
	if strings.Contains(text, "language model") || !strings.Contains(text, "a program chose to make this change; no person requested it in a message") {
		t.Errorf("got %s; want it to say that a program chose", text)
	}
	again, _, _ := propose(s, map[string]any{
		"operation": "scale", "arguments": map[string]any{"kind": "deployment", "name": "web", "namespace": "shop", "replicas": 3}, "session_id": session,
	})
	if again["action_id"] != action {
		t.Errorf("the same change again: got %v; want the action %s that waits", again, action)
	}
	for name, arguments := range map[string]map[string]any{
		"a read":                {"kubectl": "kubectl get pods"},
		"a decision":            {"kubectl": "approve " + action},
		"nothing":               {},
		"an unknown member":     {"kubectl": scaleWeb, "approve": true},
		"a protected namespace": {"kubectl": "kubectl scale deployment/coredns -n kube-system --replicas=9"},
		"a bad session id":      {"kubectl": scaleWeb, "session_id": session + "-none/"},
	} {
		if doc, text, failed := propose(s, arguments); !failed {
			t.Errorf("%s: got %v %s; want a refusal", name, doc, text)
		}
	}
	if _, text, failed := propose(connectMCP(t, b, other), map[string]any{"kubectl": scaleWeb, "session_id": session}); !failed {
		t.Errorf("in another caller's session: got %s; want a refusal", text)
	}
	if doc, text, failed := propose(connectMCP(t, b, readonly), map[string]any{"kubectl": scaleWeb}); !failed {
		t.Errorf("with a read-only key: got %v %s; want a refusal", doc, text)
	}
}

// A batch would be many calls for one request of the caller's.
func TestMCPTakesNoBatches(t *testing.T) {
	t.Parallel()
	b := startBench(t)
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"capacity","arguments":{}}}`
	b.refused(422, "validation_error", "POST", "/mcp", readonly, " \n["+call+","+call+"]", "Accept", "application/json, text/event-stream")
	b.want(200, "POST", "/mcp", readonly, " \n"+call, "Accept", "application/json, text/event-stream")
	if n := b.count("select count(*) from outbox where name = 'tool_called'"); n != 1 {
		t.Errorf("%d calls were recorded; want the one that was made", n)
	}
}

// TestMCPRefusals: a request that is not a call of the protocol gets a JSON-RPC error that names the remedy.
func TestMCPRefusals(t *testing.T) {
	t.Parallel()
	b := startBench(t)
	const list = `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`
	takes := []string{"Accept", "application/json, text/event-stream"}
	for name, c := range map[string]struct {
		status int
		body   string
		header []string
		id     any
		code   float64
		say    string
	}{
		"no JSON by its header": {415, list, append(takes, "Content-Type", "text/plain"), nil, -32600, "Send the message as JSON, with the header Content-Type: application/json."},
		"too large":             {413, `{"jsonrpc":"2.0","id":7,"method":"` + strings.Repeat("x", 2<<20) + `"}`, takes, nil, -32600, "The message is larger than "},
		"takes no stream":       {400, list, []string{"Accept", "application/json"}, 7.0, -32600, "Send the header Accept: application/json, text/event-stream."},
		"an unknown version":    {400, list, append(takes, "MCP-Protocol-Version", "2020-01-01"), 7.0, -32600, "The version in the header MCP-Protocol-Version is not supported. Send one of 20"},
		"no JSON":               {400, `{"jsonrpc":`, takes, nil, -32700, "The body is no message of JSON-RPC 2.0: "},
		"no body":               {400, "", append(takes, "Content-Type", "application/json"), nil, -32600, "The request has no body. Send one message of JSON-RPC 2.0."},
		"no method of it":       {400, `{"jsonrpc":"2.0","id":"a","method":"tools/burn"}`, takes, "a", -32600, "tools/burn"},
	} {
		t.Run(name, func(t *testing.T) {
			a := b.call("POST", "/mcp", readonly, c.body, c.header...)
			var got struct {
				JSONRPC string
				ID      any
				Error   struct {
					Code    float64
					Message string
				}
			}
			if err := json.Unmarshal(a.body, &got); err != nil {
				t.Fatalf("%s: %v", a, err)
			}
			if a.StatusCode != c.status || a.Header.Get("Content-Type") != "application/json" || got.JSONRPC != "2.0" || got.ID != c.id || got.Error.Code != c.code || !strings.Contains(got.Error.Message, c.say) {
				t.Errorf("got %s; want %d, id %v, code %v and %q", a, c.status, c.id, c.code, c.say)
			}
		})
	}
}

// A server that offers what cannot be offered on is named, and nothing panics.
func TestMCPBridgeOfABadServer(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{"": "no schema", `,"inputSchema":{"type":"array"}`: "no schema", `,"inputSchema":"x"`: "assistant mcp: "} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var q struct {
				ID     json.RawMessage
				Method string
			}
			if err := json.NewDecoder(r.Body).Decode(&q); err != nil || q.ID == nil {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			result := `{"tools":[{"name":"diagnose"` + schema + `}]}`
			if q.Method == "initialize" {
				result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, result)
		}))
		var said bytes.Buffer
		code := mcpbridge.Run(nil, func(name string) string { return map[string]string{"ASSISTANT_URL": server.URL}[name] }, strings.NewReader(""), io.Discard, &said)
		server.Close()
		if code != 1 || !strings.Contains(said.String(), want) {
			t.Errorf("%q: exit code %d, %q; want 1 and %q", schema, code, said.String(), want)
		}
	}
}

// The bridge over stdin and stdout offers what the key may do, and says in a sentence why it cannot.
func TestMCPOverStdio(t *testing.T) {
	t.Parallel()
	b := startBench(t)
	environment := func(url, key string) func(string) string {
		return func(name string) string { return map[string]string{"ASSISTANT_URL": url, "ASSISTANT_KEY": key}[name] }
	}
	toBridge, fromClient := io.Pipe()
	toClient, fromBridge := io.Pipe()
	ended := make(chan int, 1)
	var said bytes.Buffer
	go func() {
		ended <- mcpbridge.Run(nil, environment(b.url, readonly), toBridge, fromBridge, &said)
		_ = fromBridge.Close()
	}()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.IOTransport{Reader: toClient, Writer: fromClient}, nil)
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.ListTools(t.Context(), nil)
	if err != nil || slices.ContainsFunc(list.Tools, func(t *mcp.Tool) bool { return t.Name == "propose_change" }) {
		t.Errorf("tools of a readonly key: got %v, %v; want no propose_change", list, err)
	}
	out, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "diagnose", Arguments: map[string]any{"namespace": "shop"}})
	if err != nil || out.IsError || out.StructuredContent == nil {
		t.Errorf("diagnose: got %+v, %v; want findings", out, err)
	}
	_ = fromClient.Close()
	if code := <-ended; code != 0 || said.Len() > 0 {
		t.Errorf("at the end of stdin: exit code %d, %q; want 0 and nothing said", code, said.String())
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another host was sent %q", r.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	away := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	t.Cleanup(away.Close)
	for name, c := range map[string]struct {
		args      []string
		url, key  string
		code      int
		complaint string
	}{
		"an argument":   {[]string{"--stdio"}, b.url, readonly, 2, "takes no arguments"},
		"no address":    {nil, "", readonly, 2, "ASSISTANT_URL"},
		"a wrong key":   {nil, b.url, "ki-op-wrong", 1, "refuses the key"},
		"nobody there":  {nil, "http://127.0.0.1:1", readonly, 1, "does not answer"},
		"a redirection": {nil, away.URL, readonly, 1, "does not speak"},
		"another thing": {nil, b.url + "/docs", readonly, 1, "does not speak"},
	} {
		said.Reset()
		if code := mcpbridge.Run(c.args, environment(c.url, c.key), strings.NewReader(""), io.Discard, &said); code != c.code || !strings.Contains(said.String(), c.complaint) {
			t.Errorf("%s: exit code %d, %q; want %d, %q", name, code, said.String(), c.code, c.complaint)
		}
	}
}
