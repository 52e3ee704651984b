package flag_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/flag"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/recordstest"
)

func TestMain(m *testing.M) { testenv.Main(m) }

type replica struct {
	*recordstest.App
	*flag.Flags
	pool *pgxpool.Pool
}

func newReplica(t *testing.T, pool *pgxpool.Pool) replica {
	t.Helper()
	f, err := flag.New(flag.Config{Pool: pool, Log: recordstest.Log()})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	app := recordstest.NewApp(t)
	app.Echo.GET("/api/v1/flags", f.List)
	app.Echo.GET("/api/v1/flags/admin", f.ListDefinitions)
	app.Echo.POST("/api/v1/flags/:name", f.Set)
	app.Echo.DELETE("/api/v1/flags/:name", f.Clear)
	app.Echo.POST("/ofrep/v1/evaluate/flags", f.EvaluateAll)
	app.Echo.POST("/ofrep/v1/evaluate/flags/:key", f.Evaluate)
	return replica{app, f, pool}
}

func start(t *testing.T) replica {
	t.Helper()
	return newReplica(t, recordstest.Pool(t))
}

func (r replica) flagsOf(who caller.Caller) map[string]bool {
	r.T.Helper()
	return recordstest.Decode[api.CallerFlags](r.Want(200, who, "GET", "/api/v1/flags", nil)).Flags
}

func TestDefaultsAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	r := start(t)
	want := map[string]bool{
		"mlopsConsole": true, "facilityConsole": true, "llmopsConsole": true, "finopsConsole": true, "commandPalette": true,
		"copilotDrawer": true, "toolProxy": true, "incidentTimeline": false,
	}
	for _, who := range []caller.Caller{recordstest.Viewer, recordstest.Admin} {
		if got := r.flagsOf(who); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want %v", who.Subject, got, want)
		}
	}
	admin := recordstest.Decode[api.AdminFlags](r.Want(200, recordstest.Admin, "GET", "/api/v1/flags/admin", nil))
	if admin.Count != 8 || len(admin.Flags) != 8 {
		t.Fatalf("got %d, %d flags; want 8", admin.Count, len(admin.Flags))
	}
	for _, f := range admin.Flags {
		tags, percentage := "[]", 100
		switch f.Name {
		case "copilotDrawer", "toolProxy":
			tags = "[kill-switch]"
		case "incidentTimeline":
			tags, percentage = "[beta]", 50
		}
		if fmt.Sprint(f.Tags) != tags || f.Targeting.Percentage != percentage || f.Override != nil || f.Default != want[f.Name] || f.Effective != want[f.Name] {
			t.Errorf("got %+v; want tags %s, %d %%, default %v, no override", f, tags, percentage, want[f.Name])
		}
	}
}

// The vectors: 41 and 24 are within 50 percent, 61 and 97 are not.
func TestRolloutIsTheSameForASubjectEverywhere(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.Want(200, recordstest.Admin, "POST", "/api/v1/flags/incidentTimeline", `{"enabled": true}`)
	for subject, want := range map[string]bool{"idp-a:1001": true, "idp-a:1002": true, "idp-a:1003": false, "local:viewer": false} {
		who := caller.Caller{Subject: subject, Tenant: "default", Role: caller.Viewer}
		if got := r.flagsOf(who)["incidentTimeline"]; got != want {
			t.Errorf("%s: got %v, want %v", subject, got, want)
		}
		if on, err := r.Enabled(t.Context(), who, "incidentTimeline"); on != want || err != nil {
			t.Errorf("Enabled for %s: got %v, %v; want %v", subject, on, err, want)
		}
		who.Role = caller.Admin
		if got := r.flagsOf(who)["incidentTimeline"]; !got {
			t.Errorf("%s as admin: got false; admins pass a rollout", subject)
		}
	}
}

