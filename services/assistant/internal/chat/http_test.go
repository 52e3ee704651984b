package chat_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/chat"
	"github.com/mlp-platform/platform/services/assistant/internal/fault"
)

const route = "/v1/chat/completions"

// sendToEcho sends one request to a server that answers what it read.
func sendToEcho(t *testing.T, r *http.Request) *http.Response {
	t.Helper()
	e := echo.New()
	e.HTTPErrorHandler = fault.Handler(slog.New(slog.NewTextHandler(io.Discard, nil)))
	e.POST(route, func(c echo.Context) error {
		c.Response().Header().Set("X-Request-ID", "req-1")
		got, hint, err := chat.Read(c, chat.MaxBody)
		if err != nil {
			return err
		}
		return c.String(http.StatusOK, fmt.Sprintf("%s %s %s", hint.ID, hint.Quoted, got.Query))
	})
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w.Result()
}

func newPost(body io.Reader, header ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, route, body)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// chunked hides the length of a body.
type chunked struct{ io.Reader }

func TestRefusals(t *testing.T) {
	t.Parallel()
	requests := map[string]*http.Request{
		"media_type_text":        newPost(strings.NewReader("{}"), "Content-Type", "text/plain"),
		"media_type_before_size": newPost(strings.NewReader(strings.Repeat(" ", chat.MaxBody+1))),
		"too_large":              newPost(strings.NewReader(strings.Repeat(" ", chat.MaxBody+1))),
		"too_large_chunked":      newPost(chunked{strings.NewReader(strings.Repeat(" ", chat.MaxBody+1))}),
		"session_id_bad":         newPost(strings.NewReader("{"+ask+"}"), "X-Session-ID", "a b"),
		"session_id_twice":       newPost(strings.NewReader("{"+ask+"}"), "X-Session-ID", "a", "X-Session-ID", "b"),
		"webui_id_bad":           newPost(strings.NewReader("{"+ask+"}"), "X-OpenWebUI-Chat-Id", strings.Repeat("x", 129)),
		"body_before_session_id": newPost(strings.NewReader("{"+ask+`,"stream":false}`), "X-Session-ID", "a b"),
	}
	requests["media_type_text"].Header.Set("Content-Type", "text/plain")
	requests["media_type_before_size"].Header.Del("Content-Type")
	for name, tc := range bad {
		requests["body_"+name] = newPost(strings.NewReader(tc.body))
	}
	for name, r := range requests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assistanttest.CheckGolden(t, "refused/"+name+".http", assistanttest.DumpResponse(t, sendToEcho(t, r)))
		})
	}
}

func TestMediaTypes(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]int{
		"application/json": 200, "application/json; charset=utf-8": 200, "Application/JSON": 200,
		"": 415, "application/problem+json": 415, "application/jsonp": 415, "text/json": 415, "application/json, text/plain": 415, "application/json; ;": 415, ";": 415,
	} {
		r := newPost(strings.NewReader("{" + ask + "}"))
		r.Header.Set("Content-Type", value)
		if got := sendToEcho(t, r).StatusCode; got != want {
			t.Errorf("%q: %d, want %d", value, got, want)
		}
	}
}

func TestBodyOfTheLargestSize(t *testing.T) {
	t.Parallel()
	body := "{" + ask + "}"
	body += strings.Repeat(" ", chat.MaxBody-len(body))
	for name, r := range map[string]*http.Request{"length": newPost(strings.NewReader(body)), "chunked": newPost(chunked{strings.NewReader(body)})} {
		if got := sendToEcho(t, r).StatusCode; got != http.StatusOK {
			t.Errorf("%s: %d; want got == %v", name, got, http.StatusOK)
		}
	}
}

