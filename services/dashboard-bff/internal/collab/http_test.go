package collab_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/collab"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/recordstest"
)

type fixture struct {
	*recordstest.App
	plane *recordstest.ControlPlane
	views *recordstest.Views
	pool  *pgxpool.Pool
}

func start(t *testing.T) fixture {
	t.Helper()
	f := fixture{recordstest.NewApp(t), recordstest.NewControlPlane(t), recordstest.NewViews(t, 3*time.Second), recordstest.Pool(t)}
	s, err := collab.New(collab.Config{Pool: f.pool, Clients: recordstest.Clients(t, f.plane.URL), Views: f.views.Pool})
	if err != nil {
		t.Fatal(err)
	}
	f.Echo.GET("/api/v1/collab/:type/:id/comments", s.ListComments)
	f.Echo.POST("/api/v1/collab/:type/:id/comments", s.AddComment)
	f.Echo.DELETE("/api/v1/collab/:type/:id/comments/:comment_id", s.DeleteComment)
	f.Echo.GET("/api/v1/collab/:type/:id/activity", s.Activity)
	return f
}

const model = "/api/v1/collab/model/JPCP"

func (f fixture) say(who caller.Caller, path, body string) api.Comment {
	f.T.Helper()
	return recordstest.Decode[api.Comment](f.Want(200, who, "POST", path+"/comments", map[string]string{"body": body}))
}

func (f fixture) list(who caller.Caller, path string) api.Comments {
	f.T.Helper()
	return recordstest.Decode[api.Comments](f.Want(200, who, "GET", path, nil))
}

func (f fixture) activity(who caller.Caller, path string) api.Activities {
	f.T.Helper()
	f.views.Age()
	return recordstest.Decode[api.Activities](f.Want(200, who, "GET", path, nil))
}

func details(v api.Activities) []string {
	out := []string{}
	for _, a := range v.Activity {
		out = append(out, a.Detail)
	}
	return out
}

func TestCommentIsStoredSafeAndTellsThoseItMentions(t *testing.T) {
	t.Parallel()
	f := start(t)
	made := f.say(recordstest.Viewer, model, "Hi @eve and `@code`, see <b>a@b.c</b> **now** @eve @idp-a:7.")
	if made.Author != "local:viewer" || *made.AuthorName != "Vera Viewer" || !slices.Equal(made.Mentions, []string{"eve", "idp-a:7"}) ||
		made.Body != "Hi @eve and `@code`, see a@b.c **now** @eve @idp-a:7." || !strings.Contains(*made.BodyHtml, "<strong>now</strong>") {
		t.Errorf("got %+v, html %s", made, *made.BodyHtml)
	}
	listed := f.list(recordstest.Admin, model+"/comments")
	if len(listed.Comments) != 1 || fmt.Sprint(listed.Comments[0].Mentions, listed.Comments[0].Body, *listed.Comments[0].BodyHtml) != fmt.Sprint(made.Mentions, made.Body, *made.BodyHtml) {
		t.Errorf("got %+v, want the comment as it was answered: %+v", listed.Comments, made)
	}
	var told []string
	for _, e := range recordstest.Events(t, f.pool, "event.mention") {
		told = append(told, fmt.Sprint(e.Tenant, " ", e.Actor, " ", e.Data["user"], " ", e.Data["entity"], " ", e.Data["by"], " ", e.Data["comment_id"] == made.Id.String()))
	}
	if want := []string{"default local:viewer eve model/JPCP local:viewer true", "default local:viewer idp-a:7 model/JPCP local:viewer true"}; !slices.Equal(told, want) {
		t.Errorf("got %q\nwant %q", told, want)
	}
	if facts := recordstest.Audits(t, f.pool, "comment.add"); len(facts) != 1 || facts[0]["target"] != "comment:"+made.Id.String() || facts[0]["actor"] != "local:viewer" {
		t.Errorf("got facts %v, want one", facts)
	}
}

