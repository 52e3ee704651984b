package assistant_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/libs/apitest"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/assistant"
	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const chatPath = "/v1/chat/completions"

// The keys of the tests.
const (
	admin    = "ki-admin-0123456789abcdef"
	operator = "ki-op-0123456789abcdef"
	other    = "ki-op-fedcba9876543210"
	readonly = "ki-ro-0123456789abcdef"
)

// scaleWeb is a write of medium risk that the sample cluster can carry out.
const scaleWeb = "kubectl scale deployment/web -n shop --replicas=3"

// bench is an assistant with a real Postgres and the sample cluster, as a process would run it.
type bench struct {
	t    testing.TB
	url  string
	db   string
	env  []string
	stop func() // ends it in order
}

// startBench runs an assistant until the test ends.
func startBench(t testing.TB, env ...string) *bench {
	t.Helper()
	b := &bench{t: t, db: testenv.Migrated(t, "assistant-service", func(ctx context.Context, url string) error {
		return assistant.Migrate(ctx, assistant.Config{Base: service.Base{DatabaseURL: service.Secret(url)}})
	})}
	b.env = []string{
		"PLATFORM_DATABASE_URL=" + b.db, "EVENT_PUBLISHER=log", "LOG_LEVEL=warn", "ASSISTANT_RATE_PER_MIN=0", "DRAIN_SECONDS=60", "DRAIN_DELAY=0s", "ASSISTANT_CLUSTER=sample", "ASSISTANT_VERIFY_TIMEOUT=5s",
		"ASSISTANT_ADMIN_KEYS=" + admin, "ASSISTANT_OPERATOR_KEYS=" + operator + "," + other, "ASSISTANT_READONLY_KEYS=" + readonly,
	}
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		b.env = slices.DeleteFunc(b.env, func(have string) bool { return strings.HasPrefix(have, name+"=") })
		b.env = append(b.env, kv)
	}
	b.serve()
	return b
}

// serve runs a process on the bench's database.
func (b *bench) serve() {
	b.t.Helper()
	cfg, err := assistant.LoadConfig(b.env)
	if err != nil {
		b.t.Fatal(err)
	}
	if cfg.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		b.t.Fatal(err)
	}
	b.url = "http://" + cfg.Listener.Addr().String()
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() {
		log = service.NewLogger(b.t.Output(), cfg.LogLevel)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	done := make(chan error, 1)
	go func() { done <- assistant.Run(ctx, cfg, log) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("assistant: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
		transport.CloseIdleConnections()
	})
	b.t.Cleanup(func() { b.stop() })
	testenv.Eventually(b.t, 30*time.Second, func() error {
		resp, err := http.Get(b.url + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			raw, _ := io.ReadAll(resp.Body)
			return fmt.Errorf("%s: %s", resp.Status, raw)
		}
		return nil
	})
}

// onSubtest is the bench for a subtest, whose failures are then its own.
func onSubtest(t testing.TB, b *bench) *bench {
	c := *b
	c.t = t
	return &c
}

// answer is a response whose body was read.
type answer struct {
	*http.Response
	body []byte
}

func (a answer) String() string { return fmt.Sprintf("%d %s", a.StatusCode, a.body) }

// document decodes JSON.
func (a answer) document(t testing.TB) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(a.body, &doc); err != nil {
		t.Fatalf("%v: %s", err, a)
	}
	return doc
}

// transport waits for the server's leave to send large bodies.
var transport = &http.Transport{ExpectContinueTimeout: time.Minute}

