package webhook_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	controlplane "github.com/mlp-platform/platform/services/control-plane"
	"github.com/mlp-platform/platform/services/control-plane/internal/controlplanetest"
)

// A real push of forge B names the head, the pusher and the files.
func TestForgeB(t *testing.T) {
	t.Parallel()
	p := startWithSecret(t)
	putConfig(p, parsePayload{"stale_scope": "touched"})
	body, delivery := sampleB(t, nil), uuid.NewString()
	out := deliverB(p, body, "X-GitHub-Delivery", delivery)
	if !slices.Equal(stringsOf(out["models_marked_stale"]), []string{"JPCP"}) {
		t.Fatalf(`push: %v; want slices.Equal(stringsOf(out["models_marked_stale"]), []string{"JPCP"})`, out)
	}
	if e := listEvents(p)[0]; e["commit_sha"] != headB || e["pushed_by"] != "ada" || e["delivery_id"] != delivery {
		t.Errorf(`event %v; want e["commit_sha"] == headB && e["pushed_by"] == "ada" && e["delivery_id"] == delivery`, e)
	}
	if again := deliverB(p, body, "X-GitHub-Delivery", delivery); again["reason"] != "duplicate delivery" || again["event_id"] != out["event_id"] {
		t.Errorf(`repeated: %v; want again["reason"] == "duplicate delivery" && again["event_id"] == out["event_id"]`, again)
	}
}

// A delivery that is not a push of the watched branch is skipped and changes nothing.
func TestSkips(t *testing.T) {
	t.Parallel()
	p := startWithSecret(t)
	gone := parsePayload{"checkout_sha": nil, "after": zeros, "commits": []any{}, "total_commits_count": 0}
	goneB := parsePayload{"head_commit": nil, "after": zeros, "commits": []any{}, "deleted": true}
	for _, c := range []struct {
		name, reason string
		out          parsePayload
	}{
		{"tag, A", "not a push", deliverA(p, sampleA(t, parsePayload{"object_kind": "tag_push", "ref": "refs/tags/v1"}), "X-Gitlab-Event", "Tag Push Hook")},
		{"merge request, A", "not a push", deliverA(p, `{"object_kind":"merge_request","commits":7,"ref":[]}`, "X-Gitlab-Event", "Merge Request Hook")},
		{"system event, A", "not a push", deliverA(p, `{"event_name":"project_create"}`, "X-Gitlab-Event", "System Hook")},
		{"tag without its kind, A", "branch not watched", deliverA(p, sampleA(t, parsePayload{"ref": "refs/tags/main"}), "X-Gitlab-Event", "")},
		{"feature/main, A", "branch not watched", deliverA(p, sampleA(t, parsePayload{"ref": "refs/heads/feature/main"}))},
		{"main2, A", "branch not watched", deliverA(p, sampleA(t, parsePayload{"ref": "refs/heads/main2"}))},
		{"Main, A", "branch not watched", deliverA(p, sampleA(t, parsePayload{"ref": "refs/heads/Main"}))},
		{"main alone, A", "branch not watched", deliverA(p, sampleA(t, parsePayload{"ref": "main"}))},
		{"remote, A", "branch not watched", deliverA(p, sampleA(t, parsePayload{"ref": "refs/remotes/origin/main"}))},
		{"key in capitals, A", "branch not watched", deliverA(p, strings.Replace(sampleA(t, nil), `"ref"`, `"REF"`, 1))},
		{"unicode branch, A", "branch not watched", deliverA(p, sampleA(t, parsePayload{"ref": "refs/heads/maın"}))},
		{"lone surrogate, A", "branch not watched", deliverA(p, strings.Replace(sampleA(t, nil), "refs/heads/main", `refs/heads/\ud800main`, 1))},
		{"empty object, A", "branch not watched", deliverA(p, `{}`)},
		{"deleted, A", "no commit sha", deliverA(p, sampleA(t, gone))},
		{"nothing named, A", "no commit sha", deliverA(p, `{"ref":"refs/heads/main"}`)},
		{"nulls, A", "no commit sha", deliverA(p, `{"ref":"refs/heads/main","checkout_sha":null,"after":null,"commits":null,"user_name":null}`)},
		{"zeros of a longer digest, A", "no commit sha", deliverA(p, sampleA(t, parsePayload{"checkout_sha": strings.Repeat("0", 64)}))},

		{"ping, B", "not a push", deliverB(p, `{"zen":"Design for failure.","hook":{"ref":5}}`, "X-GitHub-Event", "ping")},
		{"create, B", "not a push", deliverB(p, sampleB(t, nil), "X-GitHub-Event", "create")},
		{"tag, B", "branch not watched", deliverB(p, sampleB(t, parsePayload{"ref": "refs/tags/main", "base_ref": "refs/heads/main"}))},
		{"feature/main, B", "branch not watched", deliverB(p, sampleB(t, parsePayload{"ref": "refs/heads/feature/main"}))},
		{"deleted, B", "no commit sha", deliverB(p, sampleB(t, goneB))},
	} {
		if c.out["skipped"] != true || c.out["reason"] != c.reason || len(c.out) != 2 {
			t.Errorf("%s: %v, want %s", c.name, c.out, c.reason)
		}
	}
	if list := listEvents(p); len(list) != 0 || modelrepoStatus(p)["last_event"] != nil || len(p.Events("event.push")) != 0 {
		t.Errorf(`events %v; want len(list) == 0 && modelrepoStatus(p)["last_event"] == nil && len(p.Events("event.push")) == 0`, list)
	}
	for _, id := range everyModel {
		if m := freshnessOf(p, id); m["status"] != "unknown" {
			t.Errorf(`%v; want m["status"] == "unknown"`, m)
		}
	}
}

