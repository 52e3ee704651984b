package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/service/listener"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// ServeTools serves the tools origin on a listener until ctx ends, then waits for requests in flight.
func (p *Proxy) ServeTools(ctx context.Context, ln net.Listener) error {
	srv := listener.Server(p.Tools(), p.cfg.Log, slog.LevelDebug)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener.New(ln, 0)) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve the tools origin: %w", err)
	case <-ctx.Done():
	}
	p.Drain()
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := srv.Shutdown(patience); err != nil {
		_ = srv.Close()
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the tools origin: %w", err)
	}
	return nil
}

// Tools returns the handler of the whole tools origin: tickets, the tools' paths, and nothing else.
func (p *Proxy) Tools() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := service.WithTrace(r.Context(), r.Header.Get("X-Request-Id"), r.Header.Get("Traceparent"))
		r = r.WithContext(ctx)
		start := time.Now()
		seen := &statusWriter{ResponseWriter: w}
		defer p.finishTools(seen, r, start)
		h := w.Header()
		h.Set("X-Request-Id", service.RequestID(ctx))
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
		if p.tools.url.Scheme == "https" {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		if err := p.routeTools(seen, r); err != nil {
			p.answerError(seen, r, err)
		}
	})
}

func (p *Proxy) routeTools(w http.ResponseWriter, r *http.Request) error {
	if p.life.Err() != nil {
		return problem.Draining.New("The dashboard is shutting down; send the request again.").After(time.Second)
	}
	if !p.hosts[hostOnly(r.Host)] {
		return problem.Misdirected.New(fmt.Sprintf("The tools are not served under the host %q.", r.Host))
	}
	path := r.URL.EscapedPath()
	switch {
	case strings.HasPrefix(path, ticketRoot):
		return p.enter(w, r, strings.TrimPrefix(path, ticketRoot))
	case strings.HasPrefix(path, root):
		return p.serveTool(w, r)
	}
	return p.redirectToTool(w, r)
}

// enter redeems a ticket and sets the cookie that replaces it.
func (p *Proxy) enter(w http.ResponseWriter, r *http.Request, ticket string) error {
	if r.Method != http.MethodGet { // a HEAD, as previews send it, must not spend the ticket
		return problem.MethodNotAllowed.New("A ticket is opened by GET.").WithHeader("Allow", http.MethodGet)
	}
	g, err := p.claimTicket(r.Context(), ticket)
	if err != nil {
		return err
	}
	if err := p.cfg.Touch(r.Context(), g.Who); err != nil {
		return err
	}
	c, err := p.cookie(g)
	if err != nil {
		return err
	}
	http.SetCookie(w, c)
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, prefix(g.Service)+"/", http.StatusSeeOther)
	return nil
}

// serveTool forwards a request that a cookie of this origin vouches for. No other credential counts here.
func (p *Proxy) serveTool(w http.ResponseWriter, r *http.Request) error {
	s, _, err := splitPath(r.URL.EscapedPath())
	if err != nil {
		return err
	}
	if s == upstream.ControlPlane {
		return fault.UnknownService.New("The control plane is not served on the tools origin; use the dashboard.")
	}
	g, err := p.readCookie(r, s)
	if err != nil {
		return err
	}
	listener.Keep(r.Context(), g.Who.Tenant+"/"+g.Who.Subject)
	if err := p.cfg.Touch(r.Context(), g.Who); err != nil {
		return err
	}
	return p.serve(w, r, p.tools, g.Who)
}

// redirectToTool sends a request for the root of this origin to the service whose page made it: scripts refer to their
// files and calls from the root, and are not rewritten. The page's address, in the Referer, identifies the service;
// the redirect grants nothing, as its target requires the cookie.
func (p *Proxy) redirectToTool(w http.ResponseWriter, r *http.Request) error {
	page, ok := strings.CutPrefix(r.Header.Get("Referer"), p.tools.text)
	if ok {
		page, _ = cutPath(page)
		if s, _, err := splitPath(page); err == nil && s != upstream.ControlPlane {
			path := r.URL.EscapedPath()
			if err := checkPath(path); err != nil {
				return err
			}
			w.Header().Add("Vary", "Referer")
			w.Header().Set("Location", withQuery(prefix(s)+path, r.URL.RawQuery))
			w.WriteHeader(http.StatusTemporaryRedirect) // which keeps method and body
			return nil
		}
	}
	return fault.NotFound.New("There is nothing here; open a tool from the dashboard.")
}

// answerError writes a problem, unless the answer has begun.
func (p *Proxy) answerError(w *statusWriter, r *http.Request, err error) {
	e := problem.From(err)
	level := slog.LevelDebug
	if e.Status() >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	p.cfg.Log.LogAttrs(r.Context(), level, "tools origin: request refused", slog.Int("status", e.Status()), slog.String("code", e.Kind.Code),
		slog.String("method", r.Method), slog.Any("err", e))
	if w.status == 0 {
		_ = e.Write(w, r) // the caller may have left
	}
}

// finishTools answers panics and logs the request. The path of a ticket is a secret.
func (p *Proxy) finishTools(w *statusWriter, r *http.Request, start time.Time) {
	if v := recover(); v != nil {
		if v != http.ErrAbortHandler {
			p.cfg.Log.ErrorContext(r.Context(), "tools origin: handler panicked", slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
		}
		defer panic(http.ErrAbortHandler)
	}
	path := r.URL.Path
	if strings.HasPrefix(path, ticketRoot) {
		path = ticketRoot + "…"
	}
	p.cfg.Log.LogAttrs(r.Context(), slog.LevelInfo, "request", slog.String("origin", "tools"), slog.String("method", r.Method), slog.String("path", path),
		slog.Int("status", w.status), slog.Float64("duration_ms", float64(time.Since(start).Microseconds())/1000), slog.String("remote", r.RemoteAddr))
}

// statusWriter remembers the status.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets [http.ResponseController] flush and hijack.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
