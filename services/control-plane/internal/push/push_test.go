package push_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

const secret = "webhook-0123456789abcdef"

type object = map[string]any

// deliverPush sends a push of one commit; an empty id sends none.
func deliverPush(p *controlplanetest.Plane, sha, id string) (object, error) {
	r, err := p.Try("POST", "/webhooks/modelrepo/forge-a", "", object{
		"ref": "refs/heads/main", "checkout_sha": sha, "user_name": "ada", "commits": []any{object{"id": sha, "modified": []string{"README.md"}}},
	}, "X-Forge-A-Token", secret, "Idempotency-Key", id)
	if err != nil {
		return nil, err
	}
	var out object
	if err := json.Unmarshal(r.Body, &out); err != nil || r.Status != 200 {
		return nil, fmt.Errorf("%d %s %w", r.Status, r.Body, err)
	}
	return out, nil
}

// One delivery that arrives many times concurrently, at two replicas, is one push; so is each of many heads.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Neighbours(t, "MODELREPO_WEBHOOK_SECRET="+secret, "MODELREPO_AUTO_RETRAIN=true")
	p.Serve()
	one := *p
	p.Serve()
	var wg sync.WaitGroup
	var mu sync.Mutex // guards the variables below
	recorded, skipped := map[float64]int{}, map[float64]int{}
	for i := range 32 {
		wg.Go(func() {
			replica := []*controlplanetest.Plane{&one, p}[i%2]
			out, err := deliverPush(replica, strings.Repeat("5e", 20), "same")
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Error(err)
			case out["skipped"] == true:
				skipped[out["event_id"].(float64)]++
			default:
				recorded[out["event_id"].(float64)]++
			}
		})
	}
	for i := range 16 {
		wg.Go(func() {
			if out, err := deliverPush(p, fmt.Sprintf("%040x", i+1), fmt.Sprint("head", i)); err != nil || out["skipped"] != nil {
				t.Errorf(`%v %v; want out["skipped"] == nil`, out, err)
			}
		})
	}
	wg.Wait()
	if len(recorded) != 1 || len(skipped) != 1 {
		t.Fatalf("recorded %v, skipped %v; want len(recorded) == 1 && len(skipped) == 1", recorded, skipped)
	}
	for id := range recorded {
		if skipped[id] != 31 {
			t.Errorf("skipped %v; want skipped[id] == 31", skipped)
		}
	}
	list := p.Want(200, "GET", "/modelrepo/events", controlplanetest.Reader, nil).List(t)
	if len(list) != 17 || len(p.Events("event.push")) != 17 {
		t.Fatalf(`%d events, %d told; want len(list) == 17 && len(p.Events("event.push")) == 17`, len(list), len(p.Events("event.push")))
	}
	// Whatever the order, all models agree on the last.
	for _, m := range p.Want(200, "GET", "/modelrepo/status", controlplanetest.Reader, nil).Object(t)["models"].([]any) {
		if m := m.(object); m["latest_modelrepo_commit"] != list[0]["commit_sha"] {
			t.Errorf(`%v, last %v; want m["latest_modelrepo_commit"] == %v`, m, list[0], list[0]["commit_sha"])
		}
	}
}

// Events are listed newest first, 20 by default, page by page.
func TestEvents(t *testing.T) {
	t.Parallel()
	p := controlplanetest.Start(t, "MODELREPO_WEBHOOK_SECRET="+secret)
	want := []string{}
	for i := range 25 {
		sha := fmt.Sprintf("%040x", i+1)
		if _, err := deliverPush(p, sha, ""); err != nil {
			t.Fatal(err)
		}
		want = append(want, sha)
	}
	slices.Reverse(want)
	shas := func(r controlplanetest.Response) []string {
		out := []string{}
		for _, e := range r.List(t) {
			out = append(out, e["commit_sha"].(string))
			if e["delivery_id"] != nil || e["pushed_by"] != "ada" {
				t.Errorf(`event %v; want e["delivery_id"] == nil && e["pushed_by"] == "ada"`, e)
			}
		}
		return out
	}
	first := p.Want(200, "GET", "/modelrepo/events", controlplanetest.Reader, nil)
	if !slices.Equal(shas(first), want[:20]) || first.Header.Get("X-Next-Cursor") == "" {
		t.Errorf(`first page: %s; want slices.Equal(shas(first), want[:20]) && first.Header.Get("X-Next-Cursor") != ""`, first.Body)
	}
	second := p.Want(200, "GET", "/modelrepo/events?limit=20&cursor="+first.Header.Get("X-Next-Cursor"), controlplanetest.Reader, nil)
	if !slices.Equal(shas(second), want[20:]) || second.Header.Get("X-Next-Cursor") != "" {
		t.Errorf(`second page: %s; want slices.Equal(shas(second), want[20:]) && second.Header.Get("X-Next-Cursor") == ""`, second.Body)
	}
	if all := p.Want(200, "GET", "/modelrepo/events?limit=500", controlplanetest.Reader, nil); !slices.Equal(shas(all), want) {
		t.Errorf("all: %s; want slices.Equal(shas(all), want)", all.Body)
	}
	if other := p.Want(200, "GET", "/modelrepo/events?limit=1", controlplanetest.Foreign, nil); len(shas(other)) != 0 {
		t.Errorf("got %s, want nothing for a tenant without a model", other.Body)
	}
	for _, q := range []string{"limit=0", "limit=501", "limit=x", "cursor=x", "limit=-1"} {
		p.Refused(422, "validation_error", "GET", "/modelrepo/events?"+q, controlplanetest.Reader, nil)
	}
}
