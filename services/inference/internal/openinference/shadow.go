package openinference

import (
	"bytes"
	"context"
	"slices"
	"time"
	"unsafe"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/serving"
	"github.com/mlp-platform/platform/services/inference/internal/shadow"
	"github.com/mlp-platform/platform/services/inference/internal/snapshot"
)

// scoreLater keeps a request's tensors to be scored by another alias. It is nil for a request too large to be kept.
func scoreLater(id string, tensors []sent) shadow.Score {
	tensors, ok := keep(tensors)
	if !ok {
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

// maxKept limits the size of one kept request, in bytes; the scorer limits their number.
const maxKept = service.DefaultBodyLimit

// keep copies the parts of the tensors that a score needs. They are slices of the request's body, which may be many
// times as large and must not be kept alive by them.
func keep(tensors []sent) (kept []sent, ok bool) {
	size := 0
	for _, t := range tensors {
		size += int(unsafe.Sizeof(t)) + len(t.Name) + len(t.Datatype) + 8*len(t.Shape) + len(t.Data) + len(t.binary)
	}
	if size > maxKept {
		return nil, false
	}
	kept = slices.Clone(tensors)
	for i := range kept {
		t := &kept[i]
		t.Data, t.binary = bytes.Clone(t.Data), bytes.Clone(t.binary)
	}
	return kept, true
}
