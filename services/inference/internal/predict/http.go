// Package predict answers prediction requests: one row in, one prediction out.
package predict

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/inference/internal/batch"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
	"github.com/mlp-platform/platform/services/inference/internal/model"
	"github.com/mlp-platform/platform/services/inference/internal/request"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
	"github.com/mlp-platform/platform/services/inference/internal/serving"
	"github.com/mlp-platform/platform/services/inference/internal/shadow"
	"github.com/mlp-platform/platform/services/inference/internal/snapshot"
)

// Handlers are the prediction routes.
type Handlers struct{ core *serving.Core }

// New returns the handlers.
func New(core *serving.Core) *Handlers { return &Handlers{core} }

// buffers are the pooled buffers of a request.
type buffers struct {
	body   []byte
	object request.Object
	answer []byte
	timer  *time.Timer
}

var pool = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &buffers{timer: t}
}}

// keepBody is the largest body whose buffer goes back to the pool.
const keepBody = 64 << 10

func (b *buffers) free() {
	if cap(b.body) <= keepBody {
		pool.Put(b)
	}
}

// read takes the body, which must be JSON.
func (b *buffers) read(c echo.Context, call *serving.Call) (err error) {
	if err := serving.CheckMedia(c.Request()); err != nil {
		return err
	}
	b.body, err = call.ReadBody(c, b.body)
	return err
}

// Predict is POST /predict/{model_name}.
func (h *Handlers) Predict(c echo.Context) error {
	call, err := h.core.Begin(c.Request().Header, catalog.UpperName(c.Param("model_name")))
	if err != nil {
		return h.core.Refuse(&call, metrics.Invalid, err)
	}
	b := pool.Get().(*buffers)
	defer b.free()
	leave, err := h.core.Admit(&call, 1)
	if err != nil {
		return err
	}
	defer leave()
	if err := b.read(c, &call); err != nil {
		return h.core.Refuse(&call, serving.OutcomeOfBody(err), err)
	}
	p, faults := request.ParsePredict(b.body, &b.object)
	if faults != nil {
		h.recordNonFinite(c, &call, b.body, snapshot.HTTP, func(body []byte) (serving.Wanted, bool) {
			p, faults := request.ParsePredict(body, &b.object)
			return serving.Wanted{Alias: p.Alias, Version: p.Version}, faults == nil
		})
		return h.core.Refuse(&call, metrics.Invalid, serving.InvalidRequest(faults))
	}
	slot, err := h.core.Find(c.Request().Context(), &call, serving.Wanted{Alias: p.Alias, Version: p.Version})
	if err != nil {
		return err
	}
	defer slot.Release()
	return h.answer(c, &call, b, slot, ask{features: p.Features, probabilities: p.Probabilities, source: call.Source(snapshot.HTTP)})
}

// Pipeline is POST /infer-pipeline/infer.
func (h *Handlers) Pipeline(c echo.Context) error {
	call, err := h.core.Begin(c.Request().Header, metrics.Other)
	if err != nil {
		return h.core.Refuse(&call, metrics.Invalid, err)
	}
	b := pool.Get().(*buffers)
	defer b.free()
	if err := b.read(c, &call); err != nil {
		return h.core.Refuse(&call, serving.OutcomeOfBody(err), err)
	}
	p, faults := request.ParsePipeline(b.body)
	if call.Name = catalog.UpperName(p.Model); call.Name == "" {
		call.Name = defaultPipelineModel
	}
	if faults != nil {
		h.recordNonFinite(c, &call, b.body, snapshot.Pipeline, func(body []byte) (serving.Wanted, bool) {
			p, faults := request.ParsePipeline(body)
			call.Name = cmp.Or(catalog.UpperName(p.Model), defaultPipelineModel)
			return serving.Wanted{Alias: p.Alias, Version: p.Version, User: p.UserID}, faults == nil
		})
		return h.core.Refuse(&call, metrics.Invalid, serving.InvalidRequest(faults))
	}
	leave, err := h.core.Admit(&call, 1)
	if err != nil {
		return err
	}
	defer leave()
	slot, err := h.core.Find(c.Request().Context(), &call, serving.Wanted{Alias: p.Alias, Version: p.Version, User: p.UserID})
	if err != nil {
		return err
	}
	defer slot.Release()
	s := slot.Model.Schema()
	features := p.Features(func(column string) (category, ok bool) {
		i, ok := s.Lookup([]byte(column))
		return ok && s.Columns[i].Kind == schema.Category, ok
	})
	return h.answer(c, &call, b, slot, ask{features: features, job: p.JobID, source: call.Source(snapshot.Pipeline)})
}

// defaultPipelineModel answers pipeline requests that name no model.
const defaultPipelineModel = "JPCP"

// ask holds the fields of a request to a slot.
type ask struct {
	features      []byte
	probabilities bool
	job           string
	source        snapshot.Source
}

