package natsd

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func TestStreamsSurviveARestart(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: t.TempDir(), Token: "let-me-in", MaxBytes: 1 << 20}
	for run := range 3 {
		s, err := Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Port = s.srv.Addr().(*net.TCPAddr).Port
		nc, err := nats.Connect(s.URL())
		if err != nil {
			t.Fatal(err)
		}
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		st, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, MaxBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if n := st.CachedInfo().State.Msgs; n != uint64(run) {
			t.Errorf("%d messages in run %d; want n == uint64(run)", n, run)
		}
		if _, err := js.Publish(t.Context(), "s", []byte("x")); err != nil {
			t.Fatal(err)
		}
		nc.Close()
		s.Stop()
		s.Stop()
	}
}

func TestOnlyWithTheTokenAndOnlyOnLoopback(t *testing.T) {
	t.Parallel()
	s, err := Start(Config{Dir: t.TempDir(), Token: "let-me-in"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	if _, err := nats.Connect(strings.Replace(s.URL(), "let-me-in@", "", 1)); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("without the token: %v; want errors.Is(err, nats.ErrAuthorization)", err)
	}
	if a := s.srv.Addr().(*net.TCPAddr); !a.IP.IsLoopback() {
		t.Errorf("listens on %v; want a.IP.IsLoopback()", a)
	}
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if nc.MaxPayload() != MaxMessage {
		t.Errorf("messages of %d bytes; want %v", nc.MaxPayload(), MaxMessage)
	}
}

// A user neither reads nor writes what is not named.
func TestUsersAreKeptToTheirSubjects(t *testing.T) {
	t.Parallel()
	s, err := Start(Config{Dir: t.TempDir(), Token: "let-me-in", Users: []User{{
		Name: "bus", Password: "of-the-bus", Publish: []string{"bus.infer.*"}, Subscribe: []string{"_INBOX.>", "bus.results"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	address := "nats://bus:of-the-bus@" + s.srv.Addr().String()
	if _, err := nats.Connect(strings.Replace(address, "of-the-bus", "guess", 1)); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("with another password: %v, want an authorization fault", err)
	}
	platform, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer platform.Close()
	if _, err := platform.Subscribe("bus.infer.*", func(m *nats.Msg) { _ = m.Respond([]byte("answer")) }); err != nil {
		t.Fatal(err)
	}
	if err := platform.Flush(); err != nil {
		t.Fatal(err)
	}
	refused := make(chan error, 8)
	producer, err := nats.Connect(address, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	if m, err := producer.Request("bus.infer.x", []byte("question"), 20*time.Second); err != nil || string(m.Data) != "answer" {
		t.Fatalf("a request on the bus: %v, %v; want the answer", m, err)
	}
	wantRefused := func(what string) {
		t.Helper()
		select {
		case err := <-refused:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s: %v, want a permission fault", what, err)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%s is allowed", what)
		}
	}
	for _, subject := range []string{"platform.default.approval.requested", "$JS.API.STREAM.NAMES", "bus.results", "bus.infer.x.y"} {
		if err := producer.Publish(subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		wantRefused("publishing " + subject)
	}
	for _, subject := range []string{"platform.>", "bus.infer.*", "$SYS.>"} {
		if _, err := producer.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		wantRefused("reading " + subject)
	}
}

func TestFaultsAreSentences(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := Start(Config{Dir: t.TempDir(), Port: l.Addr().(*net.TCPAddr).Port}); err == nil || !strings.Contains(err.Error(), "not free") {
		t.Errorf(`a taken port: %v; want an error && strings.Contains(err.Error(), "not free")`, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	_, err = Start(Config{Dir: filepath.Join(file, "nats"), Log: slog.New(slog.NewJSONHandler(&log, nil))})
	if err == nil || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "\n") {
		t.Errorf("a directory that cannot be made: %v; want an error && strings.Contains(err.Error(), file) && !strings.Contains(err.Error(), \"\\n\")", err)
	}
	if !strings.Contains(log.String(), `"level":"ERROR"`) {
		t.Errorf("the log has no error: %s; want strings.Contains(log.String(), `\"level\":\"ERROR\"`)", &log)
	}
}

func TestTheLogIsQuietWhileAllIsWell(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s, err := Start(Config{Dir: t.TempDir(), Log: slog.New(slog.NewJSONHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if log.Len() != 0 {
		t.Errorf("%s; want log.Len() == 0", &log)
	}
}
