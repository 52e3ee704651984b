package mcpclient

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/store"
)

// Deps holds what the client depends on.
type Deps struct {
	Store *store.Store
	Now   func() time.Time
	Log   *slog.Logger
	// Pause is the initial delay before reconnecting to a lost server; 0 means 1 s.
	Pause time.Duration `part:"optional"`
}

// Client manages all other servers. Without any it changes nothing.
type Client struct {
	Deps
	servers []*server
}

// New returns a client that Run connects.
func New(servers []Server, d Deps) (*Client, error) {
	if err := service.RequireParts("mcp client", d); err != nil {
		return nil, err
	}
	if d.Pause <= 0 {
		d.Pause = firstPause
	}
	c := &Client{Deps: d}
	for _, s := range servers {
		c.servers = append(c.servers, newServer(s, d.Log, d.Pause))
	}
	return c, nil
}

// Run keeps the servers connected until ctx ends, and stops those that it started.
func (c *Client) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, s := range c.servers {
		all.Go(func() { s.run(ctx) })
	}
	all.Wait()
	return nil
}

// Offered returns the tools of the servers that are connected: by server as configured, then by name.
func (c *Client) Offered() []Tool {
	var tools []Tool
	for _, s := range c.servers {
		for _, t := range s.list() {
			tools = append(tools, t.Tool)
		}
	}
	return tools
}

// Configured reports whether other servers are configured.
func (c *Client) Configured() bool { return len(c.servers) > 0 }

// Check reports the servers that are unavailable, as a warning: answers do not depend on them.
func (c *Client) Check() service.Check {
	var away []string
	for _, s := range c.servers {
		if s.state() != "" {
			away = append(away, s.Name)
		}
	}
	if len(away) == 0 {
		return service.Check{Status: service.OK}
	}
	return service.Check{Status: service.Warn, Detail: "away: " + strings.Join(away, ", ")}
}

// server returns the server with a name.
func (c *Client) server(name string) (*server, error) {
	for _, s := range c.servers {
		if s.Name == name {
			return s, nil
		}
	}
	return nil, operation.Refuse(operation.NotFound, "server", "There is no server %s.", operation.Quote(name))
}
