package compose

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// View collects the sources of one request. It belongs to the request's goroutine.
type View struct {
	pool *Pool
	c    echo.Context
	ctx  context.Context
	who  caller.Caller

	pending []func() *result // settle the answers, in the order of the requests
	states  map[string]api.SourceState
	asOf    time.Time // of the oldest answer
}

// Begin starts the view of a request behind a guard.
func (p *Pool) Begin(c echo.Context) *View {
	return &View{pool: p, c: c, ctx: c.Request().Context(), who: caller.From(c), states: map[string]api.SourceState{}}
}

// The caller.
func (v *View) Who() caller.Caller { return v.who }

// Answer is a source's answer to come.
type Answer[T any] struct {
	view *View
	name string

	settled bool
	ticket
	until <-chan time.Time
	began time.Time

	value T
	err   error
}

// Ask calls a source, or joins a call in progress. It does not wait: call Ask for all sources of a view before taking
// an answer.
func Ask[P comparable, T any](v *View, s Source[P, T], parameters P) *Answer[T] {
	who := v.who
	k := key{service: s.Service, name: s.Name, call: s.Call, tenant: who.Tenant, parameters: parameters}
	a := &Answer[T]{view: v, name: s.Name, began: time.Now()}
	a.ticket = v.pool.ask(v.ctx, k, call{
		fetch:  func(ctx context.Context) (any, error) { return s.Fetch(ctx, who, parameters) },
		budget: s.Budget, pace: s.Pace,
	})
	if a.flight != nil {
		a.until = time.After(a.wait) // from now, not from when the view comes to this answer
	}
	v.pending = append(v.pending, func() *result { a.Get(); return a.ready })
	return a
}

// Get waits for the answer; ok is false if the source failed, and the view then names it in _partial.
func (a *Answer[T]) Get() (value T, ok bool) {
	if a.settled {
		return a.value, a.err == nil
	}
	a.settled = true
	r := a.ready
	if a.flight != nil {
		r = a.await()
	}
	if a.ready, a.err = r, r.err; r.err == nil {
		a.value = r.value.(T)
	}
	a.view.record(a.name, r)
	return a.value, a.err == nil
}

// await prefers an answer that has come to a deadline that has passed since: another answer was waited for first.
func (a *Answer[T]) await() *result {
	select {
	case <-a.flight.done:
		return &a.flight.result
	default:
	}
	select {
	case <-a.flight.done:
		return &a.flight.result
	case <-a.until:
		if a.before != nil {
			return a.before
		}
		return &result{err: context.DeadlineExceeded, took: time.Since(a.flight.began)}
	case <-a.view.ctx.Done():
		return &result{err: a.view.ctx.Err(), took: time.Since(a.began)}
	}
}

// severities of source states: of several calls under one name the worst shows.
var severities = []api.SourceStateStatus{api.SourceStateStatusOk, api.SourceStateStatusSkipped, api.SourceStateStatusTimeout, api.SourceStateStatusError}

// record adds a call's state to that of its name.
func (v *View) record(name string, r *result) {
	s := newSourceState(r)
	if s.AsOf != nil && (v.asOf.IsZero() || s.AsOf.Before(v.asOf)) {
		v.asOf = *s.AsOf
	}
	if old, ok := v.states[name]; ok {
		ms, asOf := max(s.Ms, old.Ms), s.AsOf
		if asOf == nil || old.AsOf != nil && old.AsOf.Before(*asOf) {
			asOf = old.AsOf
		}
		if slices.Index(severities, old.Status) > slices.Index(severities, s.Status) {
			s = old
		}
		s.Ms, s.AsOf = ms, asOf
	}
	v.states[name] = s
}

// newSourceState returns a view's state of a source: that its figures were measured, and when; that they were not, and
// why; or what failed. The text goes to the browser, so it contains no address and no part of an answer.
func newSourceState(r *result) api.SourceState {
	s := api.SourceState{State: api.SourceFailed, Ms: int(r.took.Milliseconds())}
	words := ""
	switch {
	case r.err == nil:
		at := r.at.UTC().Truncate(time.Millisecond)
		return api.SourceState{State: api.SourceMeasured, Status: api.SourceStateStatusOk, Ms: s.Ms, AsOf: &at}
	case skipped(r.err):
		s.State, s.Status = api.SourceNotMeasured, api.SourceStateStatusSkipped
		words = "the service does not offer this"
		if errors.Is(r.err, upstream.ErrNotConfigured) {
			words = "no address is configured"
		}
		s.Reason = &words
		return s
	case timedOut(r.err):
		s.Status, words = api.SourceStateStatusTimeout, "no answer in time"
	default:
		s.Status, words = api.SourceStateStatusError, describeFailure(r.err)
	}
	s.Error = &words
	return s
}

