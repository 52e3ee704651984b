package predict

import (
	"bytes"
	"context"
	"time"

	"github.com/mlp-platform/platform/services/inference/internal/batch"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/request"
	"github.com/mlp-platform/platform/services/inference/internal/serving"
	"github.com/mlp-platform/platform/services/inference/internal/shadow"
	"github.com/mlp-platform/platform/services/inference/internal/snapshot"
)

// scoreLater keeps a request's features, which are part of a pooled buffer, to be scored by another alias.
func scoreLater(a ask) shadow.Score {
	features, job := bytes.Clone(a.features), a.job
	return func(ctx context.Context, slot *catalog.Slot) ([]snapshot.Record, error) {
		if slot.Model.TensorsOnly() != "" {
			return nil, shadow.ErrMismatch
		}
		s, j := slot.Model.Schema(), batch.NewJob()
		if f := request.Fill(features, s, &j.Row); f.Invalid != nil || f.Mismatch != nil {
			j.Free()
			return nil, shadow.ErrMismatch
		}
		input := s.Describe(&j.Row)
		slot.Submit(j)
		timer := time.NewTimer(time.Hour)
		defer timer.Stop()
		deadline, _ := ctx.Deadline()
		if err := serving.Wait(ctx, timer, j, time.Until(deadline)); err != nil {
			return nil, err
		}
		res := j.Result
		j.Free()
		if res.Err != nil {
			return nil, res.Err
		}
		return []snapshot.Record{{
			Model: slot.Name, Alias: slot.Alias, Version: slot.Version, Prediction: res.Number, Label: res.Text, Kind: serving.KindOf(slot.Model),
			JobID: job, Input: input,
		}}, nil
	}
}
