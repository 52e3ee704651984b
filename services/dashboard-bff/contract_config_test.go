package dashboard_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestContractConfig walks "Config".
func TestContractConfig(t *testing.T) {
	t.Parallel()
	w := startWorld(t, "DASHBOARD_UPSTREAM_ALLOW=allowed.example,allowed.example:9000")
	viewer, admin := w.signIn(viewerPassword), w.signIn(adminPassword)
	w.want(200, admin, "PUT", "/api/config", `{"forge_token": "hunter2", "forge_project_id": "7", "threshold_jpcp_rmse": "12.5"}`)
	for name, who := range map[string]person{"viewer": viewer, "admin": admin} {
		t.Run("secrets are masked for a "+name, func(t *testing.T) {
			w := w.on(t)
			a := w.want(200, who, "GET", "/api/config", "")
			wantValue("forge_token", "***")(w, a)
			wantValue("forge_pipeline_token", nil)(w, a)
			wantValue("forge_project_id", "7")(w, a)
			if strings.Contains(string(a.body), "hunter2") {
				t.Error("got the secret")
			}
		})
	}
	for name, body := range map[string]string{
		"unknown key": `{"nothing": "x", "forge_project_id": "8"}`, "no string": `{"forge_project_id": 8}`, "empty secret": `{"forge_token": ""}`, "secret ***": `{"forge_token": "***"}`,
		"userinfo": `{"tracker_url": "http://u:p@allowed.example"}`, "another scheme": `{"tracker_url": "ftp://allowed.example"}`, "another host": `{"tracker_url": "http://evil.example"}`,
		"another port": `{"tracker_url": "http://allowed.example:22"}`,
	} {
		t.Run("422 "+name, func(t *testing.T) {
			w := w.on(t)
			w.refused(422, "validation_failed", admin, "PUT", "/api/config", body)
			wantValue("forge_project_id", "7")(w, w.want(200, viewer, "GET", "/api/config", ""))
		})
	}
	for _, address := range []string{"http://allowed.example", "https://allowed.example/x", "http://allowed.example:9000"} {
		t.Run("allowed "+address, func(t *testing.T) {
			w := w.on(t)
			wantValue("metrics_store_url", address)(w, w.want(200, admin, "PUT", "/api/config", `{"metrics_store_url": "`+address+`"}`))
		})
	}
	t.Run("If-Match", func(t *testing.T) {
		w := w.on(t)
		tag := w.want(200, viewer, "GET", "/api/config", "").header.Get("ETag")
		w.want(200, admin, "PUT", "/api/config", `{"scheduler_time": "02:00:00"}`, "If-Match", tag)
		w.refused(412, "config_changed", admin, "PUT", "/api/config", `{"scheduler_time": "03:00:00"}`, "If-Match", tag)
	})
	t.Run("null clears", func(t *testing.T) {
		w := w.on(t)
		wantValue("forge_project_id", nil)(w, w.want(200, admin, "PUT", "/api/config", `{"forge_project_id": null}`))
	})
	t.Run("keys", func(t *testing.T) {
		w := w.on(t)
		a := w.want(200, viewer, "GET", "/api/config/keys", "")
		var all []map[string]any
		if err := json.Unmarshal(a.body, &all); err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]string{"forge_token": "true true stored secret local:admin", "tracker_url": "false true environment url <nil>", "orchestrator_url": "false false environment url <nil>"} {
			i := slices.IndexFunc(all, func(k map[string]any) bool { return k["key"] == key })
			if i < 0 {
				t.Errorf("%s is not listed", key)
				continue
			}
			k := all[i]
			if got := fmt.Sprint(k["is_secret"], " ", k["has_value"], " ", k["source"], " ", k["type"], " ", k["updated_by"]); got != want {
				t.Errorf("%s: got %s, want %s", key, got, want)
			}
		}
	})
	t.Run("audit", func(t *testing.T) {
		w := w.on(t)
		if len(w.audits("config.set")) == 0 || len(w.audits("config.clear")) != 1 {
			t.Errorf("got %d facts config.set and %d config.clear, want some and 1", len(w.audits("config.set")), len(w.audits("config.clear")))
		}
		if raw, _ := json.Marshal(w.audits("config.set")); strings.Contains(string(raw), "hunter2") {
			t.Error("a fact holds the secret")
		}
	})
}

// TestContractAudit walks "Audit".
func TestContractAudit(t *testing.T) {
	t.Parallel()
	w := startWorld(t)
	admin := w.signIn(adminPassword)
	t.Run("parameters", func(t *testing.T) {
		w := w.on(t)
		w.want(200, admin, "GET", "/api/audit?limit=3&model=JPCP&action=a&source=cli&actor=b&q=two+words&since=2026-01-02T03:04:05Z&until=2027-01-02T03:04:05Z", "")
		for name, want := range map[string]string{"limit": "3", "model": "JPCP", "action": "a", "source": "cli", "actor": "b", "q": "two words", "since": "2026-01-02T03:04:05Z", "until": "2027-01-02T03:04:05Z"} {
			if got := w.records.LastQuery()[name]; got != want {
				t.Errorf("the ledger was asked for %s=%q, want %q", name, got, want)
			}
		}
	})
	t.Run("limit default 50", func(t *testing.T) {
		w := w.on(t)
		w.want(200, admin, "GET", "/api/audit", "")
		if got := w.records.LastQuery()["limit"]; got != "50" {
			t.Errorf("got limit %s, want 50", got)
		}
	})
	t.Run("next_cursor", func(t *testing.T) {
		w := w.on(t)
		first := w.want(200, admin, "GET", "/api/audit?limit=3", "")
		second := w.want(200, admin, "GET", "/api/audit?limit=3&cursor="+url.QueryEscape(fmt.Sprint(first.at("next_cursor"))), "")
		third := w.want(200, admin, "GET", "/api/audit?limit=3&offset=3", "")
		if first.at("items.0.id") == second.at("items.0.id") || second.at("items.0.id") != third.at("items.0.id") {
			t.Errorf("got pages that begin with %v, %v and, by offset, %v; want the second and third equal", first.at("items.0.id"), second.at("items.0.id"), third.at("items.0.id"))
		}
	})
	for _, query := range []string{"limit=0", "limit=501", "since=now", "offset=-1", "actors=x", "cursor=x"} {
		t.Run("422 "+query, func(t *testing.T) {
			w.on(t).refused(422, "validation_failed", admin, "GET", "/api/audit?"+query, "")
		})
	}
	t.Run("502 with the control plane away", func(t *testing.T) {
		w := w.on(t)
		w.services.ControlPlane.Break()
		defer w.services.ControlPlane.Resume()
		w.refused(502, "upstream_unavailable", admin, "GET", "/api/audit", "")
	})
}
