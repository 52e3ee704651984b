package serving

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	ort "github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/inference/internal/batch"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
	"github.com/mlp-platform/platform/services/inference/internal/model"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
	"github.com/mlp-platform/platform/services/inference/internal/snapshot"
)

// Wait is nil when the job has its result; else the job is no longer the caller's. timer is stopped.
func Wait(ctx context.Context, timer *time.Timer, job *batch.Job, left time.Duration) error {
	timer.Reset(left)
	defer timer.Stop()
	err := error(context.DeadlineExceeded)
	select {
	case <-job.Done():
		return nil
	case <-timer.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if !job.Abandon() {
		return nil // the result came at the same moment
	}
	return err
}

// LateFault is the answer to a caller whose result missed the deadline, or who has gone.
func (c *Call) LateFault(err error) error {
	if errors.Is(err, context.Canceled) {
		return problem.From(err)
	}
	return problem.DeadlineExceeded.New(fmt.Sprintf("There was no prediction within %s.", c.Limit))
}

// RunFault returns the answer to a failed run, and the outcome to count. what names the rows concerned, such as "this
// row".
func RunFault(slot *catalog.Slot, what string, err error) (outcome int, answer *problem.Error) {
	if errors.Is(err, ort.ErrOverran) || errors.Is(err, batch.ErrTakenOut) {
		return metrics.Timeout, problem.DeadlineExceeded.New(fmt.Sprintf("Model %s version %s took too long and was taken out of service; GET /health shows the reason.", slot.Name, slot.Version)).WithCause(err)
	}
	var server *model.ServerError
	switch {
	case errors.As(err, &server) && server.Late:
		return metrics.Timeout, problem.DeadlineExceeded.New(fmt.Sprintf("Model %s version %s: %s.", slot.Name, slot.Version, server.Reason)).WithCause(err)
	case errors.As(err, &server):
		return metrics.Failed, fault.ScoringUnavailable.New(fmt.Sprintf("Model %s version %s: %s; send the request again later.", slot.Name, slot.Version, server.Reason)).WithCause(err).After(time.Second)
	}
	return metrics.Failed, fault.ModelException.New(fmt.Sprintf("Model %s version %s failed on %s: %s.", slot.Name, slot.Version, what, strings.TrimSuffix(err.Error(), "."))).WithCause(err)
}

// KindOf returns the kind of the model's answer.
func KindOf(m *model.Model) snapshot.Kind {
	switch {
	case m.Schema().Output.Kind != schema.Label:
		return snapshot.Number
	case m.TextLabels():
		return snapshot.TextLabel
	}
	return snapshot.NumberLabel
}

// RecordNonFinite records for input drift that a request was refused because an input is not finite: its producer is
// broken, which its earlier inputs may not show.
func (s *Core) RecordNonFinite(c *Call, slot *catalog.Slot, route snapshot.Source) {
	if c.Probe {
		return
	}
	s.Snapshots.Put(snapshot.Record{
		Model: slot.Name, Alias: slot.Alias, Version: slot.Version, Kind: snapshot.Refused, Source: c.Source(route),
		Input: schema.NonFinite(), TS: time.Now(), Took: time.Since(c.Start),
	})
}