// The members for commit and pusher, and the header for the delivery.
func TestFieldsOfAPush(t *testing.T) {
	t.Parallel()
	p := startWithSecret(t)
	sha := func(n int) string { return fmt.Sprintf("%040x", n) }
	commits := func(ids ...string) []any {
		out := []any{}
		for _, id := range ids {
			out = append(out, parsePayload{"id": id, "message": "m", "author": parsePayload{"name": "grace of " + id[36:]}})
		}
		return out
	}
	for i, c := range []struct {
		name             string
		path, body       string
		header           []string
		commit, by, unit string
	}{
		{"checkout_sha first", pathA, sampleA(t, parsePayload{"checkout_sha": sha(1), "after": sha(2)}), nil, sha(1), "Ada Lovelace", ""},
		{"then after", pathA, sampleA(t, parsePayload{"checkout_sha": nil, "after": sha(3)}), nil, sha(3), "Ada Lovelace", ""},
		{"then the last commit, and its author", pathA, sampleA(t, parsePayload{"checkout_sha": nil, "after": nil, "user_name": nil, "commits": commits(sha(4), sha(5))}), nil, sha(5), "grace of 0005", ""},
		{"without a kind", pathA, sampleA(t, parsePayload{"checkout_sha": sha(6)}), []string{"X-Gitlab-Event", ""}, sha(6), "Ada Lovelace", ""},
		{"of a hook on the whole server", pathA, sampleA(t, parsePayload{"checkout_sha": sha(7)}), []string{"X-Gitlab-Event", "System Hook"}, sha(7), "Ada Lovelace", ""},
		{"webhook-id first", pathA, sampleA(t, parsePayload{"checkout_sha": sha(8)}), []string{"webhook-id", "d-1", "Idempotency-Key", "d-2"}, sha(8), "Ada Lovelace", "d-1"},
		{"then the idempotency key", pathA, sampleA(t, parsePayload{"checkout_sha": sha(9)}), []string{"Idempotency-Key", "d-3"}, sha(9), "Ada Lovelace", "d-3"},
		{"a digest of 64 digits", pathA, sampleA(t, parsePayload{"checkout_sha": sha(10) + sha(10)[:24]}), nil, sha(10) + sha(10)[:24], "Ada Lovelace", ""},
		{"head_commit first", pathB, sampleB(t, parsePayload{"after": sha(11)}), nil, headB, "ada", ""},
		{"then after", pathB, sampleB(t, parsePayload{"head_commit": nil, "after": sha(12)}), nil, sha(12), "ada", ""},
		{"without a pusher", pathB, sampleB(t, parsePayload{"head_commit": parsePayload{"id": sha(13)}, "pusher": nil}), nil, sha(13), "", ""},
		{"unicode, and what cannot be stored", pathA, strings.Replace(sampleA(t, parsePayload{"checkout_sha": sha(14), "user_name": "NAME"}), "NAME", `Zoë \ud800 \u0000 🚀`, 1), nil, sha(14), "Zoë \ufffd \ufffd 🚀", ""},
		{"a very long name", pathA, sampleA(t, parsePayload{"checkout_sha": sha(15), "user_name": strings.Repeat("é", 500)}), nil, sha(15), strings.Repeat("é", 127), ""},
	} {
		var out parsePayload
		if c.path == pathA {
			out = deliverA(p, c.body, c.header...)
		} else {
			out = deliverB(p, c.body, c.header...)
		}
		e := listEvents(p)[0]
		if out["skipped"] != nil || e["id"] != out["event_id"] || e["commit_sha"] != c.commit || e["pushed_by"] != c.by || len(listEvents(p)) != i+1 {
			t.Errorf(`%s: %v %v; want out["skipped"] == nil && e["id"] == out["event_id"] && e["commit_sha"] == c.commit && e["pushed_by"] == c.by && len(listEvents(p)) == i + 1`, c.name, out, e)
		}
		if c.unit != "" && e["delivery_id"] != c.unit {
			t.Errorf(`%s: delivery %v; want (c.unit == "" || e["delivery_id"] == c.unit)`, c.name, e["delivery_id"])
		}
	}
	for _, body := range []string{
		sampleA(t, parsePayload{"checkout_sha": "../../etc"}), sampleA(t, parsePayload{"checkout_sha": strings.Repeat("a", 129)}), sampleA(t, parsePayload{"checkout_sha": "a b"}),
		sampleA(t, parsePayload{"checkout_sha": 7}), sampleA(t, parsePayload{"commits": "none"}), sampleA(t, parsePayload{"ref": []any{"refs/heads/main"}}),
		sampleA(t, parsePayload{"commits": []any{parsePayload{"id": headA, "added": "x"}}}), sampleA(t, parsePayload{"total_commits_count": "3"}),
	} {
		p.Refused(400, "malformed_payload", "POST", pathA, "", body, headersA()...)
	}
}