func TestKillSwitchRefusesAdminsToo(t *testing.T) {
	t.Parallel()
	r := start(t)
	requireOn := func(who caller.Caller, want bool) {
		t.Helper()
		if on, err := r.Enabled(t.Context(), who, flag.ToolProxy); on != want || err != nil {
			t.Errorf("toolProxy for %s of tenant %s = %v, %v; want %v", who.Subject, who.Tenant, on, err, want)
		}
	}
	requireOn(recordstest.Admin, true)
	r.Want(200, recordstest.Admin, "POST", "/api/v1/flags/toolProxy", `{"enabled": false}`)
	requireOn(recordstest.Admin, false)
	requireOn(recordstest.StrangerAdmin, true) // the other tenant's own matter
	r.Want(200, recordstest.Admin, "DELETE", "/api/v1/flags/toolProxy", nil)
	requireOn(recordstest.Admin, true)
	if _, err := r.Enabled(t.Context(), recordstest.Admin, "noSuchFlag"); err == nil {
		t.Error("got no error for a flag that is not defined")
	}
}

func TestOverrideIsPersistedAuditedAndAnnounced(t *testing.T) {
	t.Parallel()
	r := start(t)
	change := func(want string, method, name string, body any) {
		t.Helper()
		got := recordstest.Decode[api.FlagChange](r.Want(200, recordstest.Admin, method, "/api/v1/flags/"+name, body))
		if s := fmt.Sprint(got); s != want {
			t.Errorf("%s %s: got %s, want %s", method, name, s, want)
		}
	}
	change("{true noSuchFlag false}", "POST", "noSuchFlag", `{"enabled": true}`)
	change("{false noSuchFlag false}", "DELETE", "noSuchFlag", nil)
	change("{true incidentTimeline true}", "POST", "incidentTimeline", `{"enabled": true}`)
	change("{false incidentTimeline true}", "POST", "incidentTimeline", `{"enabled": false}`)
	change("{false incidentTimeline true}", "DELETE", "incidentTimeline", nil)
	change("{false incidentTimeline false}", "DELETE", "incidentTimeline", nil)
	var facts []string
	for _, action := range []string{"flag.set", "flag.clear"} {
		for _, a := range recordstest.Audits(t, r.pool, action) {
			d := a["details"].(map[string]any)
			facts = append(facts, fmt.Sprint(action, " ", a["actor"], " ", a["tenant"], " ", a["target"], " ", d["old"], " ", d["new"]))
		}
	}
	want := []string{
		"flag.set local:admin default flag:incidentTimeline <nil> true", "flag.set local:admin default flag:incidentTimeline true false",
		"flag.clear local:admin default flag:incidentTimeline false <nil>",
	}
	if !slices.Equal(facts, want) {
		t.Errorf("got facts %q\nwant %q", facts, want)
	}
	var events []string
	for _, e := range recordstest.Events(t, r.pool, "event.flag_changed") {
		events = append(events, fmt.Sprint(e.Tenant, " ", e.Actor, " ", e.Data["name"], " ", e.Data["enabled"]))
	}
	if want := []string{"default local:admin incidentTimeline true", "default local:admin incidentTimeline false", "default local:admin incidentTimeline false"}; !slices.Equal(events, want) {
		t.Errorf("got events %q\nwant %q", events, want)
	}
	for _, body := range []string{`{}`, `{"enabled": null}`, `{"enabled": "yes"}`, `{"enabled": true, "tenant": "other"}`, ``} {
		r.Want(422, recordstest.Admin, "POST", "/api/v1/flags/toolProxy", body)
	}
}

