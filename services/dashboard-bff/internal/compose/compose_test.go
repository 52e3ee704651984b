package compose_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/compose"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

const timeout = 2 * time.Second

var alice = caller.Caller{Subject: "local:viewer", Tenant: "default", Role: caller.Viewer}

func newPool(t *testing.T) *compose.Pool {
	t.Helper()
	p, err := compose.New(compose.Config{Timeout: timeout, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// service is a source whose behaviour a test changes.
type service struct {
	calls  atomic.Int64
	answer atomic.Pointer[func(ctx context.Context) (string, error)]
}

func newService(answer func(ctx context.Context) (string, error)) *service {
	s := &service{}
	s.set(answer)
	return s
}

func (s *service) set(answer func(ctx context.Context) (string, error)) { s.answer.Store(&answer) }

func (s *service) source(name string) compose.Source[string, string] {
	return compose.Source[string, string]{
		Name: name, Service: upstream.Serving, Call: "read " + name,
		Fetch: func(ctx context.Context, who caller.Caller, parameter string) (string, error) {
			s.calls.Add(1)
			v, err := (*s.answer.Load())(ctx)
			return who.Tenant + " " + parameter + " " + v, err
		},
	}
}

func says(text string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return text, nil }
}

func refuses(context.Context) (string, error) {
	return "", &net.OpError{Op: "dial", Err: errors.New("connection refused")}
}

func hangs(ctx context.Context) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

func sleeps(d time.Duration) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		select {
		case <-time.After(d):
			return "late", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

type answer struct {
	*httptest.ResponseRecorder
	took time.Duration
}

func (a answer) member(t *testing.T, name string) any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(a.Body.Bytes(), &doc); err != nil {
		t.Fatalf("body %q: %v", a.Body, err)
	}
	return doc[name]
}

// view composes one view: member name = answer of the source of that name.
func view(t *testing.T, p *compose.Pool, who caller.Caller, header http.Header, sources ...compose.Source[string, string]) answer {
	t.Helper()
	return viewOf(t, p, who, header, "x", sources...)
}

func viewOf(t *testing.T, p *compose.Pool, who caller.Caller, header http.Header, parameter string, sources ...compose.Source[string, string]) answer {
	t.Helper()
	began := time.Now()
	rec := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodGet, "/api/v1/x", nil)
	for k, v := range header {
		req.Header[k] = v
	}
	c := echo.New().NewContext(req, rec)
	caller.Set(c, who)
	v := p.Begin(c)
	answers := make([]*compose.Answer[string], len(sources))
	for i, s := range sources {
		answers[i] = compose.Ask(v, s, parameter)
	}
	doc := map[string]string{}
	for i, a := range answers {
		if text, ok := a.Get(); ok {
			doc[sources[i].Name] = text
		}
	}
	if err := v.Answer(doc); err != nil {
		t.Errorf("the view failed: %v", err)
	}
	return answer{rec, time.Since(began)}
}

// inBubble runs a test on a fake clock and ends the pool.
func inBubble(t *testing.T, test func(t *testing.T, p *compose.Pool)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t)
		defer p.Close()
		test(t, p)
	})
}

func TestSourcesRunAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, p *compose.Pool) {
		a, b := newService(sleeps(time.Second)), newService(sleeps(1500*time.Millisecond))
		got := view(t, p, alice, nil, a.source("a"), b.source("b"))
		if want := 1500 * time.Millisecond; got.took != want {
			t.Errorf("the view took %s, want that of the slowest source, %s", got.took, want)
		}
		if v := got.member(t, "b"); v != "default x late" {
			t.Errorf("b is %v, want its answer", v)
		}
	})
}

func TestFailedSourceIsLeftOutAndNamed(t *testing.T) {
	inBubble(t, func(t *testing.T, p *compose.Pool) {
		well, hung, dead, skipped := newService(says("1")), newService(hangs), newService(refuses), newService(func(context.Context) (string, error) {
			return "", fmt.Errorf("too old: %w", compose.ErrSkipped)
		})
		got := view(t, p, alice, nil, well.source("well"), skipped.source("skipped"), hung.source("hung"), dead.source("dead"))
		if got.Code != 200 || got.took != timeout {
			t.Errorf("got %d after %s, want 200 after %s", got.Code, got.took, timeout)
		}
		var doc map[string]any
		_ = json.Unmarshal(got.Body.Bytes(), &doc)
		at := doc["_sources"].(map[string]any)["well"].(map[string]any)["as_of"]
		want := map[string]any{
			"well": "default x 1", "_partial": []any{"dead", "hung", "skipped"}, "_as_of": at,
			"_sources": map[string]any{
				"well":    map[string]any{"state": "measured", "status": "ok", "ms": 0., "as_of": at},
				"dead":    map[string]any{"state": "failed", "status": "error", "ms": 0., "error": "the service cannot be reached"},
				"hung":    map[string]any{"state": "failed", "status": "timeout", "ms": 2000., "error": "no answer in time"},
				"skipped": map[string]any{"state": "not_measured", "status": "skipped", "ms": 0., "reason": "the service does not offer this"},
			},
		}
		if diff := cmp.Diff(want, doc); diff != "" {
			t.Errorf("the view (-want +got):\n%s", diff)
		}
	})
}

