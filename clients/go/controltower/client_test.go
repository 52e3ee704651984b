package controltower_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mlp-platform/platform/clients/go/controltower"
)

func clientOf(t *testing.T, port int, options ...controltower.Option) *controltower.Client {
	t.Helper()
	c, err := controltower.New(fmt.Sprintf("http://localhost:%d", port), token, 20*time.Second, options...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestACallerWhoGivesUpIsTheCause(t *testing.T) {
	t.Parallel()
	p := playExchanges(t, []rawExchange{{Request: getRequest("/status"), Then: "hold"}})
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	time.AfterFunc(50*time.Millisecond, func() { cancel(enough) })
	if _, err := clientOf(t, p.port).Status(ctx); !isTransport(err) || !errors.Is(err, enough) {
		t.Errorf("%v; want isTransport(err) && errors.Is(err, enough)", err)
	}
	if _, err := clientOf(t, p.port).Status(ctx); !isTransport(err) {
		t.Errorf("given up before: %v; want isTransport(err)", err)
	}
}

func TestAStreamEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	p := playExchanges(t, []rawExchange{{Request: askStream(0, ""), Response: []piece{{Text: streamHead().head() + opening + eventFrame(1)}}, Then: "hold"}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var state controltower.StreamState
	var events int
	var last error
	for _, err := range clientOf(t, p.port).Stream(ctx, controltower.StreamOptions{IdleTimeout: time.Minute, LastEventID: pointerTo(int64(0)), State: &state}) {
		if last = err; err == nil {
			events++
			cancel()
		}
	}
	if events != 1 || !isTransport(last) || !errors.Is(last, context.Canceled) || state.LastEventID != 1 || state.EndReason != "" {
		t.Errorf(`%d events, %v, %+v; want events == 1 && isTransport(last) && errors.Is(last, context.Canceled) && state.LastEventID == 1 && state.EndReason == ""`, events, last, state)
	}
	p.verify(t, 1)
}

func TestLeavingTheLoopHangsUp(t *testing.T) {
	t.Parallel()
	// "hold" ends only when the client hangs up, and the player waits for it.
	held := rawExchange{Request: askStream(0, ""), Response: []piece{{Text: streamHead().head() + opening + eventFrame(1)}}, Then: "hold"}
	p := playExchanges(t, []rawExchange{held, held})
	events := clientOf(t, p.port).Stream(t.Context(), controltower.StreamOptions{IdleTimeout: time.Minute, LastEventID: pointerTo(int64(0))})
	for range 2 { // a sequence can be ranged over again, on a new connection
		for _, err := range events {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	p.verify(t, 2)
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	c, err := controltower.New("http://127.0.0.1:1", token, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Status(t.Context()); !isTransport(err) || !strings.Contains(err.Error(), "is the server running?") {
		t.Errorf(`%v; want isTransport(err) && strings.Contains(err.Error(), "is the server running?")`, err)
	}
}

func TestAReportBeyondTheBoundIsNotSent(t *testing.T) {
	t.Parallel()
	p := playExchanges(t, nil)
	if _, err := clientOf(t, p.port).InspectRunEvidence(t.Context(), make([]byte, controltower.MaxReport+1)); !isConfig(err) {
		t.Errorf("%v; want isConfig(err)", err)
	}
	p.verify(t, 0)
}

func TestTheTokenIsNeverShown(t *testing.T) {
	t.Parallel()
	c := clientOf(t, 1)
	_, err := controltower.New("http://127.0.0.1:1", "a token too short", time.Second)
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%+v %#v %+v %#v", c, c, *c, *c), fmt.Sprint(err)} {
		if strings.Contains(text, token) || strings.Contains(text, "a token too short") {
			t.Errorf(`the token stands in %q; want !strings.Contains(text, token) && !strings.Contains(text, "a token too short")`, text)
		}
	}
}

func TestManyCallsAtOnce(t *testing.T) {
	t.Parallel()
	var exchanges []rawExchange
	for range 16 {
		exchanges = append(exchanges, rawExchange{Request: getRequest(runTarget), Response: []piece{{Text: runAnswer(runID).text()}}})
	}
	p := playExchanges(t, exchanges)
	c := clientOf(t, p.port)
	var calls sync.WaitGroup
	for range len(exchanges) {
		calls.Go(func() {
			if r, err := c.Run(t.Context(), runID); err != nil || r.Value.Run.RunID != runID {
				t.Errorf("%+v, %v; want r.Value.Run.RunID == runID", r, err)
			}
		})
	}
	calls.Wait()
	p.verify(t, len(exchanges))
}

// Nothing sleeps: the pauses are computed, and one that is cut short runs on a bubble's clock.
func TestWaitsBetweenAttempts(t *testing.T) {
	t.Parallel()
	policy := controltower.RetryPolicy{MaxAttempts: 10, BaseDelay: 100 * time.Millisecond, MaxDelay: time.Second}
	busy := &controltower.APIError{StatusCode: 503, Code: "overloaded", Retryable: true, RetryAfter: 2}
	gone := &controltower.TransportError{Detail: "gone"}
	for _, tc := range []struct {
		name    string
		policy  controltower.RetryPolicy
		attempt int
		err     error
		jitter  float64
		want    time.Duration
		again   bool
	}{
		{"the first wait", policy, 1, gone, 0.5, 50 * time.Millisecond, true},
		{"it doubles", policy, 3, gone, 0.5, 200 * time.Millisecond, true},
		{"up to its most", policy, 9, gone, 0.5, 500 * time.Millisecond, true},
		{"full jitter", policy, 9, gone, 0, 0, true},
		{"never below Retry-After", policy, 1, busy, 0.5, 2 * time.Second, true},
		{"unless told so", controltower.RetryPolicy{MaxAttempts: 2, IgnoreRetryAfter: true}, 1, busy, 0.5, 0, true},
		{"attempts are spent", policy, 10, gone, 0.5, 0, false},
		{"not retryable", policy, 1, &controltower.APIError{Code: "not_found"}, 0.5, 0, false},
		{"a broken answer", policy, 1, &controltower.ProtocolError{}, 0.5, 0, false},
		{"a broken digest", policy, 1, &controltower.IntegrityError{Protocol: &controltower.ProtocolError{}}, 0.5, 0, false},
		{"a setup", policy, 1, &controltower.ConfigError{}, 0.5, 0, false},
	} {
		if got, again := controltower.Pause(tc.policy, tc.attempt, tc.err, tc.jitter); got != tc.want || again != tc.again {
			t.Errorf("%s: %v, %v; want got == tc.want && again == tc.again", tc.name, got, again)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := controltower.Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v; want errors.Is(err, context.DeadlineExceeded) && time.Since(start) == time.Second", err, time.Since(start))
		}
	})
}

// A key in another case would be decoded over the one that was checked.
func TestKeysThatDifferInCaseAlone(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*reply{
		"at the top":     runAnswer(runID).swap(`"kind":"svc-control`, `"KIND":"x","kind":"svc-control`),
		"inside":         runAnswer(runID).swap(`"state":"proposed"`, `"State":"decided","state":"proposed"`),
		"in an array":    runsPage(50, "", "run/a").swap(`"state":"proposed"`, `"State":"decided","state":"proposed"`),
		"of an envelope": errorReply(404, "run_not_found", false, nil).swap(`"code":`, `"Code":"x","code":`),
	} {
		target, call := runTarget, func(c *controltower.Client) error { _, err := c.Run(t.Context(), runID); return err }
		if name == "in an array" {
			target, call = "/runs", func(c *controltower.Client) error {
				_, err := c.ListRuns(t.Context(), controltower.RunQuery{})
				return err
			}
		}
		p := playExchanges(t, []rawExchange{{Request: getRequest(target), Response: []piece{{Text: r.sealed().text()}}}})
		err := call(clientOf(t, p.port))
		p.verify(t, 1)
		if _, ok := errors.AsType[*controltower.ProtocolError](err); !ok {
			t.Errorf("%s: %v; want ok", name, err)
		}
	}
}
