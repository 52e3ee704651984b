package inference_test

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
	"github.com/mlp-platform/platform/services/inference/internal/openinference/oippb"
)

// A call is over when its deadline is, or that of the parameter; one that is given up is counted as such.
func TestGRPCDeadlines(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("slow", "Production", reg.Register("slow", fixturetest.SlowFor(t, "slow", 60), nil))
	// Neither its trial nor its runs may overrun on a busy machine: that is not tested here.
	i, c := startGRPC(t, reg, func(c *inference.Config) { c.ModelTrialSeconds, c.RunTimeoutMS, c.TimeoutMS = 600, 120_000, 120_000 })
	ask := infer("slow", floats("x", []int64{1, 1}, 1))
	ask.Parameters = map[string]*oippb.InferParameter{"timeout": {ParameterChoice: &oippb.InferParameter_Int64Param{Int64Param: 1000}}}
	_, err := c.ModelInfer(t.Context(), ask)
	if reason, _ := reasonOf(err); status.Code(err) != codes.DeadlineExceeded || reason != "deadline_exceeded" {
		t.Errorf("a timeout of 1 ms: %v, want DeadlineExceeded from the service", err)
	}
	ask.Parameters = nil
	_, err = c.ModelInfer(metadata.AppendToOutgoingContext(t.Context(), "x-request-timeout-ms", "1"), ask)
	if reason, _ := reasonOf(err); status.Code(err) != codes.DeadlineExceeded || reason != "deadline_exceeded" {
		t.Errorf("a header of 1 ms: %v, want DeadlineExceeded from the service", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.ModelInfer(ctx, ask); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a deadline of 20 ms: %v, want DeadlineExceeded", err)
	}
	testenv.Eventually(t, testWait, func() error {
		_, text := i.Get("/metrics")
		if want := `predict_requests_total{alias="Production",model="SLOW",status="timeout"} `; !strings.Contains(text, want) {
			return fmt.Errorf("metrics do not have %s", want)
		}
		return nil
	})
	if got, err := c.ModelInfer(t.Context(), ask); err != nil {
		t.Errorf("in its own time: %v, %v; want an answer", got, err)
	}
}

// Requests beyond a model's limit are told to retry, as over HTTP.
func TestGRPCOverloadSheds(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("slow", "Production", reg.Register("slow", fixturetest.Slow(t, "slow"), nil))
	_, c := startGRPC(t, reg, func(c *inference.Config) { c.MaxInflight, c.BatchMax, c.QueueMax = 2, 2, 2 })
	const callers = 24
	errs := make(chan error, callers)
	for range callers {
		go func() {
			_, err := c.ModelInfer(t.Context(), infer("slow", floats("x", []int64{1, 1}, 1)))
			errs <- err
		}()
	}
	answered, shed := 0, 0
	for range callers {
		err := <-errs
		switch reason, _ := reasonOf(err); {
		case err == nil:
			answered++
		case status.Code(err) == codes.Unavailable && reason == "overloaded" && strings.Contains(fmt.Sprint(status.Convert(err).Details()), "retry_delay"):
			shed++
		default:
			t.Errorf("%v (%s), want an answer or Unavailable overloaded", err, reason)
		}
	}
	if answered < 1 || shed < 1 {
		t.Errorf("%d answered, %d shed; want some of each", answered, shed)
	}
}

// Calls leave the same traces as requests over HTTP: metrics, snapshots, the split by routing key; and they carry a
// request id.
func TestGRPCCallsAreCountedAndRecorded(t *testing.T) {
	t.Parallel()
	i, c := startGRPC(t, v2Registry(t))
	ask := infer("rows", floats("input", []int64{2, 4}, 0, 3, 4, 0, 1, 1, 2, 3))
	ask.Id = "job-7"
	var header metadata.MD
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-request-id", "asked-as-this")
	if _, err := c.ModelInfer(ctx, ask, grpc.Header(&header)); err != nil {
		t.Fatal(err)
	}
	if got := header.Get("x-request-id"); len(got) != 1 || got[0] != "asked-as-this" {
		t.Errorf("request id %v, want the caller's", got)
	}
	if _, err := c.ModelInfer(metadata.AppendToOutgoingContext(t.Context(), "x-platform-probe", "1"), ask); err != nil {
		t.Fatal(err)
	}
	_, text := i.Get("/metrics")
	for _, want := range []string{
		`predict_requests_total{alias="Production",model="ROWS",status="success"} 1`,
		`predict_probes_total{alias="Production",model="ROWS",status="success"} 1`,
		`grpc_requests_total{code="OK",method="ModelInfer"} 2`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("metrics do not have %s", want)
		}
	}
	testenv.Eventually(t, testWait, func() error {
		var got []string
		for _, s := range i.snapshots("ROWS") {
			got = append(got, fmt.Sprintf("%s %s %v %s", s.source, s.alias, s.prediction, s.job))
		}
		if diff := cmp.Diff([]string{"v2 Production 71 job-7", "v2 Production 332 job-7"}, got); diff != "" {
			return fmt.Errorf("snapshots differ from want:\n%s", diff)
		}
		return nil
	})
}

