// Package mcpbridge offers the tools of a running assistant over standard input and output, for programs that start
// their servers of the Model Context Protocol as commands.
package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/service/startup"
)

// connectLimit limits the first exchange with the assistant; callLimit one call of a tool, above the server's own.
const (
	connectLimit = 10 * time.Second
	callLimit    = 90 * time.Second
	maxAnswer    = 32 << 20 // bytes
)

// Run carries out "assistant mcp" and returns an exit code: 0 at the end of stdin, 1 failed, 2 wrong arguments. lookup
// reads the environment: ASSISTANT_URL and ASSISTANT_KEY.
func Run(args []string, lookup func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		fmt.Fprintf(stderr, "assistant mcp: it takes no arguments, not %q; set the server with ASSISTANT_URL and ASSISTANT_KEY\n", args[0])
		return startup.ExitUsage
	}
	address, err := url.Parse(lookup("ASSISTANT_URL"))
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		fmt.Fprintln(stderr, "assistant mcp: ASSISTANT_URL must be the http or https address of a running assistant, such as http://127.0.0.1:18004")
		return startup.ExitUsage
	}
	if err := bridge(context.Background(), address.JoinPath("mcp").String(), lookup("ASSISTANT_KEY"), stdin, stdout); err != nil {
		fmt.Fprintf(stderr, "assistant mcp: %v\n", err)
		return startup.ExitFailed
	}
	return startup.ExitOK
}

// bridge serves until in ends. The key's role decides which tools there are.
func bridge(ctx context.Context, endpoint, key string, in io.Reader, out io.Writer) error {
	transport := &keyTransport{key: key}
	connectCtx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "assistant-mcp", Version: service.Version}, nil)
	remote, err := client.Connect(connectCtx, &mcp.StreamableClientTransport{
		Endpoint: endpoint, HTTPClient: &http.Client{Transport: transport, Timeout: callLimit, CheckRedirect: refuseRedirects}, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		return fmt.Errorf("%s %s", endpoint, transport.reason(err))
	}
	defer remote.Close()
	local := mcp.NewServer(&mcp.Implementation{Name: "cluster-assistant", Title: "Cluster assistant", Version: service.Version}, &mcp.ServerOptions{
		Instructions: remote.InitializeResult().Instructions, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	for t, err := range remote.Tools(connectCtx, nil) {
		if err != nil {
			return fmt.Errorf("the tools of %s cannot be listed: %w", endpoint, err)
		}
		if !hasObjectSchema(t) {
			return fmt.Errorf("the tool %q of %s has no schema of an object for its arguments", t.Name, endpoint)
		}
		local.AddTool(t, func(ctx context.Context, q *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return remote.CallTool(ctx, &mcp.CallToolParams{Name: t.Name, Arguments: q.Params.Arguments})
		})
	}
	err = local.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(in), Writer: keepOpen{out}})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// hasObjectSchema reports whether a tool can be offered: the library panics at others.
func hasObjectSchema(t *mcp.Tool) bool {
	raw, err := json.Marshal(t.InputSchema)
	var s struct{ Type string }
	return err == nil && json.Unmarshal(raw, &s) == nil && s.Type == "object"
}

// refuseRedirects keeps the key from other hosts: the assistant never redirects.
func refuseRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// keepOpen does not close what it writes to.
type keepOpen struct{ io.Writer }

// Close is part of io.Closer.
func (keepOpen) Close() error { return nil }

// keyTransport adds the key to each request and remembers whether it was refused.
type keyTransport struct {
	key     string
	refused atomic.Bool
}

// RoundTrip is part of http.RoundTripper.
func (k *keyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if k.key != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+k.key)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && answer.StatusCode == http.StatusUnauthorized {
		k.refused.Store(true)
	}
	if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, maxAnswer), answer.Body}
	}
	return answer, err
}

// reason returns why the first exchange failed.
func (k *keyTransport) reason(err error) string {
	if k.refused.Load() {
		return "refuses the key; ASSISTANT_KEY must be one of its admin, operator or readonly keys"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("does not answer within %s", connectLimit)
	}
	var failed *url.Error
	if errors.As(err, &failed) {
		return "does not answer: " + strings.TrimSpace(failed.Err.Error())
	}
	return "does not speak the Model Context Protocol: " + err.Error()
}
