package dashboard_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestContractHealth walks "Aggregate health".
func TestContractHealth(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	w.services.ControlPlane.Answer("/health", 200, `{}`)
	w.services.Tracker.Answer("/health", 503, `{}`)
	a := w.want(200, nobody, "GET", "/api/health", "")
	for key, want := range map[string]struct{ status, note string }{
		"serving": {"ok", ""}, "tracker": {"degraded", "HTTP 503"}, "orchestrator": {"unknown", "not configured"}, "bus": {"unknown", "not configured"},
		"bus_sim": {"unknown", "never probed"}, "scheduler": {"unknown", "mock"}, "metrics_store": {"unknown", "not configured"}, "dashboards": {"unknown", "not configured"},
	} {
		t.Run(key, func(t *testing.T) {
			w := w.on(t)
			wantValue("services."+key+".status", want.status)(w, a)
			if note, _ := a.at("services." + key + ".note").(string); !strings.Contains(note, want.note) || want.status == "unknown" && note == "" {
				t.Errorf("got note %q, want one with %q", note, want.note)
			}
			unmeasured, _ := json.Marshal(a.at("unmeasured"))
			if listed := strings.Contains(string(unmeasured), `"`+key+`"`); listed != (want.status == "unknown") {
				t.Errorf("got unmeasured %s, want %s in it: %v", unmeasured, key, want.status == "unknown")
			}
		})
	}
	t.Run("top level", func(t *testing.T) { wantValue("status", "degraded")(w.on(t), a) })
	t.Run("url", func(t *testing.T) {
		w := w.on(t)
		port := w.services.Serving.URL[strings.LastIndex(w.services.Serving.URL, ":"):]
		wantValue("services.serving.url", "http://localhost"+port)(w, w.want(200, nobody, "GET", "/api/health", "", "Host", "localhost"+w.url[strings.LastIndex(w.url, ":"):]))
	})
	t.Run("all down", func(t *testing.T) {
		w := startWorld(t)
		w.services.Serving.Break()
		w.services.Tracker.Break()
		a := w.want(200, nobody, "GET", "/api/health", "")
		wantValue("services.serving.status", "down")(w, a)
		wantValue("status", "down")(w, a)
	})
}