// Under stale_scope touched, unknown files touch every model.
func TestFilesOfAPush(t *testing.T) {
	t.Parallel()
	p := startWithSecret(t)
	putConfig(p, parsePayload{"stale_scope": "touched"})
	many := func(n int) []any {
		out := []any{}
		for i := range n {
			out = append(out, parsePayload{"id": fmt.Sprintf("%040x", i+1), "modified": []string{"README.md"}})
		}
		return out
	}
	n := 0
	head := func() string { n++; return fmt.Sprintf("%040x", 0xabc000+n) }
	with := func(over parsePayload, more parsePayload) parsePayload {
		for k, v := range more {
			over[k] = v
		}
		return over
	}
	classes := "models/performance_prediction/RuntimeClass/model.yaml"
	for _, c := range []struct {
		name string
		out  parsePayload
		want []string
	}{
		{"one model's folder", deliverA(p, sampleA(t, pushA(head(), classes))), []string{"RUNTIMECLASS"}},
		{"nothing of a model", deliverA(p, sampleA(t, pushA(head(), "README.md", "models/README.md"))), []string{}},
		{"a data set", deliverA(p, sampleA(t, pushA(head(), "datasets/IpscJobs.yaml"))), []string{"RUNTIMECLASS", "RUNTIMEREGRESSOR"}},
		{"local data", deliverA(p, sampleA(t, pushA(head(), "data/nasa-ipsc-1993.swf.gz"))), []string{"RUNTIMECLASS", "RUNTIMEREGRESSOR"}},
		{"a registry", deliverA(p, sampleA(t, pushA(head(), "registries/prod.yaml"))), everyModel},
		{"a list that is cut, A", deliverA(p, sampleA(t, with(pushA(head(), classes), parsePayload{"total_commits_count": 21}))), everyModel},
		{"no commits, A", deliverA(p, sampleA(t, parsePayload{"checkout_sha": head(), "commits": []any{}, "total_commits_count": 0})), everyModel},
		{"19 commits, B", deliverB(p, sampleB(t, parsePayload{"head_commit": parsePayload{"id": head()}, "commits": many(19)})), []string{}},
		{"20 commits, B", deliverB(p, sampleB(t, parsePayload{"head_commit": parsePayload{"id": head()}, "commits": many(20)})), everyModel},
		{"forced, B", deliverB(p, sampleB(t, parsePayload{"head_commit": parsePayload{"id": head()}, "forced": true})), everyModel},
		{"a new branch, B", deliverB(p, sampleB(t, parsePayload{"head_commit": parsePayload{"id": head()}, "created": true})), everyModel},
	} {
		if !slices.Equal(stringsOf(c.out["models_marked_stale"]), c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.out, c.want)
		}
	}
	last := freshnessOf(p, "JPCP")
	if last["touched_by_last_push"] != true {
		t.Errorf(`after a push of unknown files: %v; want last["touched_by_last_push"] == true`, last)
	}
	// The scope all: whatever the files.
	putConfig(p, parsePayload{"stale_scope": "all"})
	if out := deliverA(p, sampleA(t, pushA(head(), "README.md"))); !slices.Equal(stringsOf(out["models_marked_stale"]), everyModel) {
		t.Errorf(`all: %v; want slices.Equal(stringsOf(out["models_marked_stale"]), everyModel)`, out)
	}
	if freshnessOf(p, "JPCP")["touched_by_last_push"] != false {
		t.Errorf(`touched: %v; want freshnessOf(p, "JPCP")["touched_by_last_push"] == false`, freshnessOf(p, "JPCP"))
	}
}