func describeFailure(err error) string {
	var p *problem.Error
	var unreached *net.OpError
	switch {
	case errors.As(err, &p):
		return fmt.Sprintf("the service answered %d", p.Status())
	case errors.As(err, &unreached):
		return "the service cannot be reached"
	}
	return "the answer cannot be used"
}

// Failed reports whether a source was called and gave no answer.
func (v *View) Failed(name string) bool {
	s, ok := v.states[name]
	return ok && s.Status != api.SourceStateStatusOk
}

// freshness holds the members that describe the sources.
type freshness struct {
	Partial []string                   `json:"_partial,omitempty"`
	AsOf    *time.Time                 `json:"_as_of,omitempty"`
	Sources map[string]api.SourceState `json:"_sources"`
}

// Answer sends doc, an object without the members of freshness, with those added; or 304 if the caller has it
// already. The ETag covers doc and _partial: a view that lost a source is another one, even if it reads the same.
func (v *View) Answer(doc any) error {
	if err := v.settle(); err != nil {
		return err
	}
	body, err := encode(doc)
	if err != nil {
		return err
	}
	return v.send(body)
}

// AnswerShared is Answer for a large document: it is built and encoded once for all requests while the answers of its
// sources are shared. name distinguishes the tenant's views; build may not depend on anything else of the request.
func (v *View) AnswerShared(name string, build func() any) error {
	if err := v.settle(); err != nil {
		return err
	}
	inputs := make([]*result, len(v.pending))
	for i, settle := range v.pending {
		inputs[i] = settle()
	}
	k := documentKey{name, v.who.Tenant}
	body := v.pool.document(k, inputs)
	if body == nil {
		var err error
		if body, err = encode(build()); err != nil {
			return err
		}
		v.pool.keepDocument(k, inputs, body)
	}
	return v.send(body)
}

// settle waits for the answers that were not taken.
func (v *View) settle() error {
	for _, settle := range v.pending {
		settle()
	}
	return v.ctx.Err() // the client has gone
}

func encode(doc any) ([]byte, error) {
	body, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("encode the view: %w", err)
	}
	if len(body) < 2 || body[0] != '{' {
		return nil, errors.New("compose: a view is an object")
	}
	return body, nil
}

// send adds the members of freshness to an object, which stays as it is.
func (v *View) send(body []byte) error {
	f := freshness{Sources: v.states}
	for _, name := range slices.Sorted(maps.Keys(v.states)) {
		if v.states[name].Status != api.SourceStateStatusOk {
			f.Partial = append(f.Partial, name)
		}
	}
	if !v.asOf.IsZero() {
		f.AsOf = &v.asOf
	}
	h := v.c.Response().Header()
	tag := entityTag(body, f.Partial)
	h.Set("ETag", tag)
	if matches(v.c.Request().Header.Values("If-None-Match"), tag) {
		return v.c.NoContent(http.StatusNotModified)
	}
	tail, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("encode the view's sources: %w", err)
	}
	out := make([]byte, 0, len(body)+len(tail))
	if out = append(out, body[:len(body)-1]...); len(out) > 1 {
		out = append(out, ',')
	}
	return v.c.Blob(http.StatusOK, echo.MIMEApplicationJSON, append(out, tail[1:]...))
}

// entityTag returns a weak tag: a proxy may compress the body.
func entityTag(body []byte, partial []string) string {
	h := sha256.New()
	h.Write(body)
	h.Write([]byte("\n" + strings.Join(partial, "\n")))
	return `W/"` + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:18]) + `"`
}

// matches compares weakly, as RFC 9110 has it for If-None-Match.
func matches(headers []string, tag string) bool {
	for _, h := range headers {
		for given := range strings.SplitSeq(h, ",") {
			given = strings.TrimSpace(given)
			if given == "*" || strings.TrimPrefix(given, "W/") == strings.TrimPrefix(tag, "W/") {
				return true
			}
		}
	}
	return false
}
