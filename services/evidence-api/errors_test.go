package evidenceapi_test

import (
	"context"
	"flag"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/loopback/httpd"
	evidenceapi "github.com/mlp-platform/platform/services/evidence-api"
	"github.com/mlp-platform/platform/services/evidence-api/internal/admission"
	"github.com/mlp-platform/platform/services/evidence-api/internal/app"
	"github.com/mlp-platform/platform/services/evidence-api/internal/catalogue"
	"github.com/mlp-platform/platform/services/evidence-api/internal/evidenceapitest"
)

var update = flag.Bool("update", false, "rewrite golden files and the generated part of docs/evidence-api.md")

// viaGet provokes an error by a GET with fields.
func viaGet(target string, fields ...string) func(*testing.T) (*evidenceapitest.Tower, evidenceapitest.Request) {
	return func(t *testing.T) (*evidenceapitest.Tower, evidenceapitest.Request) {
		return evidenceapitest.Start(t), evidenceapitest.Request{Target: target, Fields: fields}
	}
}

// viaBody provokes an error by a body for inspection.
func viaBody(body string, fields ...string) func(*testing.T) (*evidenceapitest.Tower, evidenceapitest.Request) {
	return func(t *testing.T) (*evidenceapitest.Tower, evidenceapitest.Request) {
		tw := evidenceapitest.Start(t, evidenceapitest.NoStore, func(c *evidenceapi.Config) { c.RequestTimeout = 500 * time.Millisecond })
		return tw, evidenceapitest.Request{Method: "POST", Target: inspect, Fields: fields, Body: []byte(body)}
	}
}

// viaStoreChange provokes an error by a statement that changes the store.
func viaStoreChange(target string, statements ...string) func(*testing.T) (*evidenceapitest.Tower, evidenceapitest.Request) {
	return func(t *testing.T) (*evidenceapitest.Tower, evidenceapitest.Request) {
		tw := evidenceapitest.Start(t)
		editStore(t, tw.Store, statements...)
		return tw, evidenceapitest.Request{Target: target}
	}
}

// provoke has a way to every error of the catalogue.
var provoke = map[catalogue.Code]func(*testing.T) (*evidenceapitest.Tower, evidenceapitest.Request){
	catalogue.InvalidHost: func(t *testing.T) (*evidenceapitest.Tower, evidenceapitest.Request) {
		return evidenceapitest.Start(t), evidenceapitest.Request{Target: "/", NoHost: true, Fields: []string{"Host: evil.example"}}
	},
	catalogue.InvalidSessionToken: func(t *testing.T) (*evidenceapitest.Tower, evidenceapitest.Request) {
		return evidenceapitest.Start(t), evidenceapitest.Request{Target: "/api/v1/status", NoToken: true}
	},
	catalogue.UnsupportedAPIVersion: viaGet("/api/v2/status"),
	catalogue.NotFound:              viaGet("/api/v1/nope"),
	catalogue.MethodNotAllowed: func(t *testing.T) (*evidenceapitest.Tower, evidenceapitest.Request) {
		return evidenceapitest.Start(t), evidenceapitest.Request{Method: "POST", Target: "/api/v1/runs"}
	},
	catalogue.PreflightNotSupported: func(t *testing.T) (*evidenceapitest.Tower, evidenceapitest.Request) {
		return evidenceapitest.Start(t), evidenceapitest.Request{Method: "OPTIONS", Target: inspect, NoToken: true}
	},
	catalogue.UnexpectedQueryParameters:   viaGet("/api/v1/events?foo=1"),
	catalogue.NotAcceptable:               viaGet(stream, "Accept: text/html"),
	catalogue.UnsupportedTransferEncoding: viaBody("0\r\n\r\n", asJSON, "Transfer-Encoding: chunked"),
	catalogue.UnsupportedMediaType:        viaBody("{}", "Content-Type: text/plain", "Content-Length: 2"),
	catalogue.LengthRequired:              viaBody("", asJSON),
	catalogue.InvalidContentLength:        viaBody("{}", asJSON, "Content-Length: +2"),
	catalogue.PayloadTooLarge:             viaBody("", asJSON, "Content-Length: 2097153"),
	catalogue.RequestTimeout:              viaBody("{", asJSON, "Content-Length: 2"),
	catalogue.InvalidUTF8:                 viaBody("\xff", asJSON, "Content-Length: 1"),
	catalogue.InvalidRunEvidence:          viaBody(`{"a":1}`, asJSON, "Content-Length: 7"),
	catalogue.StoreNotConfigured: func(t *testing.T) (*evidenceapitest.Tower, evidenceapitest.Request) {
		return evidenceapitest.Start(t, evidenceapitest.NoStore), evidenceapitest.Request{Target: "/api/v1/runs"}
	},
	catalogue.InvalidLimit:            viaGet("/api/v1/runs?limit=201"),
	catalogue.InvalidCursor:           viaGet("/api/v1/runs?cursor=x"),
	catalogue.InvalidState:            viaGet("/api/v1/runs?state=nope"),
	catalogue.InvalidFilter:           viaGet("/api/v1/runs?project_id="),
	catalogue.InvalidEventType:        viaGet("/api/v1/events?event_type=run.x"),
	catalogue.InvalidLastEventID:      viaGet(stream, "Last-Event-ID: 999"),
	catalogue.InvalidTreeSize:         viaGet("/api/v1/events/checkpoint?since=999"),
	catalogue.RunNotFound:             viaGet("/api/v1/runs/none"),
	catalogue.WorkUnitNotFound:        viaGet("/api/v1/work-units/none"),
	catalogue.ProjectNotFound:         viaGet("/api/v1/projects/none"),
	catalogue.ConnectionNotFound:      viaGet("/api/v1/connections/none"),
	catalogue.EventNotFound:           viaGet("/api/v1/events/evt-000000000999/proof"),
	catalogue.EvidenceNotAvailable:    viaGet("/api/v1/runs/run/demo:0001/evidence"),
	catalogue.EvidenceIntegrityError:  viaStoreChange(run2+"/evidence", `UPDATE runs SET metadata_json = replace(metadata_json, 'not verified', 'now verified') WHERE run_id = 'run/demo:0002'`),
	catalogue.StoreError:              viaStoreChange("/api/v1/runs", "PRAGMA user_version = 4"),
	catalogue.PersistedStateCorrupt:   viaStoreChange("/api/v1/runs", `UPDATE runs SET state = 'decided' WHERE run_id = 'run/demo:0001'`),
	catalogue.NotProductSpineRun:      viaGet("/api/v1/runs/foreign/batch-0001"),
	catalogue.ConnectionRecordInvalid: viaStoreChange("/api/v1/connections", `UPDATE connections SET metadata_json = '{}' WHERE connection_id = 'demo-scm'`),
	catalogue.Overloaded: func(t *testing.T) (*evidenceapitest.Tower, evidenceapitest.Request) {
		tw := evidenceapitest.Start(t, func(c *evidenceapi.Config) { c.MaxConcurrentRequests = 1 })
		holdSlot(t, tw)
		return tw, evidenceapitest.Request{Target: "/api/v1/status"}
	},
	catalogue.TooManyStreams: func(t *testing.T) (*evidenceapitest.Tower, evidenceapitest.Request) {
		tw := evidenceapitest.Start(t, func(c *evidenceapi.Config) { c.MaxStreams = 1 })
		openStream(t, tw, stream)
		return tw, evidenceapitest.Request{Target: stream}
	},
	catalogue.ShuttingDown: func(t *testing.T) (*evidenceapitest.Tower, evidenceapitest.Request) {
		tw := evidenceapitest.Start(t)
		c := openStream(t, tw, stream)
		holdSlot(t, tw)
		tw.Drain()
		c.Rest() // its marker comes once the server refuses
		return tw, evidenceapitest.Request{Target: "/readyz"}
	},
	catalogue.InternalError: func(t *testing.T) (*evidenceapitest.Tower, evidenceapitest.Request) {
		return brokenTower(t), evidenceapitest.Request{Target: "/?launch=x"}
	},
}

