package app

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/auth"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
)

func TestStream(t *testing.T) {
	t.Parallel()
	b := setup(t, opt{})
	resp := b.ask(admin, "s-1", "hello")
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no", "X-Session-ID": "s-1", "Content-Encoding": "",
	} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	raw := b.rest(resp)
	if !bytes.HasPrefix(raw, []byte(`data: {"protocol_version":"1.0","object":"stream.start","session_id":"s-1"}`+"\n\n")) {
		t.Errorf("first frame: %.100s; want bytes.HasPrefix(raw, []byte(`data: {\"protocol_version\":\"1.0\",\"object\":\"stream.start\",\"session_id\":\"s-1\"}`+\"\\n\\n\"))", raw)
	}
	if !bytes.HasSuffix(raw, []byte("\n\ndata: [DONE]\n\n")) || bytes.Count(raw, []byte("[DONE]")) != 1 {
		t.Errorf("end of stream: %s; want bytes.HasSuffix(raw, []byte(\"\\n\\ndata: [DONE]\\n\\n\")) && bytes.Count(raw, []byte(\"[DONE]\")) == 1", raw)
	}
	if got := assistanttest.AnswerText(b.chunks(raw)); got != "You asked: hello" {
		t.Errorf(`answer %q; want "You asked: hello"`, got)
	}
}

func TestSessionIsMadeUp(t *testing.T) {
	t.Parallel()
	b := setup(t, opt{})
	resp := b.send(t.Context(), "POST", chatPath, admin, questionBody("hello"))
	id := resp.Header.Get("X-Session-ID")
	if len(id) != 36 || id[14] != '7' || !strings.Contains(string(b.rest(resp)), `"session_id":"`+id+`"`) {
		t.Errorf("session %q; want len(id) == 36 && id[14] == '7' && strings.Contains(string(b.rest(resp)), `\"session_id\":\"`+id+`\"`)", id)
	}
}

// A client without a session id is known by the action that its history quotes.
func TestSessionOfAQuotedAction(t *testing.T) {
	t.Parallel()
	b := setup(t, opt{})
	id := b.propose(operator, "s-1", "scale..")
	body := `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"Answer approve ` + id + `."},{"role":"user","content":"yes"}]}`
	resp := b.send(t.Context(), "POST", chatPath, operator, body)
	if got := resp.Header.Get("X-Session-ID"); got != "s-1" {
		t.Errorf(`session %q; want "s-1"`, got)
	}
	if raw := b.rest(resp); !strings.Contains(string(raw), "2 replicas, as observed.") {
		t.Errorf(`%s; want strings.Contains(string(raw), "2 replicas, as observed.")`, raw)
	}
	resp = b.send(t.Context(), "POST", chatPath, other, body)
	if got := resp.Header.Get("X-Session-ID"); got == "s-1" {
		t.Error("another caller's quote opened the session")
	}
	b.rest(resp)
}

func TestReplayIsTheStream(t *testing.T) {
	t.Parallel()
	b := setup(t, opt{})
	one, two := b.say(operator, "s-1", "hello"), b.say(operator, "s-1", "scale..")
	want := strings.TrimSuffix(string(one), "data: [DONE]\n\n") + string(two)
	get := func(key, query string, header ...string) string {
		resp := b.send(t.Context(), "GET", "/v1/events/replay/s-1"+query, key, "", header...)
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf(`%d %s; want resp.StatusCode == 200 && resp.Header.Get("Content-Type") == "text/event-stream"`, resp.StatusCode, b.rest(resp))
		}
		return string(b.rest(resp))
	}
	for _, key := range []string{operator, admin} {
		if got := get(key, ""); got != want {
			t.Errorf("replay differs:\n%s\nwant\n%s", got, want)
		}
	}
	if got := get(operator, "?follow=true"); got != want {
		t.Error("followed replay of a session at rest differs")
	}
	b.refused(404, "session_not_found", "GET", "/v1/events/replay/s-1", other, "")
	b.refused(404, "session_not_found", "GET", "/v1/events/replay/s-2", operator, "")
	b.refused(404, "session_not_found", "GET", "/v1/events/replay/a%20b", operator, "")

	withIDs := get(operator, "?ids=true")
	if withIDs != get(operator, "", "X-Stream-Ids", "true") {
		t.Error("the query and the header differ")
	}
	items := assistanttest.ReadStream(t, strings.NewReader(withIDs))
	var last string
	for i, item := range items[:len(items)-1] {
		if item.ID == "" || item.ID == last {
			t.Fatalf(`item %d: id %q after %q; want item.ID != "" && item.ID != last`, i, item.ID, last)
		}
		last = item.ID
	}
	if items[0].ID != "1.1" {
		t.Errorf(`first id %q; want "1.1"`, items[0].ID)
	}
	rest := assistanttest.ReadStream(t, strings.NewReader(get(operator, "?ids=true", "Last-Event-ID", items[2].ID)))
	if len(rest) != len(items)-3 || rest[0].ID != items[3].ID {
		t.Errorf("resumed with %d of %d items at %q; want len(rest) == len(items) - 3 && rest[0].ID == items[3].ID", len(rest), len(items), rest[0].ID)
	}
}

