package audit_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/audit"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/recordstest"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const path = "/api/audit"

func start(t *testing.T) (*recordstest.App, *recordstest.ControlPlane) {
	t.Helper()
	plane := recordstest.NewControlPlane(t)
	return newApp(t, plane.URL), plane
}

func newApp(t *testing.T, url string) *recordstest.App {
	t.Helper()
	l, err := audit.New(audit.Config{Clients: recordstest.Clients(t, url)})
	if err != nil {
		t.Fatal(err)
	}
	app := recordstest.NewApp(t)
	app.Echo.GET(path, l.List)
	return app
}

func read(app *recordstest.App, query string) api.AuditPage {
	app.T.Helper()
	return recordstest.Decode[api.AuditPage](app.Want(200, recordstest.Admin, "GET", path+query, nil))
}

func TestEntriesAreThoseOfTheLedger(t *testing.T) {
	t.Parallel()
	app, _ := start(t)
	got := read(app, "")
	want := recordstest.Recorded[controlplane.AuditEventList](t, "audit").Items
	if got.Total != 7 || len(got.Items) != 7 || got.NextCursor != nil {
		t.Fatalf("got %d of %d entries, next %v; want all 7", len(got.Items), got.Total, got.NextCursor)
	}
	for i, e := range got.Items {
		w := want[i]
		if e.Id != w.EventId.String() || e.At.Format("2006-01-02T15:04:05.000000Z") != w.Ts || e.Actor != w.Actor || e.Action != w.Action ||
			e.Target != w.Target || e.Source != w.Source || e.Outcome != string(w.Outcome) || e.Hash != w.Hash || e.Seq != w.Seq || cmp.Diff(e.RequestId, w.RequestId) != "" {
			t.Errorf("got %+v, want %+v", e, w)
		}
	}
	config := got.Items[0]
	if config.Key == nil || *config.Key != "tracker_url" || config.Role == nil || *config.Role != "admin" || config.Details["new"] != "http://127.0.0.1:15000" {
		t.Errorf("got %+v; want key, role and details of a configuration change", config)
	}
	if e := got.Items[1]; e.Key != nil || e.Role != nil || e.Outcome != "denied" {
		t.Errorf("got %+v; want neither key nor role", e)
	}
}

func TestPagesByCursorAndByOffset(t *testing.T) {
	t.Parallel()
	app, _ := start(t)
	var all []string
	for _, e := range read(app, "").Items {
		all = append(all, e.Id)
	}
	var byCursor []string
	for cursor := ""; ; {
		page := read(app, "?limit=3&cursor="+cursor)
		for _, e := range page.Items {
			byCursor = append(byCursor, e.Id)
		}
		if page.Total != 7 {
			t.Errorf("got total %d, want 7", page.Total)
		}
		if page.NextCursor == nil {
			break
		}
		cursor = *page.NextCursor
	}
	if !slices.Equal(byCursor, all) {
		t.Errorf("by cursor: got %v, want %v", byCursor, all)
	}
	for _, offset := range []int{0, 1, 3, 6, 7, 10_000} {
		page := read(app, fmt.Sprintf("?limit=2&offset=%d", offset))
		var got []string
		for _, e := range page.Items {
			got = append(got, e.Id)
		}
		from := min(offset, len(all))
		if want := all[from:min(from+2, len(all))]; !slices.Equal(got, want) || page.Total != 7 {
			t.Errorf("offset %d: got %v of %d, want %v", offset, got, page.Total, want)
		}
	}
}

func TestFiltersReachTheControlPlane(t *testing.T) {
	t.Parallel()
	app, plane := start(t)
	if got := read(app, "?model=jpcp"); got.Total != 5 || len(got.Items) != 5 {
		t.Errorf("got %d of %d, want the 5 of the model", len(got.Items), got.Total)
	}
	read(app, "?limit=7&action=config.set&source=cli&actor=operator&since=2026-01-02T03:04:05Z&until=2026-02-02T03:04:05Z")
	want := map[string]string{
		"limit": "7", "action": "config.set", "source": "cli", "actor": "operator", "since": "2026-01-02T03:04:05Z", "until": "2026-02-02T03:04:05Z",
	}
	if got := plane.LastQuery(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, bad := range []string{"?limit=0", "?limit=501", "?offset=-1", "?offset=10001", "?offset=x", "?since=yesterday", "?cursor=x", "?tenant=other", "?actor=a&actor=b", "?actor=%00"} {
		app.Want(422, recordstest.Admin, "GET", path+bad, nil)
	}
	next := *read(app, "?limit=3").NextCursor
	app.Refused(422, "validation_failed", recordstest.Admin, "GET", path+"?offset=1&cursor="+next, nil)
}

func TestFailuresOfTheControlPlaneSayWhatToMend(t *testing.T) {
	t.Parallel()
	app, plane := start(t)
	plane.Set(recordstest.Broken)
	app.Refused(502, "upstream_unavailable", recordstest.Admin, "GET", path, nil)
	plane.Set(recordstest.Unauthorized)
	refused := app.Refused(502, "upstream_credentials", recordstest.Admin, "GET", path, nil)
	if got := refused.Header.Get("X-Upstream-Status"); got != "401" {
		t.Errorf("got X-Upstream-Status %q, want 401", got)
	}
	plane.Set(recordstest.Well)
	app.Refused(422, "validation_error", recordstest.Admin, "GET", path+"?action=refused", nil)
}

func TestAbsentControlPlane(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(nil)
	srv.Close()
	newApp(t, srv.URL).Refused(502, "upstream_unavailable", recordstest.Admin, "GET", path, nil)
	newApp(t, "").Refused(503, "service_not_configured", recordstest.Admin, "GET", path, nil)
}

func TestAnotherTenantSeesNothingEvenIfTheControlPlaneLeaks(t *testing.T) {
	t.Parallel()
	app, plane := start(t)
	for _, mode := range []recordstest.Mode{recordstest.Well, recordstest.Leaky} {
		plane.Set(mode)
		got := recordstest.Decode[api.AuditPage](app.Want(200, recordstest.StrangerAdmin, "GET", path, nil))
		if len(got.Items) != 0 {
			t.Errorf("mode %d: got %v, want nothing", mode, got.Items)
		}
	}
}
