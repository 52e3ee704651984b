//go:build e2e

package loop

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/e2e/harness"
)

// Acceptance row 4: a promotion through the API is served within 10 s without a reload call, and the history names the
// actor and the time.
func TestRow04_PromoteServes(t *testing.T) {
	p := sharedPlatform(t)
	cp, operator := p.Env["CONTROL_PLANE_URL"], p.Secret(t, "operator_token")
	// Another person requests the training: no one decides the promotion of their own run.
	started := harness.Want(t, 200, "POST", cp+"/retrain", p.Env["CONTROL_PLANE_TOKEN"], map[string]any{"model_name": "RuntimeClass", "dataset_name": "IpscJobs"}).JSON(t)
	run := p.WaitRun(t, started["flow_run_id"].(string), 3*time.Minute)
	if run["state_type"] != "COMPLETED" {
		t.Fatalf(`run: %v; want run["state_type"] == "COMPLETED"`, run)
	}
	version := fmt.Sprint(run["model_version"])
	var promo map[string]any
	harness.Eventually(t, 20*time.Second, func() error {
		for _, x := range listItems(t, harness.Want(t, 200, "GET", cp+"/promotions?model=RUNTIMECLASS", operator, nil)) {
			if fmt.Sprint(x["version"]) == version && x["state"] == "pending" {
				promo = x
				return nil
			}
		}
		return fmt.Errorf("no pending promotion of version %s", version)
	})
	begin := time.Now()
	a := harness.Want(t, 200, "POST", cp+"/promotions/"+promo["id"].(string)+"/approve", operator, map[string]any{"reason": "row 4"}).JSON(t)
	if a["state"] != "promoted" && a["state"] != "approved" {
		t.Fatalf(`answer: %v; want (a["state"] == "promoted" || a["state"] == "approved")`, a)
	}
	body, err := os.ReadFile(heldOutBodies(t, p, "RuntimeClass")[0])
	if err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 10*time.Second, func() error {
		a := harness.Want(t, 200, "POST", p.Env["SERVING_URL"]+"/predict/RuntimeClass", p.Env["SERVING_TOKEN"], string(body)).JSON(t)
		if fmt.Sprint(a["model_version"]) != version {
			return fmt.Errorf("version %v answers", a["model_version"])
		}
		return nil
	})
	t.Logf("served %s after the approval", time.Since(begin).Round(time.Millisecond))
	hist := listItems(t, harness.Want(t, 200, "GET", cp+"/alias-history?model=RUNTIMECLASS&alias=Production", operator, nil))
	if len(hist) < 2 || fmt.Sprint(hist[0]["version"]) != version || hist[0]["actor"] != "operator" || hist[0]["via"] != "promotion" {
		t.Fatalf(`history: %v; want len(hist) >= 2 && fmt.Sprint(hist[0]["version"]) == version && hist[0]["actor"] == "operator" && hist[0]["via"] == "promotion"`, hist)
	}
	at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(hist[0]["from"]))
	if err != nil || at.Before(begin.Add(-time.Second)) || at.After(time.Now()) {
		t.Fatalf("instant: %v %v; want !at.Before(begin.Add(-time.Second)) && !at.After(time.Now())", hist[0]["from"], err)
	}
	// The holder before that time is still known.
	then := listItems(t, harness.Want(t, 200, "GET", cp+"/alias-history?model=RUNTIMECLASS&alias=Production&at="+at.Add(-time.Millisecond).UTC().Format(time.RFC3339Nano), operator, nil))
	if len(then) != 1 || fmt.Sprint(then[0]["version"]) == version {
		t.Fatalf(`holder before: %v; want len(then) == 1 && fmt.Sprint(then[0]["version"]) != version`, then)
	}
}

