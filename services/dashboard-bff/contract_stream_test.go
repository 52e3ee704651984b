package dashboard_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
)

// frames reads a stream frame by frame.
type frames struct {
	t   testing.TB
	res *http.Response
	in  *bufio.Reader
}

// stream connects as a browser does: again while the dashboard is not connected to the broker yet.
func (w *world) stream(who person, query string, header ...string) *frames {
	w.t.Helper()
	var res *http.Response
	testenv.Eventually(w.t, 20*time.Second, func() error {
		res = w.open(who, "/api/v1/stream"+query, header...)
		if res.StatusCode == http.StatusOK {
			return nil
		}
		raw, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusServiceUnavailable {
			w.t.Fatalf("GET /api/v1/stream%s: got %d %s, want 200", query, res.StatusCode, raw)
		}
		return fmt.Errorf("GET /api/v1/stream%s: %s", query, raw)
	})
	w.t.Cleanup(func() { res.Body.Close() })
	return &frames{w.t, res, bufio.NewReader(res.Body)}
}

// next returns the next frame that is no comment.
func (f *frames) next() string {
	f.t.Helper()
	for {
		var frame strings.Builder
		for {
			line, err := f.in.ReadString('\n')
			if err != nil {
				f.t.Fatalf("the stream ended after %q: %v", frame.String(), err)
			}
			if line == "\n" {
				break
			}
			frame.WriteString(line)
		}
		if text := frame.String(); text != "" && !strings.HasPrefix(text, ":") {
			return text
		}
	}
}