func TestStrictProfile(t *testing.T) {
	t.Parallel()
	b := setup(t, opt{})
	const body = `"stream":true,"messages":[{"role":"user","content":"hello"}]}`
	byHeader := b.send(t.Context(), "POST", chatPath, operator, "{"+body, "X-Stream-Profile", "openai")
	byModel := b.send(t.Context(), "POST", chatPath, operator, `{"model":"cluster-assistant-openai",`+body)
	for name, raw := range map[string][]byte{"header": b.rest(byHeader), "model": b.rest(byModel)} {
		for _, item := range assistanttest.ReadStream(t, bytes.NewReader(raw)) {
			if item.Data != nil && bytes.Contains(item.Data, []byte("ki_event")) {
				t.Errorf(`%s: %s; want (item.Data == nil || !bytes.Contains(item.Data, []byte("ki_event")))`, name, item.Data)
			}
		}
		if got := assistanttest.AnswerText(b.chunks(raw)); got != "You asked: hello" {
			t.Errorf(`%s: answer %q; want got == "You asked: hello"`, name, got)
		}
	}
}

// SDKs omit stream to get one JSON document: in their profile the server answers that there is none, while the plain
// API streams by default.
func TestAbsentStream(t *testing.T) {
	t.Parallel()
	b := setup(t, opt{})
	const ask = `"messages":[{"role":"user","content":"hello"}]}`
	for _, row := range []struct {
		name, body string
		header     []string
		status     int
	}{
		{"plain", "{" + ask, nil, http.StatusOK},
		{"strict by header", "{" + ask, []string{"X-Stream-Profile", "openai"}, http.StatusUnprocessableEntity},
		{"strict by model", `{"model":"cluster-assistant-openai",` + ask, nil, http.StatusUnprocessableEntity},
		{"strict and named", `{"model":"cluster-assistant-openai","stream":true,` + ask, nil, http.StatusOK},
	} {
		resp := b.send(t.Context(), "POST", chatPath, operator, row.body, row.header...)
		raw := b.rest(resp)
		if resp.StatusCode != row.status || row.status != http.StatusOK && !bytes.Contains(raw, []byte(`"code":"stream_required"`)) {
			t.Errorf("%s: %d %s; want %d", row.name, resp.StatusCode, raw, row.status)
		}
	}
}

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	b := setup(t, opt{silence: 20 * time.Millisecond})
	resp := b.ask(operator, "s-1", "wait")
	<-b.engine.began
	r := bufio.NewReader(resp.Body)
	for beats := 0; beats < 3; { // it repeats
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == ": heartbeat\n" {
			beats++
		}
	}
	close(b.engine.let)
	rest, err := io.ReadAll(r)
	if err != nil || !bytes.HasSuffix(rest, []byte("data: [DONE]\n\n")) {
		t.Errorf("%v: %s; want bytes.HasSuffix(rest, []byte(\"data: [DONE]\\n\\n\"))", err, rest)
	}
	var frames, beats int // a replay sends its own heartbeats
	if err := assistanttest.OpenPool(t, b.db).QueryRow(t.Context(), `select count(*), count(*) filter (where position('heartbeat'::bytea in data) > 0) from frames`).Scan(&frames, &beats); err != nil {
		t.Fatal(err)
	}
	if frames == 0 || beats != 0 {
		t.Errorf("%d of %d stored frames are heartbeats; want none", beats, frames)
	}
}

