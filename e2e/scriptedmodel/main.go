// Command scriptedmodel serves a scripted language model on a loopback port. The first line on standard output is its
// base URL. Every request body is appended to the log, one per line, so that a test can prove what never reached a
// model.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mlp-platform/platform/libs/scriptedmodel"
)

func main() {
	script := flag.String("script", "", "file with the script, JSON")
	log := flag.String("log", "", "file that request bodies are appended to; empty: none")
	addr := flag.String("addr", "127.0.0.1:0", "address to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serveScript(ctx, *script, *log, *addr, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "scriptedmodel:", err)
		os.Exit(1)
	}
}

func serveScript(ctx context.Context, script, log, addr string, out io.Writer) error {
	raw, err := os.ReadFile(script)
	if err != nil {
		return err
	}
	s, err := scriptedmodel.Parse(raw)
	if err != nil {
		return err
	}
	var seen io.Writer
	if log != "" {
		f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		seen = f
	}
	model, err := scriptedmodel.New(s, seen)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: model, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	stopped := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stopped()
	if _, err := fmt.Fprintf(out, "http://%s/v1\n", l.Addr()); err != nil {
		return err
	}
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