func TestOverrideIsOfOneTenantAndOutlivesARestart(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.Want(200, recordstest.Admin, "POST", "/api/v1/flags/commandPalette", `{"enabled": false}`)
	after := newReplica(t, r.pool)
	if got := after.flagsOf(recordstest.Viewer)["commandPalette"]; got {
		t.Error("own tenant: got true after a restart, want the override")
	}
	if got := after.flagsOf(recordstest.Stranger)["commandPalette"]; !got {
		t.Error("other tenant: got false, want the default")
	}
	for _, f := range recordstest.Decode[api.AdminFlags](after.Want(200, recordstest.StrangerAdmin, "GET", "/api/v1/flags/admin", nil)).Flags {
		if f.Override != nil || f.UpdatedBy != nil {
			t.Errorf("other tenant: got %+v, want no override", f)
		}
	}
	for _, f := range recordstest.Decode[api.AdminFlags](after.Want(200, recordstest.Admin, "GET", "/api/v1/flags/admin", nil)).Flags {
		if f.Name == "commandPalette" && (f.Override == nil || *f.Override || f.UpdatedBy == nil || *f.UpdatedBy != "local:admin" || f.Effective) {
			t.Errorf("own tenant: got %+v, want false by local:admin", f)
		}
	}
}

func TestOverrideReachesOtherReplicas(t *testing.T) {
	t.Parallel()
	a := start(t)
	b := newReplica(t, recordstest.Reopen(t, a.pool.Config().ConnString()))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Watch(ctx) }()
	a.Want(200, recordstest.Admin, "POST", "/api/v1/flags/copilotDrawer", `{"enabled": false}`)
	testenv.Eventually(t, 20*time.Second, func() error {
		if on, err := b.Enabled(ctx, recordstest.Admin, flag.CopilotDrawer); on || err != nil {
			return fmt.Errorf("got %v, %v; want off", on, err)
		}
		return nil
	})
	stop()
	if err := <-done; err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

func TestOFREPReasonsAndETag(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.Want(200, recordstest.Admin, "POST", "/api/v1/flags/incidentTimeline", `{"enabled": true}`)
	r.Want(200, recordstest.Admin, "POST", "/api/v1/flags/toolProxy", `{"enabled": false}`)
	const all = "/ofrep/v1/evaluate/flags"
	for _, v := range []struct {
		who    caller.Caller
		key    string
		value  bool
		reason api.OFREPFlagReason
	}{
		{recordstest.Viewer, "mlopsConsole", true, api.STATIC}, {recordstest.Viewer, "toolProxy", false, api.DISABLED},
		{recordstest.Viewer, "incidentTimeline", false, api.SPLIT}, {recordstest.Admin, "incidentTimeline", true, api.TARGETINGMATCH},
	} {
		got := recordstest.Decode[api.OFREPFlag](r.Want(200, v.who, "POST", all+"/"+v.key, `{"context": {"targetingKey": "idp-a:1001", "role": "admin"}}`))
		if got.Value == nil || *got.Value != v.value || got.Reason == nil || *got.Reason != v.reason || got.Key != v.key {
			t.Errorf("%s for %s: got %s %v; want %v %s", v.key, v.who.Subject, *got.Reason, *got.Value, v.value, v.reason)
		}
	}
	missing := recordstest.Decode[api.OFREPFlag](r.Want(404, recordstest.Viewer, "POST", all+"/noSuchFlag", `{}`))
	if missing.ErrorCode == nil || *missing.ErrorCode != "FLAG_NOT_FOUND" || missing.Key != "noSuchFlag" {
		t.Errorf("got %+v, want FLAG_NOT_FOUND", missing)
	}
	first := r.Want(200, recordstest.Viewer, "POST", all, nil)
	if got := recordstest.Decode[api.OFREPFlags](first); len(got.Flags) != 8 {
		t.Errorf("got %d flags, want 8", len(got.Flags))
	}
	tag := first.Header.Get("ETag")
	if same := r.Want(304, recordstest.Viewer, "POST", all, `{"context": {}}`, "If-None-Match", tag); len(same.Body) != 0 {
		t.Errorf("got %q with 304, want nothing", same.Body)
	}
	if other := r.Want(200, recordstest.Admin, "POST", all, nil, "If-None-Match", tag); other.Header.Get("ETag") == tag {
		t.Error("got the viewer's ETag for an admin whose flags differ")
	}
}