// A payload near the size limit, with very many commits and files, is read in full.
func TestHugePush(t *testing.T) {
	t.Parallel()
	p := startWithSecret(t)
	putConfig(p, parsePayload{"stale_scope": "touched", "auto_retrain": true})
	commits := []any{}
	for i := range 400 {
		files := []string{}
		for j := range 100 {
			files = append(files, fmt.Sprintf("notes/%d/%d/%s.txt", i, j, strings.Repeat("n", 60)))
		}
		commits = append(commits, parsePayload{"id": fmt.Sprintf("%040x", i+1), "message": "m", "added": files})
	}
	commits[399].(parsePayload)["removed"] = []string{"models/power_consumption_prediction/JPCP/README.md"}
	body := sampleA(t, parsePayload{"commits": commits, "total_commits_count": 400})
	if len(body) < 3<<20 {
		t.Fatalf("%d bytes; want len(body) >= 3 << 20", len(body))
	}
	out := deliverA(p, body)
	if !slices.Equal(stringsOf(out["models_marked_stale"]), []string{"JPCP"}) {
		t.Fatalf(`%v; want slices.Equal(stringsOf(out["models_marked_stale"]), []string{"JPCP"})`, out["models_marked_stale"])
	}
	id := stringsOf(out["approvals_created"])[0]
	if n := len(p.Approval(id)["changed_files"].([]any)); n != 10_000 {
		t.Errorf("%d files shown; want 10_000", n)
	}
}

// A new delivery of the known head is a duplicate: only models not trained from it are stale, and no training is
// requested again.
func TestDuplicateHead(t *testing.T) {
	t.Parallel()
	p := startWithSecret(t)
	p.AwaitTarget()
	putConfig(p, parsePayload{"auto_retrain": true})
	first := deliverA(p, sampleA(t, nil))
	if n := len(stringsOf(first["approvals_created"])); n != 1 {
		t.Fatalf("%v; want n == 1", first)
	}
	completeTraining(p, "JPCP", headA)
	second := deliverA(p, sampleA(t, nil))
	want := slices.DeleteFunc(slices.Clone(everyModel), func(m string) bool { return m == "JPCP" })
	if second["duplicate"] != true || !slices.Equal(stringsOf(second["models_marked_stale"]), want) || len(stringsOf(second["approvals_created"])) != 0 {
		t.Errorf(`duplicate: %v; want second["duplicate"] == true && slices.Equal(stringsOf(second["models_marked_stale"]), want) && len(stringsOf(second["approvals_created"])) == 0`, second)
	}
	if m := freshnessOf(p, "JPCP"); m["status"] != "current" || m["touched_by_last_push"] != false {
		t.Errorf(`trained: %v; want m["status"] == "current" && m["touched_by_last_push"] == false`, m)
	}
	if m := freshnessOf(p, "RUNTIMECLASS"); m["status"] != "stale" || m["touched_by_last_push"] != true {
		t.Errorf(`not trained: %v; want m["status"] == "stale" && m["touched_by_last_push"] == true`, m)
	}
	if len(listEvents(p)) != 1 || second["event_id"] != first["event_id"] {
		t.Errorf("got %v and the events %v, want one push, told of twice", second, listEvents(p))
	}
	// A newer head, and then the older one again by force.
	newer := strings.Repeat("ab", 20)
	deliverA(p, sampleA(t, pushA(newer, "README.md")))
	if m := freshnessOf(p, "JPCP"); m["status"] != "stale" || m["latest_modelrepo_commit"] != newer || m["last_retrain_commit"] != headA {
		t.Errorf(`newer head: %v; want m["status"] == "stale" && m["latest_modelrepo_commit"] == newer && m["last_retrain_commit"] == headA`, m)
	}
	back := deliverA(p, sampleA(t, nil))
	if back["duplicate"] != false || slices.Contains(stringsOf(back["models_marked_stale"]), "JPCP") {
		t.Errorf(`set back: %v; want back["duplicate"] == false && !slices.Contains(stringsOf(back["models_marked_stale"]), "JPCP")`, back)
	}
	if m := freshnessOf(p, "JPCP"); m["status"] != "current" || m["stale_since"] != nil {
		t.Errorf(`set back to what it was trained from: %v; want m["status"] == "current" && m["stale_since"] == nil`, m)
	}
}

