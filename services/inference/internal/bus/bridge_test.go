package bus

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
)

// A bridge is ready once requests reach it, and not as soon as it is connected.
func TestReadyMeansSubscribed(t *testing.T) {
	t.Parallel()
	broker := testenv.NATS(t)
	connect := func() *nats.Conn {
		conn, err := nats.Connect(broker)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		return conn
	}
	serving, err := inference.NewClient("http://127.0.0.1:1", inference.WithHTTPClient(http.DefaultClient))
	if err != nil {
		t.Fatal(err)
	}
	control, err := controlplane.NewClient("http://127.0.0.1:1", controlplane.WithHTTPClient(http.DefaultClient))
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(Config{
		Conn: connect(), Serving: serving, ControlPlane: control, Mode: Both, Timeout: time.Second, Drain: 4 * time.Second, MaxInflight: 1,
		Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.CheckBus(); got.Status != service.Fail {
		t.Errorf("connected, but not subscribed: %+v; want Fail", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	testenv.Eventually(t, 20*time.Second, func() error {
		if got := b.CheckBus(); got.Status != service.OK {
			return errors.New(got.Detail)
		}
		return nil
	})
	if _, err := connect().Request(SubjectRetrain, []byte("{}"), 10*time.Second); err != nil {
		t.Errorf("asked once it is ready: %v; want an answer", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