// Acceptance row 6: both job-log models beat both baselines on the held-out test set by the margins.
func TestRow06_Margins(t *testing.T) {
	p := sharedPlatform(t)
	metrics := func(model string) map[string]float64 {
		var info struct {
			Metrics map[string]float64 `json:"metrics"`
		}
		out := p.Run(t, "mlp", "--json", "models", "info", model)
		if err := json.Unmarshal([]byte(out), &info); err != nil {
			t.Fatal(err)
		}
		return info.Metrics
	}
	need := func(m map[string]float64, k string) float64 {
		t.Helper()
		v, ok := m[k]
		if !ok {
			t.Fatalf("no metric %s in %v; want ok", k, m)
		}
		return v
	}
	reg := metrics("RuntimeRegressor")
	for _, base := range []string{"baseline_", "baseline_running_"} {
		if male, ref := need(reg, "male"), need(reg, base+"male"); male > 0.95*ref {
			t.Errorf("male %.4f is not 5 %% below %smale %.4f; want male <= 0.95 * ref", male, base, ref)
		}
		if mae, ref := need(reg, "mae"), need(reg, base+"mae"); mae >= ref {
			t.Errorf("mae %.1f is not below %smae %.1f; want mae < ref", mae, base, ref)
		}
	}
	cls := metrics("RuntimeClass")
	for _, base := range []string{"baseline_", "baseline_running_"} {
		if acc, ref := need(cls, "accuracy"), need(cls, base+"accuracy"); acc < ref+0.03 {
			t.Errorf("accuracy %.4f is not 0.03 above %saccuracy %.4f; want acc >= ref + 0.03", acc, base, ref)
		}
		if f1, ref := need(cls, "f1_macro"), need(cls, base+"f1_macro"); f1 < ref+0.08 {
			t.Errorf("macro F1 %.4f is not 0.08 above %sf1_macro %.4f; want f1 >= ref + 0.08", f1, base, ref)
		}
	}
	t.Logf("RuntimeRegressor %v", reg)
	t.Logf("RuntimeClass %v", cls)
}

// Acceptance row 7: key order never matters, a missing key is a shape mismatch, text for a number is refused.
func TestRow07_Features(t *testing.T) {
	p := sharedPlatform(t)
	url, token := p.Env["SERVING_URL"]+"/predict/RUNTIMEREGRESSOR", p.Env["SERVING_TOKEN"]
	data, err := os.ReadFile(heldOutBodies(t, p, "RuntimeRegressor")[0])
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		Features map[string]json.RawMessage `json:"features"`
	}
	if err := json.Unmarshal(data, &body); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for k := range body.Features {
		keys = append(keys, k)
	}
	write := func(order []string) string {
		parts := make([]string, len(order))
		for i, k := range order {
			parts[i] = fmt.Sprintf("%q:%s", k, body.Features[k])
		}
		return `{"features":{` + strings.Join(parts, ",") + `}}`
	}
	first := harness.Want(t, 200, "POST", url, token, write(keys)).JSON(t)["prediction"]
	for i := range keys {
		rotated := append(append([]string{}, keys[i:]...), keys[:i]...)
		if got := harness.Want(t, 200, "POST", url, token, write(rotated)).JSON(t)["prediction"]; got != first {
			t.Fatalf("order changes the number: %v, %v; want got == %v", first, got, first)
		}
	}
	a := harness.Want(t, 500, "POST", url, token, write(keys[1:])).JSON(t)
	if a["code"] != "feature_shape_mismatch" || !strings.Contains(fmt.Sprint(a["errors"]), "missing") {
		t.Fatalf("missing key: %v", a)
	}
	body.Features[keys[0]] = json.RawMessage(`"many"`)
	a = harness.Want(t, 422, "POST", url, token, write(keys)).JSON(t)
	if a["code"] != "validation_error" {
		t.Fatalf(`text value: %v; want a["code"] == "validation_error"`, a)
	}
	for name, bad := range map[string]string{"NaN": "NaN", "null": "null", "infinite": "1e999"} {
		body.Features[keys[0]] = json.RawMessage(bad)
		if got := harness.Call(t, "POST", url, token, write(keys)); got.Status != 422 {
			t.Errorf("%s: %d %s; want got.Status == 422", name, got.Status, got.Body)
		}
	}
	refused := time.Now()
	if got := harness.Call(t, "POST", url, token, `{"features":{"x":"`+strings.Repeat("a", 10<<20)+`"}}`); got.Status != 413 {
		t.Errorf("10 MB: %d; want 413", got.Status)
	}
	if got := harness.Call(t, "POST", url, "", write(keys)); got.Status != 401 {
		t.Errorf("no credential: %d; want 401", got.Status)
	}
	// The non-finite numbers have made the model's inputs corrupt, which is an alert; other tests share the platform.
	// Requests are recorded in order, so they are included once the next request is.
	harness.Want(t, 200, "POST", url, token, string(data))
	status := p.Env["SERVING_URL"] + "/drift/input/status?model=RUNTIMEREGRESSOR&alias=Production"
	harness.Eventually(t, 60*time.Second, func() error {
		row := harness.Want(t, 200, "GET", status, token, nil).List(t)[0]
		at, err := time.Parse(time.RFC3339, fmt.Sprint(row["newest_at"]))
		if err != nil || at.Before(refused) || row["overall"] != "CORRUPT" {
			return fmt.Errorf("newest input at %v, overall %v; want CORRUPT inputs up to after %s", row["newest_at"], row["overall"], refused)
		}
		return nil
	})
	harness.Want(t, 200, "POST", p.Env["SERVING_URL"]+"/drift/input/RUNTIMEREGRESSOR/reset", token, map[string]any{})
}