// brokenTower runs the application without a part that it needs.
func brokenTower(t *testing.T) *evidenceapitest.Tower {
	t.Helper()
	a, err := app.New(app.Options{Token: evidenceapitest.Token, Version: "1.2.3-test", Admission: admission.New(1, 1), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &httpd.Server{Handler: a.Serve, RequestTimeout: evidenceapitest.Patience, MaxConns: 8}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return evidenceapitest.Attach(t, l.Addr().String())
}

// TestEveryErrorToTheByte provokes every code of the catalogue over a socket and holds
// status line, fields and envelope against a golden file.
func TestEveryErrorToTheByte(t *testing.T) {
	t.Parallel()
	for _, e := range catalogue.Entries {
		t.Run(string(e.Code), func(t *testing.T) {
			t.Parallel()
			by := provoke[e.Code]
			if by == nil {
				t.Fatal("nothing provokes it")
			}
			tw, request := by(t)
			request.Fields = append(request.Fields, "X-Request-ID: golden")
			r := tw.Do(request).Want(e.Status, string(e.Code))
			if got := r.At("error", "retryable") == "true"; got != e.Retryable {
				t.Errorf("retryable %v; want %v", got, e.Retryable)
			}
			got := r.StatusLine + "\n" + formatHeader(r) + "\n" + string(r.Body) + "\n"
			golden := filepath.Join("testdata", "errors", string(e.Code)+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestNoGoldenFileIsLeftOver(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/errors/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, ok := catalogue.Lookup(catalogue.Code(strings.TrimSuffix(filepath.Base(f), ".txt"))); !ok {
			t.Errorf("%s belongs to no code; want ok", f)
		}
	}
}

// TestFaultsAreLoggedOnce: the cause of a server's fault is logged under the request's id, and a caller's mistake is
// not.
func TestFaultsAreLoggedOnce(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t)
	editStore(t, tw.Store, "PRAGMA user_version = 9")
	tw.Get("/api/v1/runs", "X-Request-ID: the-one").Want(500, "store_error")
	tw.Get("/api/v1/nope", "X-Request-ID: the-other").Want(404, "not_found")
	log := tw.Log.String()
	if strings.Count(log, "the-one") != 1 || strings.Contains(log, "the-other") || strings.Contains(log, evidenceapitest.Token) {
		t.Error(log, `want strings.Count(log, "the-one") == 1 && !strings.Contains(log, "the-other") && !strings.Contains(log, evidenceapitest.Token)`)
	}
}

// TestLockedStoreHoldsNobodyLong: all requests while a writer holds the store are answered shortly after its lock
// wait.
func TestLockedStoreHoldsNobodyLong(t *testing.T) {
	t.Parallel()
	tw := evidenceapitest.Start(t, answersWithin(t, 3*time.Second))
	lockStore(t, tw.Store)
	done := make(chan struct{}, 12)
	for range cap(done) {
		go func() {
			defer func() { done <- struct{}{} }()
			tw.Get("/api/v1/runs").Want(500, "store_error")
		}()
	}
	for range cap(done) {
		<-done
	}
}
