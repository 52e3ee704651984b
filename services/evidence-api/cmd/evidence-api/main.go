// Command evidence-api serves the evidence read API. Configuration comes from the
// environment, see docs/evidence-api.md. The command `svc control-tower` is the same
// server for people.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mlp-platform/platform/libs/cli/printable"
	"github.com/mlp-platform/platform/libs/evidence/store"
	evidenceapi "github.com/mlp-platform/platform/services/evidence-api"
)

// Exit codes. A failed start is 2, unlike in the other services: the contract of
// `svc control-tower` has that code, and this is the same server.
const (
	exitOK        = 0
	exitUnhealthy = 1
	exitFailed    = 2 // wrong arguments, or the server could not start or failed
)

const usage = `usage: evidence-api [serve | migrate | health [URL] | version | help]

  serve         serve until SIGTERM; the default
  migrate       create the store or bring it up to date, then exit
  health [URL]  exit 0 if the service is ready, else 1; default http://127.0.0.1:PORT/readyz
  version       print the version

Configuration comes from the environment; docs/evidence-api.md lists every variable.
Exit codes: 0 done, 1 not ready, 2 wrong arguments or a failed start.
`

// healthTimeout limits a health check: a prober has its own, usually longer.
const healthTimeout = 3 * time.Second

func main() { os.Exit(runCommand(os.Args[1:], os.Environ(), os.Stdout, os.Stderr)) }

// runCommand runs one verb and returns the exit code. The verbs are those of
// libs/service/startup, which this binary does not import: Postgres, NATS and echo would
// come with it.
func runCommand(args, environ []string, stdout, stderr io.Writer) int {
	stdout, stderr = printable.NewWriter(stdout), printable.NewWriter(stderr)
	verb := "serve"
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	switch {
	case verb == "health" && len(args) <= 1:
		return reportHealth(args, environ, stdout, stderr)
	case len(args) > 0:
	case verb == "serve":
		return serve(environ, stderr)
	case verb == "migrate":
		return migrate(environ, stderr)
	case verb == "version" || verb == "-v" || verb == "--version":
		fmt.Fprintf(stdout, "evidence-api %s\n", evidenceapi.Version)
		return exitOK
	case verb == "help" || verb == "-h" || verb == "--help":
		fmt.Fprint(stdout, usage)
		return exitOK
	}
	fmt.Fprintf(stderr, "evidence-api: unknown arguments %q; usage: evidence-api [serve | migrate | health [URL] | version | help]\n",
		strings.Join(append([]string{verb}, args...), " "))
	return exitFailed
}

func serve(environ []string, stderr io.Writer) int {
	cfg, err := evidenceapi.LoadConfig(environ)
	if err != nil {
		fmt.Fprintf(stderr, "error: %v\n", err)
		return exitFailed
	}
	log := slog.New(slog.NewJSONHandler(stderr, nil))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	// The first signal drains, the second ends the drain.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	abort := make(chan struct{})
	cfg.Abort = abort
	go func() {
		<-signals
		stop()
		<-signals
		close(abort)
	}()
	if cfg.StorePath != "" {
		if err := store.Create(ctx, cfg.StorePath, store.WriterOptions{}); err != nil {
			log.Warn("the store could not be prepared; reads of it will fail", slog.Any("err", err))
		}
	}
	if err := evidenceapi.Run(ctx, cfg, log); err != nil {
		fmt.Fprintf(stderr, "error: %v\n", err)
		return exitFailed
	}
	return exitOK
}

// migrate does what serve does to the store before it serves, and reports a failure.
func migrate(environ []string, stderr io.Writer) int {
	cfg, err := evidenceapi.LoadConfig(environ)
	switch {
	case err != nil:
	case cfg.StorePath == "":
		err = errors.New("SVC_PRODUCT_SPINE_STORE is not set; it must name the store's file")
	default:
		err = store.Create(context.Background(), cfg.StorePath, store.WriterOptions{})
	}
	if err != nil {
		fmt.Fprintf(stderr, "error: %v\n", err)
		return exitFailed
	}
	return exitOK
}

// reportHealth asks the server at the URL, or at the port of the environment, whether it
// is ready. A URL without a path means /readyz.
func reportHealth(args, environ []string, stdout, stderr io.Writer) int {
	port := strconv.Itoa(evidenceapi.DefaultPort)
	for _, e := range environ {
		if value, ok := strings.CutPrefix(e, "SVC_CONTROL_TOWER_PORT="); ok && value != "" {
			port = value
		}
	}
	target := "http://127.0.0.1:" + port
	if len(args) == 1 {
		target = args[0]
	}
	u, err := url.Parse(target)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		fmt.Fprintf(stderr, "evidence-api: %q is not an http or https URL\n", target)
		return exitFailed
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/readyz"
	}
	client := http.Client{Timeout: healthTimeout}
	resp, err := client.Get(u.String())
	if err != nil {
		fmt.Fprintf(stderr, "evidence-api: health check failed: %v\n", err)
		return exitUnhealthy
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		fmt.Fprintf(stderr, "evidence-api: %s answered %d\n", u.Redacted(), resp.StatusCode)
		return exitUnhealthy
	}
	fmt.Fprintln(stdout, "ok")
	return exitOK
}