func TestSessionHint(t *testing.T) {
	t.Parallel()
	quoting := chat.Request{QuotedIDs: []string{action}}
	for name, tc := range map[string]struct {
		header []string
		want   string
		ok     bool
	}{
		"none":                     {nil, "", true},
		"empty is absent":          {[]string{"X-Session-ID", ""}, "", true},
		"own":                      {[]string{"X-Session-ID", "Team_1.a:b-c"}, "Team_1.a:b-c", true},
		"longest":                  {[]string{"X-Session-ID", strings.Repeat("x", 128)}, strings.Repeat("x", 128), true},
		"too long":                 {[]string{"X-Session-ID", strings.Repeat("x", 129)}, "", false},
		"4 KB":                     {[]string{"X-Session-ID", strings.Repeat("x", 4096)}, "", false},
		"blank":                    {[]string{"X-Session-ID", "a b"}, "", false},
		"control":                  {[]string{"X-Session-ID", "a\x01"}, "", false},
		"slash":                    {[]string{"X-Session-ID", "../a"}, "", false},
		"letter beyond ASCII":      {[]string{"X-Session-ID", "é"}, "", false},
		"Open WebUI":               {[]string{"X-OpenWebUI-Chat-Id", "local:7f-3_a"}, "local:7f-3_a", true},
		"own before Open WebUI":    {[]string{"X-OpenWebUI-Chat-Id", "theirs", "X-Session-ID", "own"}, "own", true},
		"Open WebUI if own empty":  {[]string{"X-OpenWebUI-Chat-Id", "theirs", "X-Session-ID", ""}, "theirs", true},
		"Open WebUI's bad":         {[]string{"X-OpenWebUI-Chat-Id", "a b"}, "", false},
		"own hides Open WebUI bad": {[]string{"X-OpenWebUI-Chat-Id", "a b", "X-Session-ID", "own"}, "own", true},
	} {
		h := http.Header{}
		for i := 0; i < len(tc.header); i += 2 {
			h.Add(tc.header[i], tc.header[i+1])
		}
		got, err := chat.HintOf(h, quoting)
		if (err == nil) != tc.ok || got.ID != tc.want || err != nil && !problem.Validation.Has(err) {
			t.Errorf("%s: %+v, %v; want (err == nil) == tc.ok && got.ID == tc.want && (err == nil || problem.Validation.Has(err))", name, got, err)
		}
		if wantQuoted := tc.ok && tc.want == ""; wantQuoted != slices.Equal(got.Quoted, quoting.QuotedIDs) {
			t.Errorf("%s: quoted %v; want wantQuoted == slices.Equal(got.Quoted, quoting.QuotedIDs)", name, got.Quoted)
		}
	}
}

func TestQuotedIDs(t *testing.T) {
	t.Parallel()
	id := func(i int) string { return fmt.Sprintf("%08x-0000-7000-8000-000000000000", i) }
	var many []string
	for i := range 256 {
		many = append(many, id(i))
	}
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"none":            {"nothing waits", nil},
		"code":            {"`" + id(1) + "`", []string{id(1)}},
		"two":             {id(2) + "," + id(1) + "\n" + id(2), []string{id(2), id(1)}},
		"part of a word":  {"x" + id(1) + " " + id(2) + "f", nil},
		"as many as are":  {strings.Join(many, " ") + " " + many[0], many},
		"more than can":   {strings.Join(many, " ") + " " + id(256), nil},
		"almost an id":    {id(1)[:35], nil},
		"many half an id": {strings.Repeat("00000000-0000-", 30000), nil},
	} {
		r, err := chat.Parse([]byte(`{"messages":[{"role":"assistant","content":` + quoteLine(tc.text) + `},{"role":"user","content":"yes"}]}`))
		if err != nil || !slices.Equal(r.QuotedIDs, tc.want) {
			t.Errorf("%s: %v, %v; want slices.Equal(r.QuotedIDs, tc.want)", name, r.QuotedIDs, err)
		}
	}
}

func quoteLine(s string) string { return `"` + strings.ReplaceAll(s, "\n", `\n`) + `"` }

