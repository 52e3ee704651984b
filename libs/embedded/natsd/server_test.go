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
	cfg := Config{Dir: t.TempDir(), Token: "let-me-in", MaxBytes: 1 << 20, Users: []User{{Name: "u", Password: "of-the-user"}}}
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

// Users neither read nor write other subjects than those named, nor see anything of the holders of the token.
func TestUsersAreKeptToTheirSubjects(t *testing.T) {
	t.Parallel()
	s, err := Start(Config{Dir: t.TempDir(), Token: "let-me-in", Users: []User{
		{Name: "bus", Password: "of-the-bus", Publish: []string{"bus.infer.*"}, Subscribe: []string{"_INBOX.>", "bus.results"}},
		{Name: "bridge", Password: "of-the-bridge", Publish: []string{"_INBOX.>"}, Subscribe: []string{"bus.infer.*"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	if _, err := nats.Connect("nats://bus:guess@" + s.srv.Addr().String()); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("with another password: %v, want an authorization fault", err)
	}
	connect := func(address string) (nc *nats.Conn, refused chan error) {
		t.Helper()
		refused = make(chan error, 8)
		nc, err := nats.Connect(address, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc, refused
	}
	platform, _ := connect(s.URL())
	bridge, _ := connect("nats://bridge:of-the-bridge@" + s.srv.Addr().String())
	producer, refused := connect("nats://bus:of-the-bus@" + s.srv.Addr().String())
	if _, err := bridge.Subscribe("bus.infer.*", func(m *nats.Msg) { _ = m.Respond([]byte("answer")) }); err != nil {
		t.Fatal(err)
	}
	if err := bridge.Flush(); err != nil {
		t.Fatal(err)
	}
	all, err := producer.SubscribeSync("_INBOX.>")
	if err != nil {
		t.Fatal(err)
	}
	if m, err := producer.Request("bus.infer.x", []byte("question"), 20*time.Second); err != nil || string(m.Data) != "answer" {
		t.Fatalf("a request on the bus: %v, %v; want the answer", m, err)
	}
	if m, err := all.NextMsg(20 * time.Second); err != nil || string(m.Data) != "answer" {
		t.Fatalf("the producer's own inbox: %v, %v; want the answer", m, err)
	}
	// The platform's replies come to inboxes too; the producer cannot read them, nor write there.
	js, err := jetstream.New(platform)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	inbox, err := platform.SubscribeSync("_INBOX.of-the-platform")
	if err != nil {
		t.Fatal(err)
	}
	if err := platform.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := producer.PublishRequest("bus.infer.x", "_INBOX.of-the-platform", []byte("forged")); err != nil {
		t.Fatal(err)
	}
	if _, err := producer.Request("bus.infer.x", nil, 20*time.Second); err != nil { // the bridge has answered both already
		t.Fatal(err)
	}
	if n, _, _ := inbox.Pending(); n != 0 {
		t.Errorf("%d messages of the bus reached the platform's inbox, want none", n)
	}
	if n, _, _ := all.Pending(); n > 2 {
		t.Errorf("%d messages reached the producer, want its own two", n)
	}
	for _, subject := range []string{"platform.default.approval.requested", "$JS.API.STREAM.NAMES", "bus.results", "bus.infer.x.y"} {
		if err := producer.Publish(subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, refused, "publishing "+subject)
	}
	for _, subject := range []string{"platform.>", "bus.infer.*", "$SYS.>"} {
		if _, err := producer.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, refused, "reading "+subject)
	}
}

func wantRefused(t *testing.T, refused <-chan error, what string) {
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

// TestPortThatIsHeldForAMoment: a child that is being started holds copies of closed listeners until it runs its own program.
func TestPortThatIsHeldForAMoment(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(200*time.Millisecond, func() { l.Close() })
	s, err := Start(Config{Dir: t.TempDir(), Port: l.Addr().(*net.TCPAddr).Port})
	if err != nil {
		t.Fatalf("a port that is free after 200 ms: got %v, want a server", err)
	}
	s.Stop()
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