// Acceptance: script in a comment stays inert, and of an address and a name one is a mention.
func TestHostileCommentIsInert(t *testing.T) {
	t.Parallel()
	f := start(t)
	made := f.say(recordstest.Viewer, model, "<scr<script>ipt>alert(1)</script> [x](java&#x73;cript:a) a@b.c @eve")
	for _, text := range []string{made.Body, *made.BodyHtml} {
		if low := strings.ToLower(text); strings.Contains(low, "<script") || strings.Contains(low, "javascript:") || strings.Contains(low, "<a") {
			t.Errorf("got %q, want it inert", text)
		}
	}
	if !slices.Equal(made.Mentions, []string{"eve"}) {
		t.Errorf("got mentions %q, want eve", made.Mentions)
	}
}

func TestCommentsAreRefusedForLengthAndEmptiness(t *testing.T) {
	t.Parallel()
	f := start(t)
	path := model + "/comments"
	for _, body := range []string{"", " \n\t", "<b></b>", "<script>x</script>", "javascript:", "<!-- a -->"} {
		f.Refused(422, "empty_comment", recordstest.Viewer, "POST", path, map[string]string{"body": body})
	}
	f.say(recordstest.Viewer, model, strings.Repeat("ä", 4000))
	f.Refused(422, "validation_failed", recordstest.Viewer, "POST", path, map[string]string{"body": strings.Repeat("ä", 4001)})
	for _, body := range []string{`{}`, `{"body": 7}`, `{"body": null}`, `{"body": "a", "author": "local:admin"}`, `{"body": "\ud800"}`} {
		f.Want(422, recordstest.Viewer, "POST", path, body)
	}
	if n := len(f.list(recordstest.Viewer, path).Comments); n != 1 {
		t.Errorf("got %d comments, want only the one of 4,000 characters", n)
	}
}

func TestEntitiesAreNamedByTypeAndID(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.say(recordstest.Viewer, "/api/v1/collab/model/jpcp", "any case")
	f.say(recordstest.Viewer, "/api/v1/collab/run/a%2Fb%25", "odd id")
	if n := len(f.list(recordstest.Viewer, model+"/comments").Comments); n != 1 {
		t.Errorf("got %d comments of JPCP, want that of jpcp", n)
	}
	if n := len(f.list(recordstest.Viewer, "/api/v1/collab/run/a%2Fb%25/comments").Comments); n != 1 {
		t.Errorf("got %d comments, want that of a/b%%", n)
	}
	long := strings.Repeat("i", 200)
	f.say(recordstest.Viewer, "/api/v1/collab/run/"+long, "longest id")
	for _, bad := range []string{"Model/x", "1x/x", strings.Repeat("t", 33) + "/x", "run/" + long + "i", "run/a%0Ab", "run/a%00b", "run/%ff"} {
		f.Refused(422, "validation_failed", recordstest.Viewer, "GET", "/api/v1/collab/"+bad+"/comments", nil)
	}
}