func TestAnswersAreSharedForTwoSeconds(t *testing.T) {
	inBubble(t, func(t *testing.T, p *compose.Pool) {
		s := newService(says("1"))
		for range 3 {
			view(t, p, alice, nil, s.source("s"))
		}
		testenv.Advance(1999 * time.Millisecond)
		view(t, p, alice, nil, s.source("s"))
		if n := s.calls.Load(); n != 1 {
			t.Errorf("%d calls within 2 s, want 1", n)
		}
		testenv.Advance(time.Millisecond)
		view(t, p, alice, nil, s.source("s"))
		if n := s.calls.Load(); n != 2 {
			t.Errorf("%d calls after 2 s, want 2", n)
		}
	})
}

func TestAnswersAreSharedByTenantAndParametersOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, p *compose.Pool) {
		s := newService(says("1"))
		other := caller.Caller{Subject: "idp-b:1", Tenant: "other", Role: caller.Viewer}
		if got := viewOf(t, p, alice, nil, "x", s.source("s")).member(t, "s"); got != "default x 1" {
			t.Errorf("got %v", got)
		}
		if got := viewOf(t, p, other, nil, "x", s.source("s")).member(t, "s"); got != "other x 1" {
			t.Errorf("the other tenant got %v, want its own answer", got)
		}
		if got := viewOf(t, p, alice, nil, "y", s.source("s")).member(t, "s"); got != "default y 1" {
			t.Errorf("the other parameter got %v, want its own answer", got)
		}
	})
}

func TestOneFlightForAllWhoAsk(t *testing.T) {
	inBubble(t, func(t *testing.T, p *compose.Pool) {
		s := newService(sleeps(time.Second))
		for range 50 {
			go view(t, p, alice, nil, s.source("s"))
		}
		testenv.Advance(1100 * time.Millisecond)
		if n := s.calls.Load(); n != 1 {
			t.Errorf("%d calls, want 1", n)
		}
	})
}

func TestTimeoutIsPaidOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, p *compose.Pool) {
		s := newService(hangs)
		if got := view(t, p, alice, nil, s.source("s")); got.took != timeout {
			t.Errorf("the first view took %s, want the time-out, %s", got.took, timeout)
		}
		for i := range 60 { // a page that polls every second
			if got := view(t, p, alice, nil, s.source("s")); got.took != 0 || got.Code != 200 {
				t.Fatalf("view %d: %d after %s, want 200 at once", i, got.Code, got.took)
			}
			testenv.Advance(time.Second)
		}
		if n := s.calls.Load(); n < 10 || n > 16 {
			t.Errorf("%d calls in a minute, want about one per 5 s, in the background", n)
		}
	})
}

func TestSourceThatAnswersAgainShowsWithinSeconds(t *testing.T) {
	inBubble(t, func(t *testing.T, p *compose.Pool) {
		s := newService(refuses)
		view(t, p, alice, nil, s.source("s"))
		s.set(says("back"))
		testenv.Advance(5 * time.Second)
		got := view(t, p, alice, nil, s.source("s"))
		if v := got.member(t, "s"); v != "default x back" || got.took != 0 {
			t.Errorf("got %v after %s, want the answer at once", v, got.took)
		}
	})
}

func TestRetriesEndWhenNobodyAsks(t *testing.T) {
	inBubble(t, func(t *testing.T, p *compose.Pool) {
		s := newService(refuses)
		view(t, p, alice, nil, s.source("s"))
		testenv.Advance(10 * time.Minute)
		if n := s.calls.Load(); n > 15 {
			t.Errorf("%d calls of a source nobody asks for, want them to end after half a minute", n)
		}
		s.set(says("back"))
		if v := view(t, p, alice, nil, s.source("s")).member(t, "s"); v != "default x back" {
			t.Errorf("after a pause the source is not called again: %v", v)
		}
	})
}