// What a second request of a session gets while the first is answered.
func TestBusyAndRepeat(t *testing.T) {
	t.Parallel()
	b := setup(t, opt{busy: 10 * time.Millisecond})
	first := b.ask(operator, "s-1", "wait", "X-Request-ID", "r-1")
	<-b.engine.began
	resp := b.send(t.Context(), "POST", chatPath, operator, questionBody("hello"), "X-Session-ID", "s-1")
	if resp.StatusCode != http.StatusConflict || resp.Header.Get("Retry-After") != "5" || !bytes.Contains(b.rest(resp), []byte(`"code":"turn_active"`)) {
		t.Errorf("%d %v; want resp.StatusCode == http.StatusConflict && resp.Header.Get(\"Retry-After\") == \"5\" && bytes.Contains(b.rest(resp), []byte(`\"code\":\"turn_active\"`))", resp.StatusCode, resp.Header)
	}
	again := b.ask(operator, "s-1", "wait", "X-Request-ID", "r-1")
	followed := b.send(t.Context(), "GET", "/v1/events/replay/s-1?follow=true", operator, "")
	close(b.engine.let)
	want := b.rest(first)
	for name, resp := range map[string]*http.Response{"repeat": again, "follow": followed} {
		if got := b.rest(resp); !bytes.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
	if got := b.say(operator, "s-1", "wait", "X-Request-ID", "r-1"); !bytes.Equal(got, want) {
		t.Error("the repeat of a finished turn differs")
	}
}

func TestMaxStreams(t *testing.T) {
	t.Parallel()
	b := setup(t, opt{streams: 1})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp := b.send(ctx, "POST", chatPath, operator, questionBody("wait"), "X-Session-ID", "s-1")
	<-b.engine.began
	b.refused(429, "rate_limited", "POST", chatPath, operator, questionBody("hello"))
	b.refused(429, "rate_limited", "GET", "/v1/events/replay/s-1", operator, "")
	b.say(other, "s-2", "hello") // another caller's are counted apart
	cancel()
	_ = resp.Body.Close()
	testenv.Eventually(t, 10*time.Second, func() error {
		resp := b.send(t.Context(), "POST", chatPath, operator, questionBody("hello"))
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		b.rest(resp)
		return nil
	})
}

// onBehalfOf is the header by which a service with its own key names a person.
func onBehalfOf(t *testing.T, d *auth.Delegator, audience, name string) []string {
	t.Helper()
	token, err := d.Mint(audience, auth.Person{Name: name, Tenant: "default", Scopes: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	return []string{"X-PLATFORM-On-Behalf-Of", token}
}

// The fact of a decision is in the transaction of the decision, and names the person behind the key that decided.
func TestFactNamesThePersonBesideAKey(t *testing.T) {
	t.Parallel()
	d, err := auth.NewDelegator("dashboard", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
	if err != nil {
		t.Fatal(err)
	}
	b := setup(t, opt{trust: service.Secret(`{"dashboard":{"public_key":"` + d.PublicKey() + `","tenants":["default"],"scopes":["limits"]}}`)})
	id := b.propose(operator, "s-1", "scale 3")
	b.want(200, "POST", "/v1/sessions/s-1/actions/"+id, operator, `{"decision":"approve"}`, onBehalfOf(t, d, "assistant", "ana")...)
	var decided map[string]any
	for _, fact := range b.events("recorded") {
		if fact["action"] == "assistant.action.decided" {
			decided, _ = fact["details"].(map[string]any)
		}
	}
	if decided["on_behalf_of"] != "ana" || decided["via"] != "dashboard" {
		t.Errorf("got the details %v; want on_behalf_of ana, via dashboard", decided)
	}
}

// A service that calls for many people with one key names them, so that one of them cannot use up what all share. What
// it says counts only if a delegation proves it.
func TestLimitsCountThePersonBesideAKey(t *testing.T) {
	t.Parallel()
	d, err := auth.NewDelegator("dashboard", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
	if err != nil {
		t.Fatal(err)
	}
	onBehalfOf := func(audience, name string) []string { return onBehalfOf(t, d, audience, name) }
	b := setup(t, opt{streams: 1, rate: 1, burst: 3, trust: service.Secret(`{"dashboard":{"public_key":"` + d.PublicKey() + `","tenants":["default"],"scopes":["limits"]}}`)})
	b.send(t.Context(), "POST", chatPath, operator, questionBody("wait"), onBehalfOf("assistant", "ana")...)
	<-b.engine.began
	b.refused(429, "rate_limited", "POST", chatPath, operator, questionBody("hello"), onBehalfOf("assistant", "ana")...) // her one stream
	b.rest(b.send(t.Context(), "POST", chatPath, operator, questionBody("hello"), onBehalfOf("assistant", "bob")...))
	b.want(200, "GET", "/v1/models", operator, "", onBehalfOf("assistant", "ana")...)
	b.refused(429, "rate_limited", "GET", "/v1/models", operator, "", onBehalfOf("assistant", "ana")...) // her fourth request
	b.want(200, "GET", "/v1/models", operator, "", onBehalfOf("assistant", "bob")...)

	for range 3 { // names without proof are attributed to the key
		b.want(200, "GET", "/v1/models", operator, "", onBehalfOf("inference", rand.Text())...)
	}
	b.refused(429, "rate_limited", "GET", "/v1/models", operator, "", "X-PLATFORM-On-Behalf-Of", "carol")
	b.refused(429, "rate_limited", "GET", "/v1/models", operator, "")
	if w := b.send(t.Context(), "GET", "/v1/models", "", "", onBehalfOf("assistant", "dan")...); w.StatusCode != http.StatusUnauthorized {
		t.Errorf("a delegation beside no key: got %d, want 401", w.StatusCode)
	}
	close(b.engine.let)
}

// A body on its way holds no stream; yet there is a bound on these, too.
func TestBodiesOnTheirWay(t *testing.T) {
	t.Parallel()
	b := setup(t, opt{streams: 1})
	begin := func() *bufio.Reader {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(b.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n",
			chatPath, operator); err != nil {
			t.Fatal(err)
		}
		return bufio.NewReader(conn)
	}
	status := func(r *bufio.Reader) string {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(line)
	}
	for i := range 3 {
		if got := status(begin()); got != "HTTP/1.1 100 Continue" { // the body is being read
			t.Fatalf(`body %d: %s; want got == "HTTP/1.1 100 Continue"`, i, got)
		}
	}
	b.say(operator, "s-1", "hello")
	if got := status(begin()); got != "HTTP/1.1 100 Continue" {
		t.Fatal(got, `want "HTTP/1.1 100 Continue"`)
	}
	b.refused(429, "rate_limited", "POST", chatPath, operator, questionBody("hello"))
	b.say(other, "s-2", "hello")
}

// A stop tells readers why, and closes the turn.
func TestDrain(t *testing.T) {
	t.Parallel()
	b := setup(t, opt{})
	resp := b.ask(operator, "s-1", "wait")
	<-b.engine.began
	if err := b.turns.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	raw := b.rest(resp)
	if !bytes.Contains(raw, []byte(`"code":"shutting_down"`)) || !bytes.HasSuffix(raw, []byte("data: [DONE]\n\n")) {
		t.Errorf("%s; want bytes.Contains(raw, []byte(`\"code\":\"shutting_down\"`)) && bytes.HasSuffix(raw, []byte(\"data: [DONE]\\n\\n\"))", raw)
	}
	b.refused(503, "draining", "POST", chatPath, operator, questionBody("hello"))
}