// answer predicts one row with the slot's copy and writes the response.
func (h *Handlers) answer(c echo.Context, call *serving.Call, b *buffers, slot *catalog.Slot, a ask) error {
	s, counts := slot.Model.Schema(), call.Counts(slot)
	if why := slot.Model.TensorsOnly(); why != "" {
		counts.Count(metrics.NotFound)
		return tensorsOnly(slot, why)
	}
	job := batch.NewJob()
	if f := request.Fill(a.features, s, &job.Row); f.Invalid != nil || f.Mismatch != nil {
		job.Free()
		if f.Infinite && f.Mismatch == nil {
			h.core.RecordNonFinite(call, slot, a.source)
		}
		if f.Invalid != nil {
			counts.Count(metrics.Invalid)
			return serving.InvalidRequest(f.Invalid)
		}
		counts.Count(metrics.Mismatch)
		return shapeMismatch(slot, f.Mismatch)
	}
	left := call.Left()
	if left <= 0 {
		job.Free()
		counts.Count(metrics.Timeout)
		return call.LateFault(nil)
	}
	input := s.Describe(&job.Row) // before the job may leave this goroutine's hands
	slot.Submit(job)
	if err := serving.Wait(c.Request().Context(), b.timer, job, left); err != nil {
		counts.Count(metrics.Timeout)
		return call.LateFault(err)
	}
	res := job.Result
	job.Free()
	if res.Err != nil {
		outcome, err := serving.RunFault(slot, "this row", res.Err)
		counts.Count(outcome)
		return err
	}
	b.answer = appendPrediction(b.answer[:0], slot, &res, a)
	w := c.Response()
	w.Header()["Content-Type"] = jsonType
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(b.answer)
	now := time.Now()
	counts.Count(metrics.Success)
	took := now.Sub(call.Start)
	counts.Seconds.Observe(took.Seconds())
	if !call.Probe {
		h.core.Snapshots.Put(snapshot.Record{
			Model: slot.Name, Alias: slot.Alias, Version: slot.Version, Prediction: res.Number, Label: res.Text, Kind: serving.KindOf(slot.Model),
			Source: a.source, JobID: a.job, Input: input, TS: now, Took: took,
		})
		h.core.Shadows.Offer(slot, func() shadow.Score { return scoreLater(a) })
	}
	if err != nil { // the caller has gone; the prediction was made
		h.core.Log.DebugContext(c.Request().Context(), "prediction not delivered", slog.Any("err", err))
	}
	return nil
}

// recordNonFinite looks whether a body was refused for its NaN or Infinity alone, and keeps it for input drift. parse is
// given the body with numbers in their place.
func (h *Handlers) recordNonFinite(c echo.Context, call *serving.Call, body []byte, route snapshot.Source, parse func([]byte) (serving.Wanted, bool)) {
	filled, found := request.FillNonFinite(body)
	if !found {
		return
	}
	wanted, ok := parse(filled)
	if !ok {
		return
	}
	if slot := h.core.FindLoaded(c.Request().Context(), call, wanted); slot != nil {
		h.core.RecordNonFinite(call, slot, route)
		slot.Release()
	}
}

var jsonType = []string{"application/json"}

func tensorsOnly(slot *catalog.Slot, why string) error {
	return fault.ModelNotLoaded.New(fmt.Sprintf("Model %s version %s answers tensors alone, at /v2/models/%s/infer: %s.", slot.Name, slot.Version, slot.Name, strings.TrimSuffix(why, ".")))
}

func shapeMismatch(slot *catalog.Slot, faults []problem.Field) error {
	const shown = 20
	names := slot.Model.Schema().Names()
	columns := strings.Join(names[:min(len(names), shown)], ", ")
	if len(names) > shown {
		columns += fmt.Sprintf(" and %d more", len(names)-shown)
	}
	return fault.FeatureShapeMismatch.New(fmt.Sprintf("The features are not those that model %s version %s was trained on: %s %s. Its columns are %s.",
		slot.Name, slot.Version, faults[0].Loc[len(faults[0].Loc)-1], faults[0].Msg, columns)).WithErrors(faults...)
}

func appendPrediction(dst []byte, slot *catalog.Slot, r *model.Result, a ask) []byte {
	dst = append(dst, slot.Head...)
	if slot.Model.TextLabels() {
		dst = serving.AppendString(dst, r.Text)
	} else {
		dst = serving.AppendNumber(dst, r.Number, r.Single)
	}
	dst = append(dst, slot.Tail...)
	if a.probabilities && r.Probabilities != nil {
		dst = append(dst, `,"probabilities":{`...)
		for i, p := range r.Probabilities {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = serving.AppendString(dst, slot.Model.Classes()[i])
			dst = append(dst, ':')
			dst = serving.AppendNumber(dst, p, r.SingleProbabilities)
		}
		dst = append(dst, '}')
	}
	if a.job != "" {
		dst = serving.AppendString(append(dst, `,"job_id":`...), a.job)
	}
	return append(dst, '}')
}