// One record per commit and branch, however many deliveries report it, and also if the branch goes back and forth.
func TestPushIsRecordedOnce(t *testing.T) {
	t.Parallel()
	p := startWithSecret(t)
	newer, first := strings.Repeat("ab", 20), ""
	for range 4 {
		for _, body := range []string{sampleA(t, nil), sampleA(t, pushA(newer, "README.md"))} {
			for range 3 {
				delivery := uuid.NewString()
				deliverA(p, body, "Idempotency-Key", delivery)
				if first == "" {
					first = delivery
				}
			}
		}
	}
	events := listEvents(p)
	if len(events) != 2 || events[0]["commit_sha"] != newer {
		t.Errorf("got %v, want two pushes, the newest first", events)
	}
	if again := deliverA(p, sampleA(t, nil), "Idempotency-Key", first); again["reason"] != "duplicate delivery" {
		t.Errorf("got %v of the first delivery, want it known although its record gave way to a newer one", again)
	}
}

// stale_since is kept across successive pushes; a run of an older commit leaves the model stale in scope all, and in
// scope touched only if a later push touched it.
func TestTrainedFromAnOlderCommit(t *testing.T) {
	t.Parallel()
	p := startWithSecret(t)
	p.AwaitTarget()
	one, two, three := strings.Repeat("1a", 20), strings.Repeat("2b", 20), strings.Repeat("3c", 20)
	power, classes := "models/power_consumption_prediction/JPCP/model.yaml", "models/performance_prediction/RuntimeClass/model.yaml"
	deliverA(p, sampleA(t, pushA(one, power, classes)))
	since := freshnessOf(p, "JPCP")["stale_since"]
	deliverA(p, sampleA(t, pushA(two, classes)))
	if m := freshnessOf(p, "JPCP"); m["stale_since"] != since || m["latest_modelrepo_commit"] != two {
		t.Errorf(`second push: %v; want m["stale_since"] == since && m["latest_modelrepo_commit"] == two`, m)
	}
	completeTraining(p, "JPCP", one)
	if m := freshnessOf(p, "JPCP"); m["status"] != "stale" || m["last_retrain_commit"] != one || m["stale_since"] != since {
		t.Errorf(`all: %v; want m["status"] == "stale" && m["last_retrain_commit"] == one && m["stale_since"] == since`, m)
	}
	putConfig(p, parsePayload{"stale_scope": "touched"})
	completeTraining(p, "RUNTIMECLASS", one)
	if m := freshnessOf(p, "RUNTIMECLASS"); m["status"] != "stale" {
		t.Errorf(`touched since: %v; want m["status"] == "stale"`, m)
	}
	completeTraining(p, "MACK", one) // which the first push did not touch, nor any later
	if m := freshnessOf(p, "MACK"); m["status"] != "current" || m["latest_modelrepo_commit"] != one {
		t.Errorf(`untouched since: %v; want m["status"] == "current" && m["latest_modelrepo_commit"] == one`, m)
	}
	completeTraining(p, "RUNTIMECLASS", two)
	if m := freshnessOf(p, "RUNTIMECLASS"); m["status"] != "current" {
		t.Errorf(`trained from the last that touched it: %v; want m["status"] == "current"`, m)
	}
	deliverA(p, sampleA(t, pushA(three, power)))
	if m := freshnessOf(p, "RUNTIMECLASS"); m["status"] != "current" || m["latest_modelrepo_commit"] != two || m["touched_by_last_push"] != false {
		t.Errorf(`push of another model: %v; want m["status"] == "current" && m["latest_modelrepo_commit"] == two && m["touched_by_last_push"] == false`, m)
	}
	completeTraining(p, "JPCP", three)
	completeTraining(p, "JPCP", one) // a slow older run does not make it stale again
	if m := freshnessOf(p, "JPCP"); m["status"] != "current" || m["last_retrain_commit"] != three {
		t.Errorf(`older run after a newer: %v; want m["status"] == "current" && m["last_retrain_commit"] == three`, m)
	}
}

