package effect_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/effect"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/recordstest"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const (
	id   = "018f3a00-0000-7000-8000-000000000001"
	path = "/api/v1/approvals/" + id + "/effect"
)

func newApp(t *testing.T, answer http.HandlerFunc) *recordstest.App {
	t.Helper()
	plane := httptest.NewServer(answer)
	t.Cleanup(plane.Close)
	a, err := effect.New(effect.Config{Clients: recordstest.Clients(t, plane.URL)})
	if err != nil {
		t.Fatal(err)
	}
	app := recordstest.NewApp(t)
	app.Echo.GET("/api/v1/approvals/:id/effect", a.Get)
	return app
}

// Members that this dashboard does not know yet pass too.
func TestEffectIsTheControlPlanesAnswer(t *testing.T) {
	t.Parallel()
	app := newApp(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/approvals/"+id+"/effect" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"approval_id":"` + id + `","kind":"retrain","model_id":"JPCP","decidable":true,"action":"Approve and train","sentences":["A."],"moves":"never"}`))
	})
	got := recordstest.Decode[map[string]any](app.Want(200, recordstest.Admin, "GET", path, nil))
	want := map[string]any{
		"approval_id": id, "kind": "retrain", "model_id": "JPCP", "decidable": true, "action": "Approve and train", "sentences": []any{"A."}, "moves": "never",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the answer (-want +got):\n%s", diff)
	}
}

func TestEffectWithoutTheControlPlaneIsNoEffect(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{404: "not_found", 500: "upstream_unavailable", 401: "upstream_credentials"} {
		app := newApp(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		code := map[int]int{404: 404, 500: 502, 401: 502}[status]
		app.Refused(code, want, recordstest.Admin, "GET", path, nil)
	}
}
