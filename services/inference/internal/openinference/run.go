package openinference

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/inference/internal/batch"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
	"github.com/mlp-platform/platform/services/inference/internal/model"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
	"github.com/mlp-platform/platform/services/inference/internal/serving"
	"github.com/mlp-platform/platform/services/inference/internal/shadow"
	"github.com/mlp-platform/platform/services/inference/internal/snapshot"
)

// infer runs the rows of one request through the slot's copy, in runs of as many rows as the model takes, of which as
// many wait or run at once as the copy has sessions: a large request takes no more room in the queue than that.
func infer(ctx context.Context, call *serving.Call, slot *catalog.Slot, in []runtime.Tensor, rows int) ([]runtime.Tensor, error) {
	size := slot.Rows()
	jobs := make([]*batch.Job, (rows+size-1)/size)
	submitted := 0
	submit := func() {
		from := submitted * size
		to := min(from+size, rows)
		j := batch.NewJob()
		j.Tensors, j.Rows = in, rows
		if len(jobs) > 1 {
			j.Tensors, j.Rows = model.SliceRows(in, from, to), to-from
		}
		jobs[submitted] = j
		submitted++
		slot.Submit(j)
	}
	for submitted < min(len(jobs), slot.Sessions()) {
		submit()
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	parts := make([][]runtime.Tensor, 0, len(jobs))
	bad := model.RowErrors{}
	var failed error
	done, bytes := 0, 0 // rows that have run, and the size of their outputs
	for i := 0; i < submitted; i++ {
		j := jobs[i]
		if err := serving.Wait(ctx, timer, j, max(call.Left(), 0)); err != nil {
			failed = errors.Join(errLate, err)
			continue // the others are released, too
		}
		out, err := j.Outputs, j.Result.Err
		j.Free()
		var rowErrors model.RowErrors
		switch {
		case errors.As(err, &rowErrors):
			for at, err := range rowErrors {
				bad[i*size+at] = err
			}
		case err != nil:
			failed = err
		case failed == nil && len(bad) == 0: // after the first run, an answer that is too large is refused without further runs
			parts = append(parts, out)
			done, bytes = min(done+size, rows), bytes+answerSize(out)
			failed = refuseLargeAnswer(bytes/done, rows)
		}
		if submitted < len(jobs) && failed == nil {
			submit()
		}
	}
	switch {
	case failed != nil:
		return nil, failed
	case len(bad) > 0:
		return nil, bad
	}
	return model.JoinRows(parts)
}

// errLate means that the result missed the caller's deadline, or that the caller has gone.
var errLate = errors.New("no result in time")

// maxAnswer limits the outputs of one request, in bytes: a graph may answer thousands of values for each that it takes.
const maxAnswer = 64 << 20

func answerSize(outs []runtime.Tensor) (bytes int) {
	for i := range outs {
		bytes += binarySize(&outs[i], nil)
	}
	return bytes
}

// elemBytes are the sizes of element types; texts have none that is known.
var elemBytes = map[string]int{runtime.Float: 4, runtime.Double: 8, runtime.Int64: 8, runtime.Int32: 4, runtime.Bool: 1}

// declaredBytes returns the size of a row of the outputs, counting those whose size the graph declares.
func declaredBytes(outs []runtime.Info) (perRow int) {
	for _, o := range outs {
		n := elemBytes[o.Type]
		for _, d := range o.Dims[min(1, len(o.Dims)):] {
			if d < 0 || n > 0 && d > maxAnswer/int64(n) {
				n = 0 // not known; or absurd, which fails in the run
				break
			}
			n *= int(d)
		}
		perRow += n
	}
	return perRow
}

// refuseLargeAnswer judges an answer by the bytes of one row.
func refuseLargeAnswer(perRow, rows int) error {
	if perRow == 0 || rows <= maxAnswer/perRow {
		return nil
	}
	return serving.Faulty(fault.InvalidTensors, []problem.Field{{Loc: []string{"body", "inputs"},
		Msg: fmt.Sprintf("the outputs of %d rows would have more than %d MiB; at %d bytes a row, a request may have %d rows", rows, maxAnswer>>20, perRow, maxAnswer/perRow)}})
}

// runFault returns the answer to a failed run, and the outcome to count.
func runFault(call *serving.Call, slot *catalog.Slot, err error) (outcome int, answer error) {
	if errors.Is(err, errLate) {
		return metrics.Timeout, call.LateFault(err)
	}
	if fault.InvalidTensors.Has(err) {
		return metrics.Mismatch, err
	}
	var bad model.RowErrors
	if !errors.As(err, &bad) {
		return serving.RunFault(slot, "these rows", err)
	}
	const shown = 50
	rows := slices.Sorted(maps.Keys(bad))
	outcome, p := serving.RunFault(slot, fmt.Sprintf("%d of the rows, first on row %d", len(rows), rows[0]), bad[rows[0]])
	var faults []problem.Field
	for _, i := range rows[:min(len(rows), shown)] {
		faults = append(faults, problem.Field{Loc: []string{"body", "row", strconv.Itoa(i)}, Msg: bad[i].Error()})
	}
	return outcome, p.WithErrors(faults...)
}

// records returns the model's answers, one a row, for drift; none if it returns no single value.
func records(slot *catalog.Slot, id string, in, outs []runtime.Tensor, rows int) (out []snapshot.Record) {
	var scratch schema.Row
	for i, a := range slot.Model.Answers(outs, rows) {
		if a.Err != nil {
			continue
		}
		input := slot.Model.DescribeTensors(in, i, &scratch)
		out = append(out, snapshot.Record{
			Model: slot.Name, Alias: slot.Alias, Version: slot.Version, Prediction: a.Number, Label: a.Text, Kind: serving.KindOf(slot.Model),
			JobID: id, Input: input,
		})
	}
	return out
}

// record records the answers, and lets another alias score them where the shadow rules require it.
func (h *Handlers) record(call *serving.Call, slot *catalog.Slot, id string, tensors []sent, made []snapshot.Record) {
	if call.Probe {
		return
	}
	now := time.Now()
	for _, r := range made {
		r.Source, r.TS, r.Took = call.Source(snapshot.V2), now, now.Sub(call.Start)
		h.core.Snapshots.Put(r)
	}
	h.core.Shadows.Offer(slot, func() shadow.Score { return scoreLater(id, tensors) })
}
