package promotion_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

const path = "/aliases/JPCP/Production/rollback"

// addProductionHolders creates versions that held Production in turn.
func addProductionHolders(p *controlplanetest.Plane, versions ...controlplanetest.Version) []string {
	p.T.Helper()
	var out []string
	for _, v := range versions {
		version := p.Tracker.Add("jpcp", v)
		p.Tracker.Move("jpcp", "Production", version)
		// Any request that moves aliases of the model first records moves by others.
		p.Refused(404, "no_previous_version", "POST", "/aliases/JPCP/Canary/rollback", controlplanetest.Operator, map[string]any{"reason": "look"})
		out = append(out, version)
	}
	return out
}

func goodVersion() controlplanetest.Version { return controlplanetest.Good("rmse", 10.0) }

func withReason(reason string) map[string]any { return map[string]any{"reason": reason} }

func TestRollbackGoesToTheVersionBefore(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "CONTROL_PLANE_SEPARATION_OF_DUTIES=enforce")
	v := []string{}
	for range 3 { // through the gate: an enforced one puts other moves back
		version := p.Tracker.Add("jpcp", goodVersion())
		p.Tracker.Move("jpcp", "Staging", version)
		p.Want(200, "POST", "/promotions", controlplanetest.Legacy, map[string]any{"model": "JPCP", "version": version, "approve": true})
		v = append(v, version)
	}
	r := p.Want(200, "POST", "/aliases/jpcp/production/rollback", controlplanetest.Operator, withReason("worse on site B")).Object(t)
	for name, want := range map[string]any{
		"model": "JPCP", "alias": "Production", "version": v[1], "previous_version": v[2], "state": "moved", "actor": "operator", "reason": "worse on site B",
	} {
		if r[name] != want {
			t.Errorf("%s is %v, want %v", name, r[name], want)
		}
	}
	if now := p.Tracker.Holder("jpcp", "Production"); now != v[1] {
		t.Errorf("the tracker has version %s; want %v", now, v[1])
	}
	top := p.Want(200, "GET", "/alias-history?model=JPCP&alias=Production", controlplanetest.Reader, nil).Object(t)["items"].([]any)[0].(map[string]any)
	if top["version"] != v[1] || top["previous_version"] != v[2] || top["via"] != "rollback" || top["actor"] != "operator" {
		t.Errorf(`history %v; want top["version"] == v[1] && top["previous_version"] == v[2] && top["via"] == "rollback" && top["actor"] == "operator"`, top)
	}
	rolled := p.Events("deploy.rolled_back")
	if len(rolled) != 1 || rolled[0].Tenant != "platform" || rolled[0].Actor != "operator" || rolled[0].Data["version"] != v[1] ||
		rolled[0].Data["to"] != "Production" || fmt.Sprint(rolled[0].Data["reasons"]) != "[worse on site B]" {
		t.Errorf(`events %v; want len(rolled) == 1 && rolled[0].Tenant == "platform" && rolled[0].Actor == "operator" && rolled[0].Data["version"] == v[1] && rolled[0].Data["to"] == "Production" && …`, rolled)
	}
	changed := p.Events("deploy.alias_changed")
	if last := changed[len(changed)-1]; last.Data["via"] != "rollback" || last.Data["version"] != v[1] {
		t.Errorf(`alias_changed %v; want last.Data["via"] == "rollback" && last.Data["version"] == v[1]`, last)
	}
	if a := p.Audits("rollback.decided"); len(a) != 1 || a[0]["details"].(map[string]any)["reason"] != "worse on site B" || a[0]["tenant"] != "default" {
		t.Errorf(`audit %v; want len(a) == 1 && a[0]["details"].(map[string]any)["reason"] == "worse on site B" && a[0]["tenant"] == "default"`, a)
	}
	// By name to an older one; then the default is again the one before the current.
	if r := p.Want(200, "POST", path, controlplanetest.Operator, map[string]any{"version": v[0], "reason": "still worse"}).Object(t); r["version"] != v[0] {
		t.Errorf(`%v; want r["version"] == %v`, r, v[0])
	}
	if r := p.Want(200, "POST", path, controlplanetest.Operator, withReason("mistaken")).Object(t); r["version"] != v[1] {
		t.Errorf(`%v; want r["version"] == %v`, r, v[1])
	}
}

