package repoconfig_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
	"github.com/mlp-platform/platform/services/control-plane/internal/guarded"
	"github.com/mlp-platform/platform/services/control-plane/internal/repoconfig"
	"github.com/mlp-platform/platform/services/control-plane/internal/store"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

type object = map[string]any

const path = "/modelrepo/config"

var standard = object{"auto_retrain": false, "poll_interval_seconds": 300.0, "watch_branch": "main", "stale_scope": "all", "gate": "approval"}

func getConfig(p *controlplanetest.Plane) object {
	p.T.Helper()
	return p.Want(200, "GET", path, controlplanetest.Reader, nil).Object(p.T)
}

// A change sets the keys that it names, publishes an event and writes the old values to the ledger.
func TestChange(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	if now := getConfig(p); !maps.Equal(now, standard) {
		t.Fatalf("first: %v; want maps.Equal(now, standard)", now)
	}
	want := maps.Clone(standard)
	want["auto_retrain"], want["watch_branch"] = true, "release/2026"
	// Unknown keys are ignored, also odd ones, and one that looks like a setting.
	body := `{"auto_retrain": true, "watch_branch": "release/2026", "gate": "approval", "surprise": {"a": [1, null]}, "Gate": "direct", "": 7}`
	if now := p.Want(200, "PUT", path, controlplanetest.Operator, body).Object(t); !maps.Equal(now, want) {
		t.Fatalf("changed: %v; want maps.Equal(now, want)", now)
	}
	if now := getConfig(p); !maps.Equal(now, want) {
		t.Errorf("read: %v; want maps.Equal(now, want)", now)
	}
	told := p.Events("event.config_changed")
	if len(told) != 1 || told[0].Actor != "operator" || told[0].Tenant != "platform" || told[0].Data["scope"] != "modelrepo" ||
		fmt.Sprint(told[0].Data["keys"]) != "[auto_retrain watch_branch]" {
		t.Errorf(`told %v; want len(told) == 1 && told[0].Actor == "operator" && told[0].Tenant == "platform" && told[0].Data["scope"] == "modelrepo" && …`, told)
	}
	audit := p.Audits("modelrepo.config_set")
	if len(audit) != 2 { // the first is that of the first start
		t.Fatalf("audit %v; want len(audit) == 2", audit)
	}
	d := audit[1]["details"].(object)
	if audit[1]["actor"] != "operator" || audit[1]["tenant"] != "platform" || d["actor_tenant"] != "default" || !maps.Equal(d["old"].(object), object{"auto_retrain": false, "watch_branch": "main"}) ||
		!maps.Equal(d["new"].(object), object{"auto_retrain": true, "watch_branch": "release/2026"}) {
		t.Errorf(`audit %v; want audit[1]["actor"] == "operator" && audit[1]["tenant"] == "platform" && d["actor_tenant"] == "default" && …`, audit[1])
	}
	for _, same := range []string{`{}`, `{"auto_retrain": true}`, `{"nothing": 1}`} {
		p.Want(200, "PUT", path, controlplanetest.Operator, same)
	}
	if n := len(p.Events("event.config_changed")); n != 1 {
		t.Errorf("%d changes told; want 1", n)
	}
}

// One invalid value changes nothing, and each is named.
func TestBadValues(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	for body, want := range map[string][]string{
		`{"auto_retrain": true, "gate": "never"}`:                       {"gate"},
		`{"auto_retrain": "yes"}`:                                       {"auto_retrain"},
		`{"auto_retrain": null}`:                                        {"auto_retrain"},
		`{"auto_retrain": 1, "stale_scope": "some", "gate": null}`:      {"auto_retrain", "gate", "stale_scope"},
		`{"auto_retrain": true, "poll_interval_seconds": 9}`:            {"poll_interval_seconds"},
		`{"poll_interval_seconds": -1}`:                                 {"poll_interval_seconds"},
		`{"poll_interval_seconds": 86401}`:                              {"poll_interval_seconds"},
		`{"poll_interval_seconds": 10.5}`:                               {"poll_interval_seconds"},
		`{"poll_interval_seconds": 99999999999999999999}`:               {"poll_interval_seconds"},
		`{"poll_interval_seconds": "300"}`:                              {"poll_interval_seconds"},
		`{"watch_branch": ""}`:                                          {"watch_branch"},
		`{"watch_branch": ["main"]}`:                                    {"watch_branch"},
		`{"watch_branch": "main", "auto_retrain": true, "gate": ""}`:    {"gate"},
		`{"watch_branch": "a\u0000b"}`:                                  {},
		`{"gate": "direct", "gate": "approval"}`:                        {"gate"},
		`[]`:                                                            {},
		`{"watch_branch": "` + strings.Repeat("b", 245) + `"}`:          {"watch_branch"},
		`{"watch_branch": "refs heads main", "stale_scope": "touched"}`: {"watch_branch"},
	} {
		r := p.Refused(422, "validation_error", "PUT", path, controlplanetest.Operator, body).Object(t)
		named := []string{}
		for _, e := range r["errors"].([]any) {
			loc := e.(object)["loc"].([]any)
			if len(loc) == 2 {
				named = append(named, loc[1].(string))
			}
		}
		slices.Sort(named)
		if !slices.Equal(named, want) {
			t.Errorf("%s: %v, want %v: %v", body, named, want, r)
		}
	}
	if now := getConfig(p); !maps.Equal(now, standard) {
		t.Errorf("applied: %v; want maps.Equal(now, standard)", now)
	}
	for _, seconds := range []float64{0, 10, 86400} {
		if now := p.Want(200, "PUT", path, controlplanetest.Operator, object{"poll_interval_seconds": seconds}).Object(t); now["poll_interval_seconds"] != seconds {
			t.Errorf(`%v: %v; want now["poll_interval_seconds"] == %v`, seconds, now, seconds)
		}
	}
}

