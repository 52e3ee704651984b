package trackerd_test

import (
	"strings"
	"testing"
)

func TestOverview(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	if a := b.do(t, "GET", "/", nil); a.status != 200 || !strings.Contains(string(a.body), "No run has been logged yet") {
		t.Errorf(`empty: %d %s; want a.status == 200 && strings.Contains(string(a.body), "No run has been logged yet")`, a.status, a.body)
	}
	run, _ := b.run(t)
	b.want(t, 200, "POST", api+"runs/update", obj{"run_id": run, "run_name": "<script>alert(1)</script>"})
	b.want(t, 200, "POST", api+"runs/log-metric", obj{"run_id": run, "key": "rmse", "value": 0.123456789, "timestamp": 1})
	b.want(t, 200, "POST", api+"runs/log-metric", obj{"run_id": run, "key": "skill", "value": "NaN", "timestamp": 1})
	b.want(t, 200, "POST", api+"registered-models/create", obj{"name": "<b>runtime"})
	b.want(t, 200, "POST", api+"model-versions/create", obj{"name": "<b>runtime", "source": "runs:/" + run + "/model", "run_id": run})
	b.want(t, 200, "POST", api+"registered-models/alias", obj{"name": "<b>runtime", "alias": "Production", "version": "1"})
	a := b.do(t, "GET", "/", nil)
	page := string(a.body)
	for _, want := range []string{"&lt;script&gt;", "&lt;b&gt;runtime", "Production → 1", "rmse 0.123457", "skill NaN", run} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "<script") || !strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%v\n%s; want !strings.Contains(page, \"<script\") && strings.Contains(a.header.Get(\"Content-Security-Policy\"), \"default-src 'none'\")", a.header, page)
	}
}