// A rollback admits the files of the first admission. Without a record of those, it would admit the files now in their
// place.
func TestRollbackToFilesThatNobodyAdmittedIsRefused(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "CONTROL_PLANE_SEPARATION_OF_DUTIES=enforce")
	v := []string{}
	for range 2 {
		version := p.Tracker.Add("jpcp", goodVersion())
		p.Tracker.Move("jpcp", "Staging", version)
		p.Want(200, "POST", "/promotions", controlplanetest.Legacy, map[string]any{"model": "JPCP", "version": version, "approve": true})
		v = append(v, version)
	}
	p.SQL("update control_plane.alias_history set digest = null where alias = 'Production' and version = $1", v[0])
	r := p.Refused(409, "rollback_denied", "POST", path, controlplanetest.Operator, withReason("worse")).Object(t)
	if reasons := fmt.Sprint(r["reasons"]); !strings.Contains(reasons, "POST /promotions") {
		t.Errorf("reasons: got %s, want what to do instead", reasons)
	}
	if now := p.Tracker.Holder("jpcp", "Production"); now != v[1] {
		t.Errorf("Production: got version %s, want %s", now, v[1])
	}
}

// Of two concurrent rollbacks, such as a double click, one moves the alias. The other is refused, whether it names a
// version or not: it saw another holder.
func TestRollbackAtOnce(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]func(v []string) map[string]any{
		"default":  func([]string) map[string]any { return withReason("bad version") },
		"explicit": func(v []string) map[string]any { return map[string]any{"reason": "bad version", "version": v[0]} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := controlplanetest.Start(t)
			v := addProductionHolders(p, goodVersion(), goodVersion(), goodVersion())
			p.Tracker.Set(controlplanetest.HoldMoves)
			answers := make(chan controlplanetest.Response, 2)
			ask := func(body map[string]any) {
				r, err := p.Try("POST", path, controlplanetest.Operator, body)
				if err != nil {
					t.Error(err)
				}
				answers <- r
			}
			go ask(withReason("bad version"))
			select {
			case <-p.Tracker.Seen:
			case <-time.After(20 * time.Second):
				t.Fatal("the tracker was not told")
			}
			looks := p.Tracker.Looked()
			go ask(second(v))
			testenv.Eventually(t, 20*time.Second, func() error { // less than its wait for the first
				if p.Tracker.Looked() == looks {
					return errors.New("the second request has not looked who holds the alias")
				}
				return nil
			})
			close(p.Tracker.Go)
			status := map[int]controlplanetest.Response{}
			for range 2 {
				r := <-answers
				status[r.Status] = r
			}
			if moved := status[200].Object(t); moved["version"] != v[1] || moved["previous_version"] != v[2] {
				t.Errorf(`moved %v; want moved["version"] == v[1] && moved["previous_version"] == v[2]`, moved)
			}
			if told := status[409].Object(t); told["code"] != "alias_moved" || told["version"] != v[1] {
				t.Errorf(`told %v; want told["code"] == "alias_moved" && told["version"] == v[1]`, told)
			}
			if now := p.Tracker.Holder("jpcp", "Production"); now != v[1] {
				t.Errorf("the tracker has version %s, want %s", now, v[1])
			}
			if e := p.Events("deploy.rolled_back"); len(e) != 1 {
				t.Errorf("events %v; want len(e) == 1", e)
			}
		})
	}
}

func TestRollbackThatCannotBe(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	p.Refused(404, "no_previous_version", "POST", path, controlplanetest.Operator, withReason("x"))
	v := addProductionHolders(p, goodVersion())
	never := p.Tracker.Add("jpcp", goodVersion())
	p.Refused(404, "no_previous_version", "POST", path, controlplanetest.Operator, withReason("x"))
	p.Refused(404, "no_previous_version", "POST", path, controlplanetest.Operator, map[string]any{"version": never, "reason": "x"})
	p.Refused(409, "alias_moved", "POST", path, controlplanetest.Operator, map[string]any{"version": v[0], "reason": "x"})
	p.Refused(404, "model_not_found", "POST", "/aliases/nosuch/Production/rollback", controlplanetest.Operator, withReason("x"))
	p.Refused(404, "alias_not_found", "POST", "/aliases/JPCP/Champion/rollback", controlplanetest.Operator, withReason("x"))
	p.Refused(403, "insufficient_scope", "POST", path, controlplanetest.Trainer, withReason("x"))
	for _, body := range []string{`{}`, `{"reason":""}`, `{"reason":" \n"}`, `{"reason":"x","version":""}`, `{"reason":"x","version":"-1"}`, `{"reason":"x","versions":"1"}`,
		`{"reason":"` + strings.Repeat("x", 4097) + `"}`} {
		p.Refused(422, "validation_error", "POST", path, controlplanetest.Operator, body)
	}
	p.Tracker.Set(controlplanetest.Down)
	p.Refused(502, "tracker_unreachable", "POST", path, controlplanetest.Operator, withReason("x"))
	p.Tracker.Set(controlplanetest.Well)
	if now := p.Tracker.Holder("jpcp", "Production"); now != v[0] {
		t.Errorf("version %s; want %v", now, v[0])
	}
}

