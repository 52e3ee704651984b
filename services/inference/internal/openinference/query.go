package openinference

import (
	"context"
	"slices"
	"time"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
	"github.com/mlp-platform/platform/services/inference/internal/model"
	"github.com/mlp-platform/platform/services/inference/internal/request"
	"github.com/mlp-platform/platform/services/inference/internal/serving"
	"github.com/mlp-platform/platform/services/inference/internal/snapshot"
)

// query is one inference request, over HTTP or gRPC.
type query struct {
	request.Infer
	tensors []sent
	version string
	weight  int // how many requests it was admitted as
}

// serve answers a query: deliver gets the model's outputs and which of them are wanted.
func (h *Handlers) serve(ctx context.Context, call *serving.Call, q *query, deliver func(*catalog.Slot, []runtime.Tensor, []wantedOutput)) error {
	if q.Timeout > 0 && q.Timeout < call.Limit.Microseconds() {
		call.Limit = time.Duration(q.Timeout) * time.Microsecond
	}
	slot, err := h.core.Find(ctx, call, serving.Wanted{Alias: q.Alias, Version: q.version})
	if err != nil {
		return err
	}
	defer slot.Release()
	counts := call.Counts(slot)
	in, rows, faults := assemble(slot.Model, q.tensors)
	wanted, more := chooseOutputs(slot.Model, &q.Infer)
	if faults = append(faults, more...); faults != nil {
		if slot.Alias != "" && !slices.ContainsFunc(faults, func(f problem.Field) bool { return !request.SaysNonFinite(f.Msg) }) {
			h.core.RecordNonFinite(call, slot, snapshot.V2)
		}
		counts.Count(metrics.Mismatch)
		return serving.Faulty(fault.InvalidTensors, faults)
	}
	leave, err := h.admitAnswer(call, slot.Model, q.weight, rows)
	if err != nil {
		if fault.InvalidTensors.Has(err) {
			counts.Count(metrics.Mismatch)
		}
		return err
	}
	defer leave()
	outs, err := infer(ctx, call, slot, in, rows)
	if err != nil {
		outcome, err := runFault(call, slot, err)
		counts.Count(outcome)
		return err
	}
	deliver(slot, outs, wanted)
	counts.Count(metrics.Success)
	counts.Seconds.Observe(time.Since(call.Start).Seconds())
	h.record(call, slot, q.ID, q.tensors, records(slot, q.ID, in, outs, rows))
	return nil
}

// recordNonFinite looks whether a body was refused for its NaN or Infinity alone, and keeps it for input drift.
func (h *Handlers) recordNonFinite(ctx context.Context, call *serving.Call, version string, text []byte) {
	filled, found := request.FillNonFinite(text)
	if !found {
		return
	}
	p, faults := request.ParseInfer(filled)
	if faults != nil {
		return
	}
	if slot := h.core.FindLoaded(ctx, call, serving.Wanted{Alias: p.Alias, Version: version}); slot != nil {
		h.core.RecordNonFinite(call, slot, snapshot.V2)
		slot.Release()
	}
}

// weightOf is how many requests a body of so many bytes counts as, so that those of one model take no more memory than
// as many bodies of the usual limit. A negative length is not known.
func weightOf(length int64) int {
	if length < 0 {
		return MaxBody / service.DefaultBodyLimit
	}
	return 1 + int(length/service.DefaultBodyLimit)
}

// admitAnswer adds the size of the answer, as far as the graph declares it, to the weight of the request.
func (h *Handlers) admitAnswer(call *serving.Call, m *model.Model, had, rows int) (leave func(), err error) {
	perRow := declaredBytes(m.Outputs())
	if err := refuseLargeAnswer(perRow, rows); err != nil {
		return nil, err
	}
	more := perRow * rows / service.DefaultBodyLimit
	if more == 0 {
		return func() {}, nil
	}
	return h.core.AdmitMore(call, had, had+more)
}