// A message that does not arrive holds its place no longer than a call may take, and others are told to wait meanwhile.
func TestGRPCSlowMessageEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	const limit = 5 * time.Second
	_, c := startGRPC(t, v2Registry(t), func(c *inference.Config) {
		c.TimeoutMS, c.MaxInflight, c.BatchMax, c.QueueMax = int(limit.Milliseconds()), 4, 2, 4
	})
	ask := infer("pair", floats("x", []int64{1, 1}, 1))
	// On a busy machine the message's time may pass before the next call arrives; then another message stalls.
	testenv.Eventually(t, testWait, func() error {
		began := time.Now()
		stalled, err := c.conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, oippb.GRPCInferenceService_ModelInfer_FullMethodName)
		if err != nil {
			return err
		}
		_, refused := c.ModelInfer(t.Context(), ask) // of one connection, so after the header above
		err = stalled.RecvMsg(&oippb.ModelInferResponse{})
		if took := time.Since(began); status.Code(err) != codes.DeadlineExceeded || took < limit {
			return fmt.Errorf("the message that did not arrive: %w after %s, want DeadlineExceeded after %s", err, took, limit)
		}
		if reason, _ := reasonOf(refused); status.Code(refused) != codes.Unavailable || reason != "overloaded" {
			return fmt.Errorf("while a message arrives: %w, want Unavailable overloaded", refused)
		}
		return nil
	})
	testenv.Eventually(t, testWait, func() error {
		_, err := c.ModelInfer(t.Context(), ask)
		return err
	})
}

// Calls without a credential take no places from those with one, however slowly their messages arrive.
func TestGRPCOpenMethodsHoldNoPlaces(t *testing.T) {
	t.Parallel()
	_, c := startGRPC(t, v2Registry(t), func(c *inference.Config) { c.MaxInflight, c.BatchMax, c.QueueMax = 4, 2, 4 })
	for range 20 {
		if _, err := c.conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, oippb.GRPCInferenceService_ServerLive_FullMethodName); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.ModelInfer(t.Context(), infer("pair", floats("x", []int64{1, 1}, 1))); err != nil { // of one connection, so after the headers above
		t.Errorf("while messages of open methods arrive: %v, want an answer", err)
	}
}

// One connection takes at most half of the places.
func TestGRPCConnectionsShareThePlaces(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	start(t, v2Registry(t), func(c *inference.Config) { c.GRPCListener, c.MaxInflight, c.BatchMax, c.QueueMax = ln, 8, 2, 8 })
	greedy, other := dial(t, ln.Addr().String()), dial(t, ln.Addr().String())
	for range 4 {
		if _, err := greedy.conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, oippb.GRPCInferenceService_ModelInfer_FullMethodName); err != nil {
			t.Fatal(err)
		}
	}
	ask := &oippb.ServerMetadataRequest{}
	if _, err := greedy.ServerMetadata(t.Context(), ask); status.Code(err) != codes.Unavailable {
		t.Errorf("over the connection that has its share: %v, want Unavailable", err)
	}
	if _, err := other.ServerMetadata(t.Context(), ask); err != nil {
		t.Errorf("over another: %v, want an answer", err)
	}
}

// A message that would take far more memory than it has bytes is refused before it is decoded.
func TestGRPCRefusesMessagesThatMultiply(t *testing.T) {
	t.Parallel()
	_, c := startGRPC(t, v2Registry(t))
	ask := infer("pair", floats("x", []int64{1, 1}, 1))
	ask.Inputs[0].Contents.BytesContents = make([][]byte, 1<<20)
	_, err := c.ModelInfer(t.Context(), ask)
	if reason, _ := reasonOf(err); status.Code(err) != codes.InvalidArgument || reason != "invalid_tensors" || !strings.Contains(err.Error(), "more than 262144 texts") {
		t.Errorf("a million empty texts: %v, want InvalidArgument invalid_tensors", err)
	}
}

// A stop waits for the calls that run.
func TestGRPCCallsSurviveAStop(t *testing.T) {
	t.Parallel()
	reg := fixturetest.NewRegistry(t)
	reg.Alias("slow", "Production", reg.Register("slow", fixturetest.Slow(t, "slow"), nil))
	const callers = 4
	errs := make(chan error, callers)
	t.Run("service", func(t2 *testing.T) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t2.Fatal(err)
		}
		i := start(t2, reg, func(c *inference.Config) { c.GRPCListener = ln })
		c := dial(t, ln.Addr().String())
		for range callers {
			go func() {
				_, err := c.ModelInfer(t.Context(), infer("slow", floats("x", []int64{1, 1}, 1)))
				errs <- err
			}()
		}
		testenv.Eventually(t2, testWait, func() error {
			if _, text := i.Get("/metrics"); len(errs) == 0 && !regexp.MustCompile(`(?m)^http_requests_in_flight(\{.*\})? [1-9]`).MatchString(text) {
				return fmt.Errorf("no call has begun")
			}
			return nil
		})
	})
	for range callers {
		// A call that came too late to be taken is told so; none that was taken is cut off.
		if err := <-errs; err != nil && status.Code(err) != codes.Unavailable {
			t.Errorf("a call during the stop: %v, want its answer, or Unavailable", err)
		}
	}
}