// A former holder of the alias, however it got it, is still subject to the rules for every move.
func TestRollbackKeepsTheRules(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "ALLOW_GENERATED_PRODUCTION=false")
	tags := func(name, value string) controlplanetest.Version {
		return controlplanetest.Version{Tags: map[string]string{"artifact_digest": controlplanetest.Digest, name: value}}
	}
	v := addProductionHolders(p, tags("dummy", "true"), tags("data_origin", "generated"), goodVersion())
	for version, why := range map[string]string{v[0]: "dummy", v[1]: "generated"} {
		r := p.Refused(409, "rollback_denied", "POST", path, controlplanetest.Operator, map[string]any{"version": version, "reason": "x"})
		if reasons := r.Object(t)["reasons"].([]any); len(reasons) != 1 || !strings.Contains(reasons[0].(string), why) {
			t.Errorf("reasons %v; want len(reasons) == 1 && strings.Contains(reasons[0].(string), why)", reasons)
		}
	}
	if a := p.Audits("rollback.denied"); len(a) != 2 || a[0]["outcome"] != "denied" {
		t.Errorf(`audit %v; want len(a) == 2 && a[0]["outcome"] == "denied"`, a)
	}
	if now := p.Tracker.Holder("jpcp", "Production"); now != v[2] {
		t.Errorf("version %s; want %v", now, v[2])
	}
}

// A move that fails at the tracker is retried; one that it refuses is final.
func TestRollbackOutlivesTheTracker(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	v := addProductionHolders(p, goodVersion(), goodVersion())
	p.Tracker.Set(controlplanetest.Refusing)
	p.Refused(502, "tracker_rejected", "POST", path, controlplanetest.Operator, withReason("x"))
	p.Tracker.Set(controlplanetest.FailMoves)
	if r := p.Want(202, "POST", path, controlplanetest.Operator, withReason("x")).Object(t); r["state"] != "moving" {
		t.Errorf(`%v; want r["state"] == "moving"`, r)
	}
	p.Refused(409, "alias_busy", "POST", path, controlplanetest.Operator, withReason("x"))
	p.Tracker.Set(controlplanetest.Well)
	p.SQL(`update control_plane.alias_moves set next_attempt_at = now() where state = 'moving'`)
	testenv.Eventually(t, 20*time.Second, func() error {
		if e := p.Events("deploy.rolled_back"); len(e) != 1 {
			return fmt.Errorf("%d events", len(e))
		}
		return nil
	})
	if now := p.Tracker.Holder("jpcp", "Production"); now != v[0] {
		t.Errorf("version %s; want %v", now, v[0])
	}
}

// kill -9 after the tracker was called and before the move was recorded: another process records it, once.
func TestRollbackOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Neighbours(t)
	kill := p.Spawn("replica")
	v := addProductionHolders(p, goodVersion(), goodVersion())
	p.Tracker.Set(controlplanetest.Swallow)
	go func() { _, _ = p.Try("POST", path, controlplanetest.Operator, withReason("x")) }()
	select {
	case <-p.Tracker.Seen:
	case <-time.After(20 * time.Second):
		t.Fatal("the tracker was not told")
	}
	kill()
	p.Tracker.Set(controlplanetest.Well)
	p.SQL(`update control_plane.alias_moves set next_attempt_at = now() where state = 'moving'`)
	p.Serve()
	testenv.Eventually(t, 30*time.Second, func() error {
		if e := p.Events("deploy.rolled_back"); len(e) != 1 || e[0].Actor != "operator" || fmt.Sprint(e[0].Data["reasons"]) != "[x]" {
			return fmt.Errorf("events %v", e)
		}
		return nil
	})
	top := p.Want(200, "GET", "/alias-history?model=JPCP&alias=Production", controlplanetest.Reader, nil).Object(t)["items"].([]any)[0].(map[string]any)
	if top["version"] != v[0] || top["via"] != "rollback" {
		t.Errorf(`history %v; want top["version"] == v[0] && top["via"] == "rollback"`, top)
	}
	p.Tracker.Mu.Lock()
	defer p.Tracker.Mu.Unlock()
	if p.Tracker.Sets != 1 {
		t.Errorf("the tracker was told %d times; want 1", p.Tracker.Sets)
	}
}