// TestContractPartial walks "Composition": a source that is down is left out and named, and the answer stays 200.
func TestContractPartial(t *testing.T) {
	t.Parallel()
	w := startForRows(t)
	viewer := w.signIn(viewerPassword)
	w.services.Serving.Break()
	w.services.Tracker.Break()
	w.services.ControlPlane.Break()
	for path, want := range map[string]struct{ partial, shape string }{
		"/api/v1/overview":            {"[audit drift traffic]", "meta"},
		"/api/v1/mlops/registry":      {"[drift freshness promotion serving tracker traffic]", "registry"},
		"/api/v1/mlops/model/JPCP":    {"[cost drift promotion tracker traffic]", "detail"},
		"/api/v1/facility/overview":   {"[jobs]", "facility"},
		"/api/v1/facility/queue":      {"[jobs]", "queue"},
		"/api/v1/llmops/overview":     {"[endpoints evals]", "endpoints"},
		"/api/v1/governance/overview": {"[audit cards compliance posture]", ""},
		"/api/v1/finops/overview":     {"[budget carbon cost]", ""},
		"/api/v1/alerts":              {"[alerts]", "inbox"},
	} {
		t.Run(path, func(t *testing.T) {
			w := w.on(t)
			a := w.want(200, viewer, "GET", path, "")
			wantValue("_partial", want.partial)(w, a)
			if want.shape != "" && a.at(want.shape) == nil {
				t.Errorf("got %s, want its shape kept: %s", a.body, want.shape)
			}
		})
	}
	t.Run("/api/v1/facility/overview yields zeros", func(t *testing.T) {
		w := w.on(t)
		want := `{"clusters":[],"gpusAllocated":0,"jobsRunning":0,"nodesAllocated":0,"partitions":[],"queueDepth":0}`
		if got := asJSON(w.want(200, viewer, "GET", "/api/v1/facility/overview", "").at("facility")); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("/api/v1/copilot/ask", func(t *testing.T) {
		w := w.on(t)
		w.assistant.Close()
		a := w.want(200, viewer, "POST", "/api/v1/copilot/ask", `{"question": "why?"}`)
		wantValue("_partial", "[agent]")(w, a)
		a.hasMembers("", "answer hitl_required proposals trace error_code")
	})
}

// TestContractAlerts walks "Alerts".
func TestContractAlerts(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	viewer, admin := w.signIn(viewerPassword), w.signIn(adminPassword)
	t.Run("order and counts", func(t *testing.T) {
		w := w.on(t)
		a := w.want(200, viewer, "GET", "/api/v1/alerts", "")
		for path, want := range map[string]any{
			"inbox.count": 2, "inbox.unacknowledged": 2, "inbox.counts": map[string]any{"critical": 0, "error": 1, "warn": 1},
			"inbox.alerts.0.source": "budget", "inbox.alerts.0.severity": "error", "inbox.alerts.1.source": "eval", "inbox.alerts.1.severity": "warn",
		} {
			wantValue(path, want)(w, a)
		}
	})
	t.Run("ack", func(t *testing.T) {
		w := w.on(t)
		w.want(200, viewer, "POST", "/api/v1/alerts/budget:spent/ack", "")
		if n := len(w.audits("alert.ack")); n != 1 {
			t.Errorf("got %d facts alert.ack, want 1", n)
		}
	})
	t.Run("a repeated ack names the first actor", func(t *testing.T) {
		w := w.on(t)
		wantValue("acked_by", "local:viewer")(w, w.want(200, admin, "POST", "/api/v1/alerts/budget:spent/ack", ""))
		a := w.want(200, viewer, "GET", "/api/v1/alerts", "")
		wantValue("inbox.alerts.0.state", "acknowledged")(w, a)
		wantValue("inbox.alerts.0.acked_by", "local:viewer")(w, a)
		wantValue("inbox.unacknowledged", 1)(w, a)
	})
	for _, state := range []string{"resolved", "all"} {
		t.Run("state="+state, func(t *testing.T) {
			w.on(t).want(200, viewer, "GET", "/api/v1/alerts?state="+state, "")
		})
	}
	t.Run("422 another state", func(t *testing.T) {
		w.on(t).refused(422, "validation_failed", viewer, "GET", "/api/v1/alerts?state=firing", "")
	})
}

// TestContractFlags walks "Flags".
func TestContractFlags(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	viewer, admin := w.signIn(viewerPassword), w.signIn(adminPassword)
	defaults := w.want(200, viewer, "GET", "/api/v1/flags", "")
	definitions := w.want(200, admin, "GET", "/api/v1/flags/admin", "")
	for flag, row := range map[string]struct {
		standard, viewer bool
		tags             string
		percentage       int
	}{
		"mlopsConsole": {true, true, "[]", 100}, "facilityConsole": {true, true, "[]", 100}, "llmopsConsole": {true, true, "[]", 100}, "finopsConsole": {true, true, "[]", 100},
		"commandPalette": {true, true, "[]", 100}, "copilotDrawer": {true, true, "[kill-switch]", 100}, "toolProxy": {true, true, "[kill-switch]", 100},
		"incidentTimeline": {false, false, "[beta]", 50},
	} {
		t.Run(flag, func(t *testing.T) {
			w := w.on(t)
			wantValue("flags."+flag, row.viewer)(w, defaults)
			all, _ := definitions.at("flags").([]any)
			i := slices.IndexFunc(all, func(f any) bool { return memberAt(f, "name") == flag })
			if i < 0 {
				t.Fatal("not listed for admins")
			}
			got := fmt.Sprintln(memberAt(all[i], "default"), memberAt(all[i], "tags"), memberAt(all[i], "targeting.percentage"), memberAt(all[i], "override"))
			if want := fmt.Sprintln(row.standard, row.tags, row.percentage, nil); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
	w.want(200, admin, "POST", "/api/v1/flags/incidentTimeline", `{"enabled": true}`)
	t.Run("bucket of local:viewer is 97", func(t *testing.T) {
		w := w.on(t)
		a := w.want(200, viewer, "POST", "/ofrep/v1/evaluate/flags/incidentTimeline", "")
		wantValue("value", false)(w, a)
		wantValue("reason", "SPLIT")(w, a)
	})
	t.Run("true is true for admins", func(t *testing.T) {
		w := w.on(t)
		a := w.want(200, admin, "POST", "/ofrep/v1/evaluate/flags/incidentTimeline", "")
		wantValue("value", true)(w, a)
		wantValue("reason", "TARGETING_MATCH")(w, a)
	})
	t.Run("updated false for an unknown flag", func(t *testing.T) {
		w := w.on(t)
		wantValue("updated", false)(w, w.want(200, admin, "POST", "/api/v1/flags/nothing", `{"enabled": true}`))
	})
	t.Run("422 without enabled", func(t *testing.T) {
		w.on(t).refused(422, "validation_failed", admin, "POST", "/api/v1/flags/commandPalette", `{}`)
	})
	t.Run("DELETE drops the override", func(t *testing.T) {
		w := w.on(t)
		wantValue("enabled", false)(w, w.want(200, admin, "DELETE", "/api/v1/flags/incidentTimeline", ""))
		wantValue("flags.incidentTimeline", false)(w, w.want(200, admin, "GET", "/api/v1/flags", ""))
		a := w.want(200, admin, "POST", "/ofrep/v1/evaluate/flags/incidentTimeline", "")
		wantValue("reason", "DISABLED")(w, a)
	})
	t.Run("OFREP", func(t *testing.T) {
		w := w.on(t)
		a := w.want(200, viewer, "POST", "/ofrep/v1/evaluate/flags", "")
		if again := w.call(viewer, "POST", "/ofrep/v1/evaluate/flags", "", "If-None-Match", a.header.Get("ETag")); again.status != 304 {
			t.Errorf("with If-None-Match: got %d, want 304", again.status)
		}
		wantValue("errorCode", "FLAG_NOT_FOUND")(w, w.want(404, viewer, "POST", "/ofrep/v1/evaluate/flags/nothing", ""))
	})
}

// TestContractCollaboration walks "Collaboration".
func TestContractCollaboration(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	viewer, admin := w.signIn(viewerPassword), w.signIn(adminPassword)
	comments := "/api/v1/collab/model/JPCP/comments"
	for body, want := range map[string]struct{ stored, mentions string }{
		"<scr<script>ipt>alert(1)":         {"", ""}, // whatever remains, it is not an element
		`[x](java&#x73;cript:a)`:           {"", ""},
		"a@b.c @eve `@code` @eve":          {"a@b.c @eve `@code` @eve", "[eve]"},
		"e\u0301 @a.b-c: and @x.":          {"\u00e9 @a.b-c: and @x.", "[a.b-c x]"},
		strings.Repeat("@u ", 1) + "hello": {"@u hello", "[u]"},
	} {
		t.Run(body, func(t *testing.T) {
			w := w.on(t)
			raw, _ := json.Marshal(map[string]string{"body": body})
			a := w.want(200, viewer, "POST", comments, string(raw))
			stored := strings.ToLower(fmt.Sprint(a.at("body")))
			if strings.Contains(stored, "<script") || strings.Contains(stored, "javascript:") || want.stored != "" && stored != want.stored {
				t.Errorf("got body %q, want it inert: %q", stored, want.stored)
			}
			if want.mentions != "" {
				wantValue("mentions", want.mentions)(w, a)
			}
			wantValue("author", "local:viewer")(w, a)
		})
	}
	for name, body := range map[string]string{
		"422 validation_failed": `{"body": "` + strings.Repeat("x", 4001) + `"}`, "422 empty_comment": `{"body": "<b></b>"}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, code, _ := strings.Cut(name, " ")
			w.on(t).refused(422, code, viewer, "POST", comments, body)
		})
	}
	for name, path := range map[string]string{"type": "/api/v1/collab/Model/x/comments", "id": "/api/v1/collab/model/" + strings.Repeat("x", 201) + "/comments"} {
		t.Run("422 "+name, func(t *testing.T) {
			w.on(t).refused(422, "validation_failed", viewer, "GET", path, "")
		})
	}
	t.Run("DELETE by author and admin", func(t *testing.T) {
		w := w.on(t)
		of := func(who person) string {
			return comments + "/" + fmt.Sprint(w.want(200, who, "POST", comments, `{"body": "x"}`).at("id"))
		}
		w.want(204, viewer, "DELETE", of(viewer), "")
		w.want(204, admin, "DELETE", of(viewer), "")
		if a := w.call(viewer, "DELETE", of(admin), ""); a.status != 403 && a.status != 404 {
			t.Errorf("another's: got %d, want it refused", a.status)
		}
	})
	t.Run("another tenant sees nothing", func(t *testing.T) {
		w := w.on(t)
		stranger := person{"Cookie", w.signOn(map[string]any{"sub": "9", "org": "other"})}
		wantValue("comments", []any{})(w, w.want(200, stranger, "GET", comments, ""))
		for _, entry := range w.want(200, stranger, "GET", "/api/v1/collab/model/JPCP/activity", "").at("activity").([]any) {
			if memberAt(entry, "kind") != "audit" { // facts of the tenant platform are everybody's
				t.Errorf("got %v, want none of the tenant's own", entry)
			}
		}
	})
	made := w.want(200, viewer, "POST", "/api/v1/collab/snapshot", `{"view": {"a": [1]}}`)
	token := fmt.Sprint(made.at("token"))
	t.Run("snapshot", func(t *testing.T) {
		w := w.on(t)
		if len(token) != 43 {
			t.Errorf("got token %q, want 32 bytes in base64url", token)
		}
		a := w.want(200, admin, "GET", "/api/v1/collab/snapshot/"+token, "")
		a.hasMembers("", "found view read_only expires_at created_by")
		wantValue("read_only", true)(w, a)
		wantValue("view", map[string]any{"a": []int{1}})(w, a)
	})
	for name, body := range map[string]string{
		"ttl_hours 0": `{"view": {}, "ttl_hours": 0}`, "ttl_hours 721": `{"view": {}, "ttl_hours": 721}`, "view no object": `{"view": []}`, "no view": `{}`,
		"view over 64 KiB": `{"view": {"a": "` + strings.Repeat("x", 64<<10) + `"}}`, "17 levels": `{"view": ` + strings.Repeat(`{"a":`, 17) + `1` + strings.Repeat(`}`, 17) + `}`,
	} {
		t.Run("422 "+name, func(t *testing.T) {
			w.on(t).refused(422, "validation_failed", viewer, "POST", "/api/v1/collab/snapshot", body)
		})
	}
	t.Run("a foreign snapshot is not found", func(t *testing.T) {
		w := w.on(t)
		stranger := person{"Cookie", w.signOn(map[string]any{"sub": "9", "org": "other"})}
		if got := string(w.want(200, stranger, "GET", "/api/v1/collab/snapshot/"+token, "").body); strings.TrimSpace(got) != `{"found":false}` {
			t.Errorf("got %s, want found false alone", got)
		}
	})
}
