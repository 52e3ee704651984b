package notify_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/postgres"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/notice"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/notify"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/recordstest"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/sealing"
)

const (
	oldKey = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlBQkNERUY="
	newKey = "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
)

func parseKeys(t *testing.T, list string) *sealing.Keys {
	t.Helper()
	keys, err := sealing.ParseKeys(service.Secret(list))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// bench is the routes of a notifier.
type bench struct {
	*recordstest.App
	pool     *pgxpool.Pool
	notifier *notify.Notifier
}

const root = "/api/v1/notifications/channels"

func newBench(t *testing.T, pool *pgxpool.Pool, keys string, allow ...string) bench {
	t.Helper()
	n, err := notify.New(notify.Config{Pool: pool, Keys: parseKeys(t, keys), Log: recordstest.Log(), PublicURL: "https://dashboard.example", Allow: allow})
	if err != nil {
		t.Fatal(err)
	}
	b := bench{recordstest.NewApp(t), pool, n}
	b.Echo.GET(root, n.List)
	b.Echo.POST(root, n.Create)
	b.Echo.PUT(root+"/:id", n.Change)
	b.Echo.DELETE(root+"/:id", n.Delete)
	b.Echo.POST(root+"/:id/test", n.Test)
	return b
}

func body(name, kind, url string) map[string]any {
	return map[string]any{"name": name, "kind": kind, "url": url, "events": []string{"alert"}}
}

func (b bench) add(who caller.Caller, name, kind, url string) api.ChannelCreated {
	b.T.Helper()
	return recordstest.Decode[api.ChannelCreated](b.Want(201, who, "POST", root, body(name, kind, url)))
}

// test sends a test over a channel.
func (b bench) test(id uuid.UUID) api.ChannelTest {
	b.T.Helper()
	return recordstest.Decode[api.ChannelTest](b.Want(200, recordstest.Admin, "POST", root+"/"+id.String()+"/test", nil))
}

func TestAddressesInsideCannotBeReached(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(inside.Close)
	port := inside.URL[strings.LastIndex(inside.URL, ":")+1:]
	outside := httptest.NewServer(http.RedirectHandler(inside.URL, http.StatusTemporaryRedirect))
	t.Cleanup(outside.Close)
	b := newBench(t, recordstest.Pool(t), oldKey, outside.Listener.Addr().String(), "169.254.169.254", "hooks.example")
	for _, url := range []string{
		inside.URL, "http://localhost:" + port, "http://[::1]:" + port, "http://hooks.example:" + port, "http://hooks.example.evil.example",
		"http://user:password@hooks.example", "file:///etc/passwd", "gopher://hooks.example", "//hooks.example", "",
	} {
		answer := b.Refused(422, "validation_failed", recordstest.Admin, "POST", root, body("x", "webhook", url))
		if url != "" && strings.Contains(string(answer.Body), url) {
			t.Errorf("the refusal of %s repeats the address: %s", url, answer.Body)
		}
	}
	for name, url := range map[string]string{"redirect": outside.URL + "/a-secret-path", "metadata": "http://169.254.169.254/latest/a-secret-path"} {
		made := b.add(recordstest.Admin, name, "slack", url)
		got := b.test(made.Channel.Id)
		if got.Delivered || got.Error == nil || strings.Contains(*got.Error, "a-secret-path") {
			t.Errorf("%s: got %+v, want a failure that does not hold the address", name, got)
		}
	}
	// A host that the operator removes from the list is no longer sent to, although a channel has it.
	narrower := newBench(t, b.pool, oldKey)
	list := recordstest.Decode[api.Channels](narrower.Want(200, recordstest.Admin, "GET", root, nil))
	if got := narrower.test(list.Channels[0].Id); got.Delivered || !strings.Contains(*got.Error, "DASHBOARD_NOTIFY_ALLOW") {
		t.Errorf("got %+v, want a failure that names the list", got)
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d requests reached the service inside, want none", n)
	}
}

func TestSecretsOfAChannelAreShownOnceAndSealed(t *testing.T) {
	t.Parallel()
	pool := recordstest.Pool(t)
	b := newBench(t, pool, oldKey, "hooks.example")
	made := b.add(recordstest.Admin, "hook", "webhook", "https://hooks.example/a-secret-path?token=a-secret-token")
	if made.Secret == nil || !strings.HasPrefix(*made.Secret, "whsec_") {
		t.Fatalf("got %+v, want a signing secret", made)
	}
	path := root + "/" + made.Channel.Id.String()
	seen := string(b.Want(200, recordstest.Admin, "GET", root, nil).Body)
	changed := b.Want(200, recordstest.Admin, "PUT", path, map[string]any{"name": "hook 2", "kind": "webhook", "events": []string{"mention"}})
	seen += string(changed.Body)
	for _, e := range recordstest.Events(t, pool, "") {
		seen += fmt.Sprint(e)
	}
	var stored string
	if err := pool.QueryRow(t.Context(), "select row_to_json(c)::text from notification_channels c").Scan(&stored); err != nil {
		t.Fatal(err)
	}
	seen += stored
	for _, secret := range []string{"a-secret-path", "a-secret-token", *made.Secret} {
		if strings.Contains(seen, secret) {
			t.Errorf("%q is shown or stored in the clear:\n%s", secret, seen)
		}
	}
	if got := recordstest.Decode[api.Channel](changed); got.Name != "hook 2" || got.Host == nil || *got.Host != "hooks.example" {
		t.Errorf("got %+v, want the new name and the old host", got)
	}
	var actions []string
	for _, action := range []string{"channel.add", "channel.change"} {
		for _, fact := range recordstest.Audits(t, pool, action) {
			actions = append(actions, fmt.Sprint(fact["action"], " ", fact["actor"]))
		}
	}
	if got := strings.Join(actions, ", "); got != "channel.add local:admin, channel.change local:admin" {
		t.Errorf("got the facts %q, want one for each act", got)
	}
}

func TestRotationKeepsChannelsReadable(t *testing.T) {
	t.Parallel()
	pool := recordstest.Pool(t)
	var got atomic.Pointer[http.Request]
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got.Store(r) }))
	t.Cleanup(receiver.Close)
	host := receiver.Listener.Addr().String()
	made := newBench(t, pool, oldKey, host).add(recordstest.Admin, "hook", "webhook", receiver.URL+"/path")
	rotate := func(keys string) (names []string) {
		t.Helper()
		if err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) (err error) {
			names, err = notify.RotateSecrets(t.Context(), tx, parseKeys(t, keys))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return names
	}
	if names := rotate(newKey + "," + oldKey); len(names) != 1 || names[0] != "channel:"+made.Channel.Id.String() {
		t.Errorf("got %v rewritten, want the channel", names)
	}
	if names := rotate(newKey); len(names) != 0 {
		t.Errorf("got %v rewritten again, want none", names)
	}
	if out := newBench(t, pool, newKey, host).test(made.Channel.Id); !out.Delivered || got.Load().URL.Path != "/path" {
		t.Errorf("got %+v, want a delivery by the new key alone", out)
	}
	if out := newBench(t, pool, oldKey, host).test(made.Channel.Id); out.Delivered || !strings.Contains(*out.Error, "DASHBOARD_SECRET_KEY") {
		t.Errorf("got %+v, want a failure that names the keys", out)
	}
}

