package openinference

import (
	"context"
	"time"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/serving"
	"github.com/mlp-platform/platform/services/inference/internal/shadow"
	"github.com/mlp-platform/platform/services/inference/internal/snapshot"
)

// scoreLater keeps a request's tensors to be scored by another alias. It is nil for a request too large to be kept.
func scoreLater(id string, tensors []sent) shadow.Score {
	size := 0
	for _, t := range tensors {
		size += len(t.Data) + len(t.binary)
	}
	if size > service.DefaultBodyLimit {
		return nil
	}
	return func(ctx context.Context, slot *catalog.Slot) ([]snapshot.Record, error) {
		in, rows, faults := assemble(slot.Model, tensors)
		if faults != nil {
			return nil, shadow.ErrMismatch
		}
		deadline, _ := ctx.Deadline()
		call := serving.Call{Name: slot.Name, Start: time.Now(), Limit: time.Until(deadline)}
		outs, err := infer(ctx, &call, slot, in, rows)
		if err != nil {
			return nil, err
		}
		return records(slot, id, in, outs, rows), nil
	}
}