// open sends a request and gives the response with its body unread; header are names and values in turn.
func (b *bench) open(method, path, key, body string, header ...string) *http.Response {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	if len(body) > 64<<10 { // it may be refused unread, and a client in the middle of sending it would not see the answer
		req.Header.Set("Expect", "100-continue")
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// call sends a request; its answer must be one that the API's document promises.
func (b *bench) call(method, path, key, body string, header ...string) answer {
	b.t.Helper()
	resp := b.open(method, path, key, body, header...)
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	a := answer{resp, raw}
	if err := document.Conforms(resp.Request, apitest.Answer{Status: a.StatusCode, Header: a.Header, Body: a.body}); err != nil {
		b.t.Error(err)
	}
	return a
}

func (b *bench) want(status int, method, path, key, body string, header ...string) answer {
	b.t.Helper()
	a := b.call(method, path, key, body, header...)
	if a.StatusCode != status {
		b.t.Fatalf("%s %s: %s, want %d", method, path, a, status)
	}
	return a
}

// refused asserts status and code of a problem.
func (b *bench) refused(status int, code, method, path, key, body string, header ...string) map[string]any {
	b.t.Helper()
	doc := b.want(status, method, path, key, body, header...).document(b.t)
	if doc["code"] != code || doc["status"] != float64(status) || doc["request_id"] == "" {
		b.t.Errorf("%s %s: %v, want %s", method, path, doc, code)
	}
	return doc
}

// chatBody is the body of a question; members, as name and value in turn, are added.
func chatBody(text string, members ...any) string {
	body := map[string]any{"messages": []map[string]string{{"role": "user", "content": text}}}
	for i := 0; i < len(members); i += 2 {
		body[members[i].(string)] = members[i+1]
	}
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err) // tests pass what can be encoded
	}
	return string(raw)
}

// stream is an answer that was streamed to its end.
type stream struct {
	raw    []byte
	items  []assistanttest.Item
	chunks []assistanttest.Chunk
	text   string
	header http.Header
}

// say asks in a session.
func (b *bench) say(key, session, text string, members ...any) stream {
	b.t.Helper()
	return b.stream(b.want(200, "POST", chatPath, key, chatBody(text, members...), "X-Session-ID", session))
}

func (b *bench) stream(a answer) stream {
	b.t.Helper()
	items := assistanttest.ReadStream(b.t, bytes.NewReader(a.body))
	chunks := assistanttest.DecodeChunks(b.t, items)
	return stream{a.body, items, chunks, assistanttest.AnswerText(chunks), a.Header}
}

// prompts are the approval requests of a stream, without the completion's copy.
func (s stream) prompts() (all []assistanttest.Choice) {
	for _, c := range s.chunks {
		for _, choice := range c.Choices {
			if choice.HITLRequired && choice.FinishReason == nil {
				all = append(all, choice)
			}
		}
	}
	return all
}

// events are the ki_events of a type.
func (s stream) events(kind string) (all []assistanttest.Event) {
	for _, c := range s.chunks {
		if c.Event != nil && c.Event.Type == kind {
			all = append(all, *c.Event)
		}
	}
	return all
}

// propose requests a write and returns the prompt.
func (b *bench) propose(key, session, text string, members ...any) assistanttest.Choice {
	b.t.Helper()
	s := b.say(key, session, text, members...)
	if len(s.prompts()) != 1 {
		b.t.Fatalf("%d prompts, want 1: %s", len(s.prompts()), s.raw)
	}
	return s.prompts()[0]
}

// contains asserts that the answer has the pieces.
func (b *bench) contains(s stream, pieces ...string) {
	b.t.Helper()
	for _, p := range pieces {
		if !strings.Contains(s.text, p) {
			b.t.Errorf("the answer lacks %q:\n%s; want strings.Contains(s.text, p)", p, s.text)
		}
	}
}

// action reads an action's document.
func (b *bench) action(key, session, id string) map[string]any {
	b.t.Helper()
	return b.want(200, "GET", "/v1/sessions/"+session+"/actions/"+id, key, "").document(b.t)
}

// count is the number that a query on the service's schema gives.
func (b *bench) count(query string, args ...any) (n int) {
	b.t.Helper()
	conn, err := pgx.Connect(b.t.Context(), b.db)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(context.Background()); err != nil && !errors.Is(err, context.Canceled) {
			b.t.Error(err, "want (err == nil || errors.Is(err, context.Canceled))")
		}
	}()
	if _, err := conn.Exec(b.t.Context(), "set search_path to assistant"); err != nil {
		b.t.Fatal(err)
	}
	if err := conn.QueryRow(b.t.Context(), query, args...).Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n
}
