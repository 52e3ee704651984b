// Package stack makes the secrets of the containers of compose.yaml, once, and serves a door in front of servers that
// know no credentials or listen only on loopback.
package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mlp-platform/platform/libs/embedded/child"
	"github.com/mlp-platform/platform/libs/service/listener"
	"github.com/mlp-platform/platform/services/standalone/internal/access"
)

// Door lets callers from outside the container to a server that listens on its loopback.
type Door struct {
	Listen string // host:port that callers use
	To     string // host:port on loopback
	// TokenFile holds the secret that every HTTP request must bear; empty: connections are passed on as they are, for
	// a server that checks its callers itself.
	TokenFile string
	Health    string   // path that needs no secret
	Secrets   []string // NAME=FILE: variables from files, for servers that read none themselves
	Server    []string
	StopAfter time.Duration // how long the server may take to end after SIGTERM
}

// Run starts the server and the door, and ends when either does. The server ends with SIGTERM when ctx does.
func (d Door) Run(ctx context.Context, log *slog.Logger) error {
	serve, err := d.handler(log)
	if err != nil {
		return err
	}
	env, err := withSecrets(os.Environ(), d.Secrets)
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", d.Listen)
	if err != nil {
		return fmt.Errorf("open the door: %w", err)
	}
	cmd := exec.Command(d.Server[0], d.Server[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, os.Stdout, os.Stderr
	server, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", d.Server[0], err), l.Close())
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return serve(gctx, listener.New(l, 0)) })
	g.Go(func() error {
		select {
		case <-server.Done():
			return fmt.Errorf("%s ended: %w", d.Server[0], errors.Join(server.Err(), errEnded))
		case <-gctx.Done():
		}
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(gctx), d.StopAfter)
		defer cancel()
		return server.Stop(stopCtx, syscall.SIGTERM)
	})
	err = g.Wait()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

var errEnded = errors.New("nothing is left behind the door")

// withSecrets adds to environ each NAME with the content of the file of NAME=FILE.
func withSecrets(environ, secrets []string) ([]string, error) {
	for _, s := range secrets {
		name, file, _ := strings.Cut(s, "=")
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the server's secret %s: %w", name, err)
		}
		environ = append(environ, name+"="+strings.TrimSpace(string(text)))
	}
	return environ, nil
}

// handler returns the function that serves the listener until its context ends.
func (d Door) handler(log *slog.Logger) (func(context.Context, net.Listener) error, error) {
	if d.TokenFile == "" {
		return d.forward, nil
	}
	token, err := os.ReadFile(d.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("read the door's secret: %w", err)
	}
	token = bytes.TrimSpace(token)
	if len(token) == 0 {
		return nil, fmt.Errorf("%s is empty; a door without a secret admits no requests", d.TokenFile)
	}
	guarded := access.Require(string(token), d.Health, d.proxy(log))
	return func(ctx context.Context, l net.Listener) error { return serveHTTP(ctx, l, guarded, log) }, nil
}

// proxy passes requests on as those of a local client: the server sees its own address as the host, which is the one
// that it expects, and not the door's secret.
func (d Door) proxy(log *slog.Logger) http.Handler {
	target := &url.URL{Scheme: "http", Host: d.To}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = d.To
			r.Out.Header.Del("Authorization")
			// The server behind knows only its own origin; the guard has checked the caller's.
			r.Out.Header.Del("Origin")
		},
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			log.DebugContext(r.Context(), "the server behind the door did not answer", slog.Any("err", err))
			w.Header().Set("Retry-After", "2")
			http.Error(w, "the server behind this address does not answer yet", http.StatusServiceUnavailable)
		},
	}
}

func serveHTTP(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	srv := listener.Server(h, log, slog.LevelDebug)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve the door: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		<-gctx.Done()
		stop, cancel := context.WithTimeout(context.WithoutCancel(gctx), 5*time.Second)
		defer cancel()
		if err := srv.Shutdown(stop); err != nil {
			return srv.Close()
		}
		return nil
	})
	return g.Wait()
}

// forward passes connections on to the server, which checks its callers itself.
func (d Door) forward(ctx context.Context, l net.Listener) error {
	return Forward(ctx, l, func(ctx context.Context, _ net.Conn) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "tcp", d.To)
	})
}

// Forward passes connections on, both ways, until ctx ends. dial connects to the server for a caller.
func Forward(ctx context.Context, l net.Listener, dial func(ctx context.Context, caller net.Conn) (net.Conn, error)) error {
	g, gctx := errgroup.WithContext(ctx)
	stop := context.AfterFunc(gctx, func() { _ = l.Close() })
	defer stop()
	g.Go(func() error {
		for {
			conn, err := l.Accept()
			switch {
			case gctx.Err() != nil:
				return nil
			case err != nil:
				return fmt.Errorf("serve %s: %w", l.Addr(), err)
			}
			g.Go(func() error {
				defer conn.Close() //nolint:errcheck // the peer notices
				if server, err := dial(gctx, conn); err == nil {
					join(gctx, conn, server)
				}
				return nil
			})
		}
	})
	return g.Wait()
}

// join copies between a caller and the server until both have ended, or ctx has.
func join(ctx context.Context, caller, server net.Conn) {
	defer server.Close() //nolint:errcheck // as above
	stop := context.AfterFunc(ctx, func() { _ = caller.Close(); _ = server.Close() })
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(server, caller) // a broken connection ends both
		closeWrite(server)
	}()
	_, _ = io.Copy(caller, server)
	closeWrite(caller)
	_ = caller.SetReadDeadline(time.Now().Add(5 * time.Second)) // a caller that never closes
	<-done
}

func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// ParseDoor reads the arguments of the verb: options, then -- and the server's command line.
func ParseDoor(args []string) (Door, error) {
	d := Door{Health: "/health", StopAfter: 30 * time.Second}
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			d.Server = args[i+1:]
			break
		}
		name, value, ok := strings.Cut(args[i], "=")
		if !ok {
			return Door{}, fmt.Errorf("%q is not an option of the form --name=value", args[i])
		}
		switch name {
		case "--listen":
			d.Listen = value
		case "--to":
			d.To = value
		case "--token-file":
			d.TokenFile = value
		case "--secret":
			d.Secrets = append(d.Secrets, value)
		case "--health":
			d.Health = value
		default:
			return Door{}, fmt.Errorf("unknown option %s; known: --listen, --to, --token-file, --secret, --health", name)
		}
	}
	if d.Listen == "" || d.To == "" || len(d.Server) == 0 {
		return Door{}, errors.New("a door needs --listen=HOST:PORT, --to=HOST:PORT and -- COMMAND")
	}
	return d, nil
}