func TestHungServiceDelaysOtherParametersOnlyBriefly(t *testing.T) {
	inBubble(t, func(t *testing.T, p *compose.Pool) {
		s := newService(hangs)
		view(t, p, alice, nil, s.source("s"))
		for i := range 5 {
			if got := viewOf(t, p, alice, nil, fmt.Sprint("model ", i), s.source("s")); got.took > timeout/8 {
				t.Errorf("call %d to a service that hangs took %s, want at most %s", i, got.took, timeout/8)
			}
		}
	})
}

func TestSlowCallDoesNotHurryOthersOfTheSameService(t *testing.T) {
	inBubble(t, func(t *testing.T, p *compose.Pool) {
		hung, well, slow := newService(hangs), newService(says("1")), newService(sleeps(time.Second))
		view(t, p, alice, nil, hung.source("hung"), well.source("well"))
		if v := view(t, p, alice, nil, slow.source("slow")).member(t, "slow"); v != "default x late" {
			t.Errorf("slow is %v, want its answer: the service answered meanwhile", v)
		}
	})
}

func TestCallerWhoLeavesDoesNotEndTheCallOfOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, p *compose.Pool) {
		s := newService(sleeps(time.Second))
		ctx, leave := context.WithCancel(context.Background())
		c := echo.New().NewContext(httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx), httptest.NewRecorder())
		caller.Set(c, alice)
		v := p.Begin(c)
		a := compose.Ask(v, s.source("s"), "x")
		leave()
		if _, ok := a.Get(); ok || v.Answer(map[string]any{}) == nil {
			t.Error("the view of a caller who left was completed")
		}
		if got := view(t, p, alice, nil, s.source("s")); got.member(t, "s") != "default x late" || s.calls.Load() != 1 {
			t.Errorf("got %s with %d calls, want the answer of the first call", got.Body, s.calls.Load())
		}
	})
}

func TestETagCoversTheViewWithoutItsTimes(t *testing.T) {
	inBubble(t, func(t *testing.T, p *compose.Pool) {
		s := newService(says("1"))
		first := view(t, p, alice, nil, s.source("s"))
		tag := first.Header().Get("ETag")
		testenv.Advance(3 * time.Second)
		again := view(t, p, alice, nil, s.source("s"))
		if again.Header().Get("ETag") != tag || again.member(t, "_as_of") == first.member(t, "_as_of") {
			t.Errorf("ETag %q, then %q with another _as_of: want them equal", tag, again.Header().Get("ETag"))
		}
		for _, given := range []string{tag, strings.TrimPrefix(tag, "W/"), `"a", ` + tag, "*"} {
			got := view(t, p, alice, http.Header{"If-None-Match": {given}}, s.source("s"))
			if got.Code != http.StatusNotModified || got.Body.Len() != 0 || got.Header().Get("ETag") != tag {
				t.Errorf("If-None-Match %s: %d, ETag %q, body %q; want 304 without a body", given, got.Code, got.Header().Get("ETag"), got.Body)
			}
		}
		s.set(says("2"))
		testenv.Advance(3 * time.Second)
		if got := view(t, p, alice, http.Header{"If-None-Match": {tag}}, s.source("s")); got.Code != 200 {
			t.Errorf("another answer: %d, want 200", got.Code)
		}
	})
}

func TestPanicOfASourceIsItsFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, p *compose.Pool) {
		s := newService(func(context.Context) (string, error) { panic("index out of range") })
		got := view(t, p, alice, nil, s.source("s"))
		if diff := cmp.Diff([]any{"s"}, got.member(t, "_partial")); diff != "" || got.Code != 200 {
			t.Errorf("%d, _partial (-want +got):\n%s", got.Code, diff)
		}
	})
}

func TestManyParametersStayBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, p *compose.Pool) {
		s := newService(says("1"))
		for i := range 3000 {
			viewOf(t, p, alice, nil, fmt.Sprint(i), s.source("s"))
		}
		if n := compose.Entries(p); n > 2048 {
			t.Errorf("%d answers kept, want at most 2048", n)
		}
		testenv.Advance(time.Minute)
		view(t, p, alice, nil, s.source("s"))
		if n := compose.Entries(p); n != 1 {
			t.Errorf("%d answers kept after a minute, want 1", n)
		}
	})
}