func TestChannelsOfAnotherTenantAreAbsent(t *testing.T) {
	t.Parallel()
	b := newBench(t, recordstest.Pool(t), oldKey, "hooks.example")
	path := root + "/" + b.add(recordstest.Admin, "hook", "slack", "https://hooks.example/x").Channel.Id.String()
	if got := recordstest.Decode[api.Channels](b.Want(200, recordstest.StrangerAdmin, "GET", root, nil)); len(got.Channels) != 0 {
		t.Errorf("got %+v, want none", got)
	}
	b.Refused(404, "not_found", recordstest.StrangerAdmin, "PUT", path, body("mine", "slack", "https://hooks.example/y"))
	b.Refused(404, "not_found", recordstest.StrangerAdmin, "DELETE", path, nil)
	b.Refused(404, "not_found", recordstest.StrangerAdmin, "POST", path+"/test", nil)
	b.add(recordstest.StrangerAdmin, "hook", "slack", "https://hooks.example/x") // names are those of a tenant
	b.Refused(409, "conflict", recordstest.Admin, "POST", root, body("hook", "slack", "https://hooks.example/x"))
}

func TestBodiesOfChannelsAreChecked(t *testing.T) {
	t.Parallel()
	b := newBench(t, recordstest.Pool(t), oldKey, "hooks.example")
	for member, change := range map[string]func(map[string]any){
		"name":       func(m map[string]any) { m["name"] = " " },
		"kind":       func(m map[string]any) { m["kind"] = "pager" },
		"events":     func(m map[string]any) { m["events"] = []string{"everything"} },
		"url":        func(m map[string]any) { delete(m, "url") },
		"recipients": func(m map[string]any) { m["recipients"] = []string{"ann@example.com"} },
	} {
		m := body("x", "slack", "https://hooks.example/x")
		change(m)
		if got := string(b.Refused(422, "validation_failed", recordstest.Admin, "POST", root, m).Body); !strings.Contains(got, `"`+member+`"`) {
			t.Errorf("%s: got %s, want the member named", member, got)
		}
	}
	mail := map[string]any{"name": "x", "kind": "email", "events": []string{"alert"}, "recipients": []string{"ann@example.com"}}
	if got := string(b.Refused(422, "validation_failed", recordstest.Admin, "POST", root, mail).Body); !strings.Contains(got, "DASHBOARD_SMTP_ADDR") {
		t.Errorf("got %s, want the missing setting named", got)
	}
}