func TestCommentsPageOldestFirst(t *testing.T) {
	t.Parallel()
	f := start(t)
	for i := range 7 {
		f.say(recordstest.Viewer, model, fmt.Sprint("c", i))
	}
	if _, err := f.pool.Exec(t.Context(), "update comments set created_at = now()"); err != nil { // ids decide
		t.Fatal(err)
	}
	var got []string
	for cursor := ""; ; {
		page := f.list(recordstest.Viewer, model+"/comments?limit=3&cursor="+cursor)
		for _, c := range page.Comments {
			got = append(got, c.Body)
		}
		if page.NextCursor == nil {
			break
		}
		cursor = *page.NextCursor
	}
	if want := []string{"c0", "c1", "c2", "c3", "c4", "c5", "c6"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	f.Want(422, recordstest.Viewer, "GET", model+"/comments?offset=1", nil)
	f.Want(422, recordstest.Viewer, "GET", model+"/comments?cursor=x", nil)
}

func TestOnlyAuthorsAndAdminsLeaveATombstone(t *testing.T) {
	t.Parallel()
	f := start(t)
	own, other := f.say(recordstest.Viewer, model, "own @eve"), f.say(recordstest.Admin, model, "of the admin")
	path := func(c api.Comment) string { return model + "/comments/" + c.Id.String() }
	f.Refused(403, "role_required", recordstest.Viewer, "DELETE", path(other), nil)
	f.Refused(404, "not_found", recordstest.StrangerAdmin, "DELETE", path(own), nil)
	f.Refused(404, "not_found", recordstest.Admin, "DELETE", "/api/v1/collab/model/OTHER/comments/"+own.Id.String(), nil)
	f.Refused(404, "not_found", recordstest.Admin, "DELETE", model+"/comments/x", nil)
	f.Want(204, recordstest.Viewer, "DELETE", path(own), nil)
	f.Want(204, recordstest.Viewer, "DELETE", path(own), nil)
	got := f.list(recordstest.Viewer, model+"/comments").Comments
	if len(got) != 2 || got[0].Deleted == nil || !*got[0].Deleted || got[0].Body != "" || *got[0].BodyHtml != "" || len(got[0].Mentions) != 0 || got[0].Author != "local:viewer" {
		t.Errorf("got %+v, want a tombstone and a comment", got)
	}
	if facts := recordstest.Audits(t, f.pool, "comment.delete"); len(facts) != 1 {
		t.Errorf("got facts %v, want one", facts)
	}
	f.Want(204, recordstest.Admin, "DELETE", path(other), nil)
	var kept int
	if err := f.pool.QueryRow(t.Context(), "select count(*) from comments where body || body_html like '%own%'").Scan(&kept); err != nil || kept != 0 {
		t.Errorf("got %d rows with the text, %v; want none", kept, err)
	}
}

func TestAnotherTenantSeesNeitherCommentsNorActivity(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.say(recordstest.Viewer, model, "secret of default")
	for _, mode := range []recordstest.Mode{recordstest.Well, recordstest.Leaky} {
		f.plane.Set(mode)
		if got := f.list(recordstest.Stranger, model+"/comments").Comments; len(got) != 0 {
			t.Errorf("got %+v, want nothing", got)
		}
		for _, a := range f.activity(recordstest.Stranger, model+"/activity").Activity {
			if a.Kind == "comment" || a.Actor == "operator" {
				t.Errorf("mode %d: got %+v of the other tenant", mode, a)
			}
		}
	}
}

func TestActivityMergesCommentsWithTheLedger(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.say(recordstest.Viewer, "/api/v1/collab/model/jpcp", "looks @eve <b>bad</b>")
	gone := f.say(recordstest.Viewer, model, "gone")
	f.Want(204, recordstest.Viewer, "DELETE", model+"/comments/"+gone.Id.String(), nil)
	want := []string{
		"promotion_policy.created", "cost.recorded", "eval.recorded", "pipeline.promote (denied): rmse 9 is not below 5",
		"pipeline.promote (denied): rmse 9 is not below 5", "pipeline.promote (denied): rmse 9 is not below 5", "looks @eve bad",
	}
	got := f.activity(recordstest.Viewer, model+"/activity")
	if d := details(got); !slices.Equal(d, want) {
		t.Errorf("got %q\nwant %q", d, want)
	}
	if !slices.IsSortedFunc(got.Activity, func(a, b api.Activity) int { return a.Ts.Compare(b.Ts) }) || got.NextCursor != nil {
		t.Errorf("got %+v, next %v; want the oldest first and no more", got.Activity, got.NextCursor)
	}
	if a := got.Activity[1]; a.Kind != "audit" || a.Actor != "operator" {
		t.Errorf("got %+v, want an audit fact by operator", a)
	}
	if got := details(f.activity(recordstest.Viewer, "/api/v1/collab/config/tracker_url/activity")); !slices.Equal(got, []string{"config.set"}) {
		t.Errorf("other types: got %q, want config.set", got)
	}
}

func TestActivityPagesBackwardsWithoutLossOrRepeat(t *testing.T) {
	t.Parallel()
	f := start(t)
	fact := recordstest.Recorded[controlplane.AuditEventList](t, "audit").Items[1]
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var own, platform []controlplane.AuditEvent
	for seq := int64(40); seq > 0; seq-- {
		e := fact
		e.Seq, e.Action, e.Outcome, e.Details = seq, fmt.Sprint("own.", seq), "ok", []byte(`{}`)
		// Every fifth arrived late: its time is older than that of its neighbours.
		e.Ts = at.Add(time.Duration(seq) * time.Minute).Add(-time.Hour * time.Duration(seq/5%2)).Format("2006-01-02T15:04:05.000000Z")
		own = append(own, e)
		e.Tenant, e.Action = "platform", fmt.Sprint("platform.", seq)
		platform = append(platform, e)
	}
	f.plane.SetFacts("default", own...)
	f.plane.SetFacts("platform", platform...)
	want := map[string]bool{}
	for i := range 20 {
		body := fmt.Sprint("c", i)
		c := f.say(recordstest.Viewer, model, body)
		if _, err := f.pool.Exec(t.Context(), "update comments set created_at = $1 where id = $2", at.Add(time.Duration(i)*2*time.Minute), c.Id); err != nil {
			t.Fatal(err)
		}
		want[body] = true
	}
	for seq := range 40 {
		want[fmt.Sprint("own.", seq+1)], want[fmt.Sprint("platform.", seq+1)] = true, true
	}
	seen := map[string]bool{}
	pages := 0
	for cursor := ""; ; pages++ {
		page := f.activity(recordstest.Viewer, model+"/activity?limit=7&cursor="+cursor)
		for _, d := range details(page) {
			if seen[d] {
				t.Errorf("page %d: got %s again", pages, d)
			}
			seen[d] = true
		}
		if page.NextCursor == nil || pages > 40 {
			break
		}
		if len(*page.NextCursor) > 512 {
			t.Errorf("got a cursor of %d characters, want at most 512", len(*page.NextCursor))
		}
		cursor = *page.NextCursor
		if pages == 2 { // concurrent inserts shift nothing
			e := own[0]
			e.Seq, e.Action = 41, "own.41"
			f.plane.SetFacts("default", append([]controlplane.AuditEvent{e}, own...)...)
		}
	}
	for d := range want {
		if !seen[d] {
			t.Errorf("lost %s", d)
		}
	}
	if len(seen) != len(want) {
		t.Errorf("got %d entries, want %d", len(seen), len(want))
	}
}

func TestRareFactsAreFoundPageByPage(t *testing.T) {
	t.Parallel()
	f := start(t)
	fact := recordstest.Recorded[controlplane.AuditEventList](t, "audit").Items[1]
	var facts []controlplane.AuditEvent
	for seq := int64(2500); seq > 0; seq-- {
		e := fact
		if e.Seq, e.Target = seq, "run:x"; seq == 1 {
			e.Target = "flag:toolProxy"
		}
		facts = append(facts, e)
	}
	f.plane.SetFacts("default", facts...)
	first := f.activity(recordstest.Viewer, "/api/v1/collab/flag/toolProxy/activity")
	if len(first.Activity) != 0 || first.NextCursor == nil {
		t.Fatalf("got %+v, next %v; want to go on after 2,000 facts", first.Activity, first.NextCursor)
	}
	second := f.activity(recordstest.Viewer, "/api/v1/collab/flag/toolProxy/activity?cursor="+*first.NextCursor)
	if len(second.Activity) != 1 || second.NextCursor != nil {
		t.Errorf("got %+v, next %v; want the one fact and the end", second.Activity, second.NextCursor)
	}
}

func TestActivityGoesOnWithoutTheLedger(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.say(recordstest.Viewer, model, "still here")
	for _, mode := range []recordstest.Mode{recordstest.Broken, recordstest.Hanging, recordstest.Unauthorized} {
		f.plane.Set(mode)
		got := f.activity(recordstest.Viewer, model+"/activity")
		if d := details(got); !slices.Equal(d, []string{"still here"}) || !slices.Equal(got.Partial, []string{"audit"}) {
			t.Errorf("mode %d: got %q, partial %v; want the comment, and audit named", mode, d, got.Partial)
		}
	}
}