// Secrets that are placeholders, malformed or half set prevent the start; short ones cause a warning.
func TestSecretsOfWebhooks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ env, want string }{
		{"MODELREPO_WEBHOOK_SECRET=changeme", "MODELREPO_WEBHOOK_SECRET is a placeholder"},
		{"MODELREPO_WEBHOOK_SECRET=TODO", "MODELREPO_WEBHOOK_SECRET is a placeholder"},
		{"MODELREPO_WEBHOOK_SIGNING_TOKEN=0123456789abcdef", "MODELREPO_WEBHOOK_SIGNING_TOKEN must be whsec_"},
		{"MODELREPO_WEBHOOK_SIGNING_TOKEN=whsec_", "MODELREPO_WEBHOOK_SIGNING_TOKEN must be whsec_"},
		{"MODELREPO_WEBHOOK_SIGNING_TOKEN=whsec_%%%", "MODELREPO_WEBHOOK_SIGNING_TOKEN must be whsec_"},
		{"MODELREPO_WEBHOOK_SIGNING_TOKEN=whsec_replace-me", "MODELREPO_WEBHOOK_SIGNING_TOKEN is a placeholder"},
		{"AI_PROD_GITLAB_PROJECT_ID=7", "go together"},
		{"AI_PROD_PIPELINE_TRIGGER_TOKEN=glptt-0123456789", "go together"},
		{"MODELREPO_POLL_SECONDS=5", "MODELREPO_POLL_SECONDS must be 0"},
		{"MODELREPO_WATCH_BRANCH=a..b", "MODELREPO_WATCH_BRANCH must be"},
	} {
		_, err := controlplane.LoadConfig([]string{"PLATFORM_DATABASE_URL=postgres://platform@localhost/platform", c.env})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want an error && strings.Contains(err.Error(), c.want)", c.env, err)
		} else if v := strings.SplitN(c.env, "=", 2)[1]; len(v) > 8 && strings.Contains(err.Error(), v) {
			t.Errorf("%s: the error holds the value: %v; want (len(v) <= 8 || !strings.Contains(err.Error(), v))", c.env, err)
		}
	}
	// The pipeline's errors are recorded in the ledger, with the URL.
	if _, err := controlplane.LoadConfig([]string{
		"PLATFORM_DATABASE_URL=postgres://platform@localhost/platform", "AI_PROD_GITLAB_PROJECT_ID=7", "AI_PROD_PIPELINE_TRIGGER_TOKEN=glptt-0123456789",
		"GITLAB_URL=https://glpat-0123456789@forge.example",
	}); err == nil || !strings.Contains(err.Error(), "GITLAB_URL must be the http or https URL, without credentials") || strings.Contains(err.Error(), "glpat") {
		t.Errorf(`credentials in GITLAB_URL: %v; want an error && strings.Contains(err.Error(), "GITLAB_URL must be the http or https URL, without credentials") && !strings.Contains(err.Error(), "glpat")`, err)
	}
	p := controlplanetest.Start(t, "MODELREPO_WEBHOOK_SECRET=shortish")
	if token := p.Health()["startup_checks"].(parsePayload)["token"].(string); !strings.Contains(token, "MODELREPO_WEBHOOK_SECRET is shorter") {
		t.Errorf(`token: %s; want strings.Contains(token, "MODELREPO_WEBHOOK_SECRET is shorter")`, token)
	}
}