// TestContractStream walks "Realtime stream" and "Realtime": the frames and their data.
func TestContractStream(t *testing.T) {
	t.Parallel()
	w := startForRows(t)
	viewer, admin := w.signIn(viewerPassword), w.signIn(adminPassword)
	for query, channels := range map[string]string{
		"":                            `["job.*","drift.*","alert.*","deploy.*","approval.*","event.*"]`,
		"?channels=*":                 `["job.*","drift.*","alert.*","deploy.*","approval.*","event.*"]`,
		"?channels=job":               `["job.*"]`,
		"?channels=job.started,drift": `["job.started","drift.*"]`,
	} {
		t.Run("hello "+query, func(t *testing.T) {
			want := "retry: 3000\nevent: hello\ndata: {\"channels\":" + channels + ",\"resumed\":false,\"gap\":false}\n"
			if got := w.on(t).stream(viewer, query).next(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	for name, query := range map[string]string{
		"unknown namespace": "?channels=audit", "characters": "?channels=job.A", "more than 20": "?channels=" + strings.Repeat("job,", 20) + "job", "too long": "?channels=" + strings.Repeat("j", 65),
	} {
		t.Run("422 "+name, func(t *testing.T) {
			w.on(t).refused(422, "validation_failed", viewer, "GET", "/api/v1/stream"+query, "")
		})
	}
	var last string
	for event, row := range map[string]struct {
		do   func(w *world)
		data map[string]any
	}{
		"event.flag_changed": {
			func(w *world) { w.want(200, admin, "POST", "/api/v1/flags/commandPalette", `{"enabled": true}`) }, map[string]any{"name": "commandPalette", "enabled": true},
		},
		"event.mention": {
			func(w *world) { w.want(200, admin, "POST", "/api/v1/collab/model/JPCP/comments", `{"body": "@eve"}`) },
			map[string]any{"user": "eve", "entity": "model/JPCP", "by": "local:admin"},
		},
		"alert.acked": {
			func(w *world) { w.want(200, viewer, "POST", "/api/v1/alerts/budget:spent/ack", "") }, map[string]any{"id": "budget:spent", "actor": "local:viewer"},
		},
		"event.config_changed": {
			func(w *world) { w.want(200, admin, "PUT", "/api/config", `{"forge_project_id": "7"}`) }, map[string]any{"scope": "dashboard", "keys": []any{"forge_project_id"}},
		},
	} {
		t.Run(event, func(t *testing.T) {
			w := w.on(t)
			stream := w.stream(viewer, "?channels="+event)
			stream.next()
			row.do(w)
			frame := stream.next()
			parts := regexp.MustCompile(`^id: (\d+)\nevent: ` + event + `\ndata: (\{.*\})\n$`).FindStringSubmatch(frame)
			if parts == nil {
				t.Fatalf("got frame %q, want id, event: %s and data", frame, event)
			}
			last = parts[1]
			var data map[string]any
			if err := json.Unmarshal([]byte(parts[2]), &data); err != nil {
				t.Fatal(err)
			}
			for name, want := range row.data {
				if got, _ := json.Marshal(data[name]); string(got) != asJSON(want) {
					t.Errorf("got %s %s, want %s", name, got, asJSON(want))
				}
			}
			if data["_dropped"] != 0.0 {
				t.Errorf("got _dropped %v, want 0", data["_dropped"])
			}
			for _, name := range []string{"id", "time", "actor"} {
				if text, _ := memberAt(data, "_event."+name).(string); text == "" {
					t.Errorf("got no _event.%s in %s", name, parts[2])
				}
			}
		})
	}
	t.Run("Last-Event-ID", func(t *testing.T) {
		w := w.on(t)
		w.want(200, admin, "POST", "/api/v1/flags/commandPalette", `{"enabled": false}`)
		stream := w.stream(viewer, "", "Last-Event-ID", last)
		if hello := stream.next(); !strings.Contains(hello, `"resumed":true,"gap":false`) {
			t.Errorf("got %q, want resumed", hello)
		}
		for { // the events after the one named, in order
			if frame := stream.next(); strings.Contains(frame, `"name":"commandPalette","enabled":false`) {
				break
			}
		}
	})
	t.Run("an id that nobody knows is a gap", func(t *testing.T) {
		if hello := w.on(t).stream(viewer, "", "Last-Event-ID", "999999999").next(); !strings.Contains(hello, `"resumed":false,"gap":true`) {
			t.Errorf("got %q, want a gap", hello)
		}
	})
	t.Run("another tenant's", func(t *testing.T) {
		w := w.on(t)
		stream := w.stream(person{"Cookie", w.signOn(map[string]any{"sub": "9", "org": "other"})}, "?channels=event")
		stream.next()
		w.want(200, admin, "POST", "/api/v1/flags/commandPalette", `{"enabled": true}`)      // of the tenant default
		w.want(200, admin, "PUT", "/api/config", `{"forge_project_id": "8"}`)                // of all
		if frame := stream.next(); !strings.Contains(frame, "event: event.config_changed") { // the first that is for them
			t.Errorf("got %q, want event.config_changed alone", frame)
		}
	})
	t.Run("bye logged_out", func(t *testing.T) {
		w := w.on(t)
		who := w.signIn(viewerPassword)
		stream := w.stream(who, "")
		stream.next()
		w.want(204, who, "POST", "/api/auth/logout", "")
		began := time.Now()
		wantBye(t, stream, "logged_out")
		if took := time.Since(began); took > 14*time.Second { // 2 s, on a machine that does other work too
			t.Errorf("the stream ended %s after the logout, want 2s", took)
		}
	})
	t.Run("bye draining", func(t *testing.T) {
		stream := w.on(t).stream(viewer, "")
		stream.next()
		go w.stop()
		wantBye(t, stream, "draining")
	})
}

func asJSON(v any) string {
	raw, _ := json.Marshal(v)
	return string(raw)
}

// wantBye reads to the last frame.
func wantBye(t *testing.T, f *frames, reason string) {
	t.Helper()
	for {
		frame := f.next()
		if !strings.HasPrefix(frame, "event: bye\n") {
			continue
		}
		if want := "event: bye\ndata: {\"reason\":\"" + reason + "\"}\n"; frame != want {
			t.Errorf("got %q, want %q", frame, want)
		}
		if rest, err := io.ReadAll(f.in); err != nil || len(rest) > 0 {
			t.Errorf("got %q, %v after the bye, want the end", rest, err)
		}
		return
	}
}