func TestCallerRequestID(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		values []string
		want   string
	}{
		{nil, ""}, {[]string{"req-1._A"}, "req-1._A"}, {[]string{""}, ""}, {[]string{"a", "a"}, ""}, {[]string{"a:b"}, ""}, {[]string{"a b"}, ""},
		{[]string{strings.Repeat("x", 128)}, strings.Repeat("x", 128)}, {[]string{strings.Repeat("x", 129)}, ""},
	} {
		if got := chat.CallerRequestID(http.Header{"X-Request-Id": tc.values}); got != tc.want {
			t.Errorf("%q: %q; want got == %v", tc.values, got, tc.want)
		}
	}
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	const model = "cluster-assistant"
	for _, tc := range []struct {
		header, asked string
		want          chat.Profile
	}{
		{"", "", chat.Canonical}, {"", model, chat.Canonical}, {"", "gpt-4o", chat.Canonical}, {"", "gpt-4o-openai", chat.Canonical}, {"other", model, chat.Canonical},
		{"openai", "", chat.Strict}, {"OpenAI", model, chat.Strict}, {"", model + "-openai", chat.Strict},
	} {
		h := http.Header{}
		h.Set("X-Stream-Profile", tc.header)
		if got := chat.ProfileOf(h, model, tc.asked); got != tc.want {
			t.Errorf("%+v: %v; want got == %v", tc, got, tc.want)
		}
	}
	for value, want := range map[string]bool{"": false, "true": true, "True": true, "1": false, "false": false} {
		if got := chat.WantsIDs(http.Header{"X-Stream-Ids": {value}}); got != want {
			t.Errorf("X-Stream-Ids %q: %v; want got == %v", value, got, want)
		}
	}
}

func TestStreamHeaders(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	chat.SetHeaders(w.Header(), "s-1")
	assistanttest.CheckGolden(t, "stream_headers.http", assistanttest.DumpResponse(t, w.Result()))
}

func TestModels(t *testing.T) {
	t.Parallel()
	m := chat.NewModels("cluster-assistant", time.Unix(1764000000, 0))
	assistanttest.CheckGolden(t, "models/list.json", m.List())
	for _, id := range []string{"cluster-assistant", "cluster-assistant-openai"} {
		got, err := m.Get(id)
		if err != nil {
			t.Fatal(err)
		}
		assistanttest.CheckGolden(t, "models/"+id+".json", got)
	}
	for _, id := range []string{"", "gpt-4o", "cluster-assistant-", "Cluster-Assistant"} {
		if _, err := m.Get(id); !fault.ModelNotFound.Has(err) {
			t.Errorf("%q: %v; want fault.ModelNotFound.Has(err)", id, err)
		}
	}
}

func TestLastEventID(t *testing.T) {
	t.Parallel()
	for value, want := range map[string][2]int32{"7.12": {7, 12}, "0.0": {0, 0}, "2147483647.2147483647": {1<<31 - 1, 1<<31 - 1}} {
		turn, frame, ok := chat.LastEventID(http.Header{"Last-Event-Id": {value}})
		if !ok || turn != want[0] || frame != want[1] || chat.EventID(turn, frame) != value {
			t.Errorf("%s: %d, %d, %v; want ok && turn == want[0] && frame == want[1] && chat.EventID(turn, frame) == value", value, turn, frame, ok)
		}
	}
	for _, value := range []string{"", ".", "7", "7.", ".7", "-1.2", "+1.2", "1.2.3", "1.-2", "1. 2", "2147483648.1", "1e3.1", "0x1.1"} {
		if turn, frame, ok := chat.LastEventID(http.Header{"Last-Event-Id": {value}}); ok {
			t.Errorf("%q: %d, %d; want !ok", value, turn, frame)
		}
	}
}

// FuzzLastEventID checks that any accepted id is one that EventID can produce.
func FuzzLastEventID(f *testing.F) {
	f.Add("7.12")
	f.Fuzz(func(t *testing.T, value string) {
		turn, frame, ok := chat.LastEventID(http.Header{"Last-Event-Id": {value}})
		if !ok {
			return
		}
		again := http.Header{"Last-Event-Id": {chat.EventID(turn, frame)}}
		if turn2, frame2, ok := chat.LastEventID(again); !ok || turn < 0 || frame < 0 || turn2 != turn || frame2 != frame {
			t.Fatalf("%q: %d, %d; want ok && turn >= 0 && frame >= 0 && turn2 == turn && frame2 == frame", value, turn, frame)
		}
	})
}