func TestLargeViewIsBuiltOnceForTheSameAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T, p *compose.Pool) {
		s := newService(says("1"))
		built := 0
		ask := func(who caller.Caller) answer {
			rec := httptest.NewRecorder()
			c := echo.New().NewContext(httptest.NewRequest(http.MethodGet, "/", nil), rec)
			caller.Set(c, who)
			v := p.Begin(c)
			a := compose.Ask(v, s.source("s"), "x")
			if err := v.AnswerShared("large", func() any {
				built++
				text, _ := a.Get()
				return map[string]string{"s": text}
			}); err != nil {
				t.Error(err)
			}
			return answer{rec, 0}
		}
		for range 3 {
			if got := ask(alice); got.member(t, "s") != "default x 1" || got.member(t, "_sources") == nil {
				t.Errorf("got %s", got.Body)
			}
		}
		if built != 1 {
			t.Errorf("built %d times of the same answers, want once", built)
		}
		if got := ask(caller.Caller{Tenant: "other"}); got.member(t, "s") != "other x 1" {
			t.Errorf("another tenant got %s", got.Body)
		}
		s.set(says("2"))
		testenv.Advance(3 * time.Second)
		if got := ask(alice); got.member(t, "s") != "default x 2" || built != 3 {
			t.Errorf("another answer: %s, built %d times; want it shown", got.Body, built)
		}
		s.set(refuses)
		testenv.Advance(3 * time.Second)
		if got := ask(alice); cmp.Diff([]any{"s"}, got.member(t, "_partial")) != "" {
			t.Errorf("without the source: %s, want it in _partial", got.Body)
		}
	})
}

func TestLongCallGoesOnWhileViewsShowTheAnswerBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, p *compose.Pool) {
		s := newService(sleeps(10 * time.Second))
		long := s.source("long")
		long.Budget, long.Pace = time.Minute, 2
		first := view(t, p, alice, nil, long)
		if first.took != timeout || cmp.Diff([]any{"long"}, first.member(t, "_partial")) != "" {
			t.Errorf("the first view: %s after %s, want none after the time-out", first.Body, first.took)
		}
		if again := view(t, p, alice, nil, long); again.took != 0 {
			t.Errorf("the second view took %s, want it at once: the call has been waited for", again.took)
		}
		testenv.Advance(9 * time.Second)
		shown := view(t, p, alice, nil, long)
		if shown.member(t, "long") != "default x late" || shown.took != 0 || s.calls.Load() != 1 {
			t.Errorf("after the call: %s after %s, %d calls; want its answer, at once", shown.Body, shown.took, s.calls.Load())
		}
		testenv.Advance(18 * time.Second) // shared for twice as long as it took
		view(t, p, alice, nil, long)
		if n := s.calls.Load(); n != 1 {
			t.Errorf("%d calls, want one in 20 s", n)
		}
		testenv.Advance(2 * time.Second)
		s.set(refuses)
		old := view(t, p, alice, nil, long)
		if old.took != 0 || old.member(t, "long") != "default x late" && old.member(t, "_partial") == nil {
			t.Errorf("while the next call runs: %s after %s, want the answer before, at once", old.Body, old.took)
		}
	})
}

func TestLongCallShowsTheAgeOfTheAnswerBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, p *compose.Pool) {
		s := newService(sleeps(10 * time.Second))
		long := s.source("long")
		long.Budget = time.Minute
		view(t, p, alice, nil, long)
		testenv.Advance(9 * time.Second)
		first := view(t, p, alice, nil, long)
		testenv.Advance(time.Minute)
		old := view(t, p, alice, nil, long)
		synctest.Wait()
		if old.member(t, "_as_of") != first.member(t, "_as_of") || old.took != 0 || s.calls.Load() != 2 {
			t.Errorf("_as_of %v after %s with %d calls, want that of the answer before, %v, at once, and a second call", old.member(t, "_as_of"), old.took, s.calls.Load(), first.member(t, "_as_of"))
		}
		testenv.Advance(11 * time.Minute)
		if late := view(t, p, alice, nil, long); late.member(t, "long") == nil && late.took == 0 {
			t.Errorf("%s: the answer of the second call is lost", late.Body)
		}
	})
}

func TestLongCallOfAServiceThatAnswersNothingIsMissing(t *testing.T) {
	inBubble(t, func(t *testing.T, p *compose.Pool) {
		s := newService(says("well"))
		long, short := s.source("long"), s.source("short")
		long.Budget = time.Minute
		if whole := view(t, p, alice, nil, long, short); whole.member(t, "_partial") != nil {
			t.Fatalf("while the service answers: %s, want all of it", whole.Body)
		}
		testenv.Advance(3 * time.Second) // answers are shared no longer
		s.set(hangs)
		view(t, p, alice, nil, long, short)
		away := view(t, p, alice, nil, long, short)
		if diff := cmp.Diff([]any{"long", "short"}, away.member(t, "_partial")); diff != "" || away.took != 0 {
			t.Errorf("after the time-out of the short call: %s after %s, want both missing, at once (-want +got):\n%s", away.Body, away.took, diff)
		}
	})
}
