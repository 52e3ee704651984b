//go:build e2e

package dashboard_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/e2e/harness"
)

// mark is a word that only the tenant default wrote: an answer to the other tenant that contains it leaks.
const mark = "row10only"

func TestRow10AnotherTenantSeesNothing(t *testing.T) {
	t.Parallel()
	w := sharedWorld(t)
	ours, theirs := w.passwordLogin(t, "admin"), w.foreigner("row10", "admin")
	heard := w.openStream(t, w.url, theirs, "")
	heard.next(t, "hello")
	own := w.openStream(t, w.url, ours, "")
	own.next(t, "hello")

	// The objects of the tenant default.
	comments := w.url + "/api/v1/collab/model/" + strings.ToUpper(mark) + "/comments"
	c := decode[comment](t, w.want(t, http.StatusOK, http.MethodPost, comments, ours, map[string]string{"body": mark + " says @bob"}))
	snapshot := decode[struct{ Token string }](t, w.want(t, http.StatusOK, http.MethodPost, w.url+"/api/v1/collab/snapshot", ours, map[string]any{"view": map[string]string{"word": mark}})).Token
	w.want(t, http.StatusOK, http.MethodPost, w.url+"/api/v1/selfobs/action", ours, map[string]string{"action": mark, "target": "model:" + mark, "details": mark})
	w.manage(t, http.MethodPost, "/costs", map[string]any{"model": "MACK", "version": "1", "scheduler": "slurm", "job_id": mark, "gpu_hours": 5, "cpu_hours": 0, "project": mark})
	w.manage(t, http.MethodPut, "/budgets/"+mark, map[string]any{"cost_budget": 1})
	w.fileChange(t, "MACK", mark)
	own.nextThat(t, "our own mention", func(f frame) bool { return f.event == "event.mention" && f.data["comment_id"] == c.ID })

	// The tenant default finds all of it, or the rest would prove nothing.
	routes := map[string]string{
		"comments": comments, "activity": strings.Replace(comments, "/comments", "/activity", 1), "snapshot": w.url + "/api/v1/collab/snapshot/" + snapshot,
		"alerts": w.url + "/api/v1/alerts", "search": w.url + "/api/v1/search?q=" + mark, "audit": w.url + "/api/audit?limit=200",
		"cost": w.url + "/api/v1/finops/overview", "control plane": w.url + "/api/proxy/control_plane/approvals",
	}
	for name, route := range routes {
		harness.Eventually(t, patience, func() error {
			if a := w.call(t, http.MethodGet, route, ours, nil); a.Status != http.StatusOK || !strings.Contains(strings.ToLower(string(a.Body)), mark) {
				return fmt.Errorf("%s: the tenant that wrote it gets %d %.300s", name, a.Status, a.Body)
			}
			return nil
		})
	}

	for name, route := range routes {
		a := w.call(t, http.MethodGet, route, theirs, nil)
		body := strings.ToLower(string(a.Body))
		for _, echo := range []string{`"query":"` + mark + `"`, strings.ToLower(strings.TrimPrefix(route, w.url))} { // the caller's own text
			body = strings.ReplaceAll(body, echo, "")
		}
		if a.Status != http.StatusOK || strings.Contains(body, mark) {
			t.Errorf("%s for the other tenant: got %d %s, want 200 with nothing of %s", name, a.Status, a.Body, mark)
		}
	}
	if found := w.call(t, http.MethodGet, routes["snapshot"], theirs, nil).JSON(t); found["found"] != false || len(found) != 1 {
		t.Errorf("a snapshot of another tenant: got %v, want found false alone", found)
	}
	w.call(t, http.MethodPost, w.url+"/api/v1/alerts/budget:"+mark+"/ack", theirs, nil).problem(t, http.StatusNotFound, "alert_not_found")
	w.call(t, http.MethodDelete, comments+"/"+c.ID, theirs, nil).problem(t, http.StatusNotFound, "not_found")
	if list := string(w.want(t, http.StatusOK, http.MethodGet, comments, ours, nil).Body); !strings.Contains(list, mark) {
		t.Errorf("after the other tenant's attempt to delete: got %s, want the comment", list)
	}

	// The stream: their own event arrives, and none of ours before it.
	mine := decode[comment](t, w.want(t, http.StatusOK, http.MethodPost, comments, theirs, map[string]string{"body": "hello @carol"}))
	heard.nextThat(t, "the other tenant's own mention", func(f frame) bool {
		if text := strings.ToLower(fmt.Sprint(f.data)); strings.Contains(text, mark) && f.data["comment_id"] != mine.ID {
			t.Errorf("the other tenant's stream got %s %v", f.event, f.data)
		}
		return f.event == "event.mention" && f.data["comment_id"] == mine.ID
	})
	replayed := w.openStream(t, w.url, theirs, "1") // everything that the broker has
	replayed.nextThat(t, "the other tenant's own mention, replayed", func(f frame) bool {
		if f.data["comment_id"] == c.ID {
			t.Errorf("the replay got %v of the tenant default", f.data)
		}
		return f.event == "event.mention" && f.data["comment_id"] == mine.ID
	})
}