func TestAFactOfThePlatformGoesToEveryTenantAndOneOfATenantToItself(t *testing.T) {
	t.Parallel()
	pool := recordstest.Pool(t)
	var posts atomic.Int32
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { posts.Add(1) }))
	t.Cleanup(receiver.Close)
	b := newBench(t, pool, oldKey, receiver.Listener.Addr().String())
	for _, who := range []caller.Caller{recordstest.Admin, recordstest.StrangerAdmin} {
		b.add(who, "hook", "slack", receiver.URL)
	}
	enqueue := func(n notice.Notice) {
		t.Helper()
		for range 2 { // a repeat adds nothing
			if err := postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error { return b.notifier.Enqueue(t.Context(), tx, n) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	alert := func(tenant string, at time.Time) notice.Notice {
		return notice.Notice{EventID: uuid.New(), Tenant: tenant, At: at, Type: notice.AlertFiring, Kind: notice.Alert, Title: "x", Severity: "warn", Path: "/alerts"}
	}
	enqueue(alert("platform", time.Now()))
	enqueue(alert("default", time.Now()))
	enqueue(alert("default", time.Now().Add(-25*time.Hour))) // from the stream's past
	ended := alert("default", time.Now())
	ended.Type = notice.ApprovalDecided // no channel wants it
	enqueue(ended)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.notifier.Run(ctx) }()
	testenv.Eventually(t, 10*time.Second, func() error {
		var waiting int
		if err := pool.QueryRow(t.Context(), "select count(*) from notification_deliveries where delivered_at is null").Scan(&waiting); err != nil {
			return err
		}
		if waiting > 0 {
			return fmt.Errorf("%d deliveries wait", waiting)
		}
		return nil
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := posts.Load(); n != 3 {
		t.Errorf("got %d posts, want 3: the platform's to both tenants, the tenant's to its own", n)
	}
}