// Names of branches must follow git's rules.
func TestBranches(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"main": true, "feature/main": true, "release-1.2": true, "zweig/über": true, "a@b": true, strings.Repeat("b", 244): true, "x.lock.y": true,
		"": false, "/main": false, "main/": false, "a//b": false, ".main": false, "a/.b": false, "a..b": false, "main.": false, "main.lock": false,
		"a.lock/b": false, "a b": false, "a~b": false, "a^b": false, "a:b": false, "a?b": false, "a*b": false, "a[b": false, `a\b`: false, "a\x7fb": false,
		"a\nb": false, "@": false, "a@{b": false, "-main": false, "HEAD": false, "a\xffb": false,
		"refs/heads/main": false, "refs/x": false, "main\u202e": false, "ma\u200bin": false, "refsheet": true, strings.Repeat("b", 245): false,
	} {
		if _, err := repoconfig.CheckFirst(false, 300, name); (err == nil) != ok {
			t.Errorf("%q: %v; want (err == nil) == %v", name, err, ok)
		}
	}
}

// The environment applies to the first start only; the settings survive restarts.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Neighbours(t, "MODELREPO_AUTO_RETRAIN=true", "MODELREPO_POLL_SECONDS=60", "MODELREPO_WATCH_BRANCH=trunk")
	stop := p.Serve()
	want := maps.Clone(standard)
	want["auto_retrain"], want["poll_interval_seconds"], want["watch_branch"] = true, 60.0, "trunk"
	if now := getConfig(p); !maps.Equal(now, want) {
		t.Fatalf("first start: %v; want maps.Equal(now, want)", now)
	}
	p.Want(200, "PUT", path, controlplanetest.Operator, object{"poll_interval_seconds": 0})
	want["poll_interval_seconds"] = 0.0
	stop()
	p.Setenv("MODELREPO_POLL_SECONDS=90")
	p.Setenv("MODELREPO_WATCH_BRANCH=main")
	p.Serve()
	if now := getConfig(p); !maps.Equal(now, want) {
		t.Errorf("second start: %v; want maps.Equal(now, want)", now)
	}
}

// Concurrent changes on two replicas are all kept, and in force on both within a second.
func TestReplicas(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Neighbours(t, "MODELREPO_WEBHOOK_SECRET=webhook-0123456789abcdef")
	p.Serve()
	one := *p
	p.Serve()
	two := *p
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 20 {
			if r, err := one.Try("PUT", path, controlplanetest.Operator, object{"poll_interval_seconds": 10 + i}); err != nil || r.Status != 200 {
				t.Errorf("%v %s; want r.Status == 200", err, r.Body)
			}
		}
	}()
	for i := range 20 {
		p.Want(200, "PUT", path, controlplanetest.Operator, object{"auto_retrain": i%2 == 0, "watch_branch": fmt.Sprintf("b%d", i)})
	}
	<-done
	for _, replica := range []*controlplanetest.Plane{&one, &two} {
		if now := getConfig(replica); now["poll_interval_seconds"] != 29.0 || now["watch_branch"] != "b19" || now["auto_retrain"] != false {
			t.Errorf(`%v; want now["poll_interval_seconds"] == 29.0 && now["watch_branch"] == "b19" && now["auto_retrain"] == false`, now)
		}
		// At work, not only shown.
		push := func(branch string) object {
			return replica.Want(200, "POST", "/webhooks/modelrepo/forge-a", "", object{"ref": "refs/heads/" + branch, "after": "abc"},
				"X-Forge-A-Token", "webhook-0123456789abcdef").Object(t)
		}
		if out := push("main"); out["reason"] != "branch not watched" {
			t.Errorf(`main: %v; want out["reason"] == "branch not watched"`, out)
		}
		if out := push("b19"); out["skipped"] != nil {
			t.Errorf(`b19: %v; want out["skipped"] == nil`, out)
		}
	}
}

// openSecondReplica returns the settings as another replica has them.
func openSecondReplica(t *testing.T, p *controlplanetest.Plane) *repoconfig.Service {
	t.Helper()
	pool, err := postgres.Open(t.Context(), p.Database, store.Schema, postgres.MaxConns(2))
	if err != nil {
		t.Fatal(err)
	}
	first, err := repoconfig.CheckFirst(false, 300, "main")
	if err != nil {
		t.Fatal(err)
	}
	db, log := store.Open(pool), slog.New(slog.DiscardHandler)
	guard, err := guarded.New(guarded.Parts{Store: db, Settings: []guarded.Environment{}, Now: time.Now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	s := repoconfig.New(db, first, guard, time.Now, log)
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		pool.Close()
	})
	return s
}

// A waiter on Changed is woken by the change of another replica.
func TestChanged(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t)
	here := openSecondReplica(t, p)
	changed := here.Changed()
	p.Want(200, "PUT", path, controlplanetest.Operator, object{"poll_interval_seconds": 42})
	select {
	case <-changed:
	case <-time.After(10 * time.Second):
		t.Fatal("not told within 10 s")
	}
	testenv.Eventually(t, 20*time.Second, func() error {
		if s := here.Current(); s.PollIntervalSeconds != 42 {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
}
