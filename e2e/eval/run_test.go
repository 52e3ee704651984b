//go:build e2e

package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"
)

// options select the scenarios to run and how.
type options struct {
	limit    time.Duration // of the whole run
	answer   time.Duration // of one answer
	env      []string      // settings of the assistant, for its engine
	engine   string        // name in the report
	progress io.Writer
}

// evaluate asks all questions of the scenarios and sums up the answers.
func evaluate(t testing.TB, list []Scenario, o options) Report {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), o.limit)
	defer cancel()
	c := startCluster(t)
	e := &evaluation{cluster: c, assistant: startAssistant(t, c, o.answer, o.env...), progress: o.progress}
	for _, s := range list {
		e.total += len(s.Ask)
	}
	if slices.ContainsFunc(list, func(s Scenario) bool { return s.GatewayAPI }) {
		if err := c.serveGatewayAPI(ctx); err != nil {
			t.Fatal(err)
		}
	}
	together := slices.DeleteFunc(slices.Clone(list), func(s Scenario) bool { return s.Alone })
	e.setUp(ctx, together)
	for i := range together {
		e.questions(ctx, &together[i])
	}
	for i := range list {
		s := &list[i]
		if !s.Alone {
			continue
		}
		e.setUp(ctx, list[i:i+1])
		e.questions(ctx, s)
		if err := c.remove(context.WithoutCancel(ctx), s); err != nil {
			fmt.Fprintf(o.progress, "%s: remove: %v\n", s.ID, err)
		}
	}
	r := newReport(e.results)
	r.Engine, r.Began, r.Seconds = o.engine, began, time.Since(began).Seconds()
	for _, id := range slices.Sorted(maps.Keys(e.failed)) {
		r.NotAsked = append(r.NotAsked, id+": "+e.failed[id].Error())
	}
	return r
}

var errTimeOver = errors.New("the time of the run is over")

// evaluation is a run.
type evaluation struct {
	*cluster
	*assistant
	progress io.Writer
	total    int
	results  []Result

	mu     sync.Mutex
	failed map[string]error // guarded by mu: scenarios that do not match their description
}

func (e *evaluation) fail(s *Scenario, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed == nil {
		e.failed = map[string]error{}
	}
	e.failed[s.ID] = err
}

// setUp creates scenarios and waits until each matches its description. All are created before it waits for the first:
// controllers work on them meanwhile.
func (e *evaluation) setUp(ctx context.Context, list []Scenario) {
	for i := range list {
		s := &list[i]
		e.engage(s)
		if err := e.build(ctx, s); err != nil {
			e.fail(s, err)
		}
	}
	var group sync.WaitGroup
	for i := range list {
		s := &list[i]
		if e.failed[s.ID] != nil {
			continue
		}
		group.Go(func() {
			if err := e.settle(ctx, s); err != nil {
				e.fail(s, err)
			}
		})
	}
	group.Wait()
	if len(list) > 1 {
		fmt.Fprintf(e.progress, "%d scenarios are set up, %d are not\n", len(list)-len(e.failed), len(e.failed))
	}
}

func (e *evaluation) engage(s *Scenario) { e.actors.engage(s) }

// questions asks every wording of a scenario, each in a separate session.
func (e *evaluation) questions(ctx context.Context, s *Scenario) {
	if e.failed[s.ID] != nil {
		fmt.Fprintf(e.progress, "%s: %v\n", s.ID, e.failed[s.ID])
		return
	}
	for _, wording := range slices.Sorted(maps.Keys(s.Ask)) {
		if ctx.Err() != nil {
			e.fail(s, errTimeOver)
			return
		}
		r := Result{
			Scenario: s.ID, Class: s.Class, Group: s.Group, Wording: wording, HeldOut: s.HeldOut, Healthy: s.Expect.Healthy, Question: s.Ask[wording],
		}
		calls, began := e.calls.Load(), time.Now()
		text, err := e.ask(ctx, s.ID+"."+wording, r.Question)
		if ctx.Err() != nil { // interrupted, not failed
			e.fail(s, errTimeOver)
			return
		}
		r.Took, r.Calls, r.Answer = time.Since(began), e.calls.Load()-calls, text
		r.Seconds = r.Took.Seconds()
		r.Verdict = judge(s.Expect, text)
		if r.Verdict == AllClear && s.Group == "count" { // the question was not whether something is wrong
			r.Verdict = Missed
		}
		if err != nil {
			r.Verdict, r.Error = Failed, err.Error()
		}
		for _, term := range slices.Concat(s.Expect.Object, s.Expect.Cause) {
			if says([]string{term}, text) == 0 {
				r.Lacks = append(r.Lacks, term)
			}
		}
		e.results = append(e.results, r)
		fmt.Fprintf(e.progress, "%4d/%d  %-9s %5.2f s  %s, %s\n", len(e.results), e.total, r.Verdict, r.Seconds, s.ID, cmp.Or(wording, "?"))
	}
}