// Acceptance row 13: one idempotency key gives one run; another body under it conflicts.
func TestRow13_Idempotency(t *testing.T) {
	p := sharedPlatform(t)
	cp, operator := p.Env["CONTROL_PLANE_URL"], p.Secret(t, "operator_token")
	body := map[string]any{"model_name": "JPCP", "dataset_name": "JobEmbeddings", "is_dummy": true}
	first := harness.Want(t, 200, "POST", cp+"/retrain", operator, body, "Idempotency-Key", "row-13")
	second := harness.Want(t, 200, "POST", cp+"/retrain", operator, body, "X-Idempotency-Key", "row-13")
	if string(first.Body) != string(second.Body) || second.Header.Get("Idempotency-Replayed") != "true" || first.Header.Get("Idempotency-Replayed") != "" {
		t.Fatalf("%s\n%s\n%v; want string(first.Body) == string(second.Body) && second.Header.Get(\"Idempotency-Replayed\") == \"true\" && first.Header.Get(\"Idempotency-Replayed\") == \"\"", first.Body, second.Body, second.Header)
	}
	body["is_dummy"] = false
	if a := harness.Want(t, 409, "POST", cp+"/retrain", operator, body, "Idempotency-Key", "row-13").JSON(t); a["code"] != "idempotency_conflict" {
		t.Fatalf(`%v; want a["code"] == "idempotency_conflict"`, a)
	}
	run := p.WaitRun(t, first.JSON(t)["flow_run_id"].(string), 2*time.Minute)
	if run["state_type"] != "COMPLETED" {
		t.Fatalf(`dummy run: %v; want run["state_type"] == "COMPLETED"`, run)
	}
	if tags := trackerVersion(t, p, "jpcp", fmt.Sprint(run["model_version"])); tags["dummy"] != "true" {
		t.Fatalf(`tags: %v; want tags["dummy"] == "true"`, tags)
	}
}

// Acceptance row 14: a malformed credential map refuses every bearer; a foreign tenant's object is absent.
func TestRow14_CredentialsAndTenants(t *testing.T) {
	p := harness.New(t, "PLATFORM_SEED=false", `CONTROL_PLANE_CREDENTIALS_JSON={"secret-of-tenant-a-0001":{"principal":"a","tenant":"a","scopes":["read","write"]},"secret-of-tenant-b-0001":{"principal":"b","tenant":"b","scopes":["read","write"]}}`)
	p.Start(t, 30*time.Second)
	cp := p.Env["CONTROL_PLANE_URL"]
	created := harness.Want(t, 200, "POST", cp+"/api/changes", "secret-of-tenant-a-0001", map[string]any{
		"model_ids": []string{"JPCP"}, "commit_sha": "aaaa", "commit_msg": "m", "changed_files": []string{}}).JSON(t)
	id := created["created"].([]any)[0].(string)
	harness.Want(t, 200, "GET", cp+"/approvals/"+id, "secret-of-tenant-a-0001", nil)
	harness.Want(t, 404, "GET", cp+"/approvals/"+id, "secret-of-tenant-b-0001", nil)
	harness.Want(t, 404, "POST", cp+"/approvals/"+id+"/approve", "secret-of-tenant-b-0001", nil)
	if l := harness.Want(t, 200, "GET", cp+"/approvals", "secret-of-tenant-b-0001", nil).List(t); len(l) != 0 {
		t.Fatalf("tenant b sees %v; want len(l) == 0", l)
	}
	p.Stop(t)
	p.Set("CONTROL_PLANE_CREDENTIALS_JSON", `{"secret-of-tenant-a-0001":{"principal":"a","tenant":"a"}}`)
	p.Launch(t)
	harness.Eventually(t, 20*time.Second, func() error {
		for _, token := range []string{"secret-of-tenant-a-0001", p.Env["CONTROL_PLANE_TOKEN"]} {
			a, err := harness.TryCall("GET", cp+"/approvals", token, nil)
			if err != nil {
				return err
			}
			if a.Status != 503 || !strings.Contains(string(a.Body), "auth_misconfigured") {
				return fmt.Errorf("%d %s", a.Status, a.Body)
			}
		}
		return nil
	})
}
