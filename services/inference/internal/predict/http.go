// Package predict answers prediction requests: one row in, one prediction out.
package predict

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/auth"
	ort "github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference/internal/batch"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
	"github.com/mlp-platform/platform/services/inference/internal/model"
	"github.com/mlp-platform/platform/services/inference/internal/request"
	"github.com/mlp-platform/platform/services/inference/internal/schema"
	"github.com/mlp-platform/platform/services/inference/internal/snapshot"
	"github.com/mlp-platform/platform/services/inference/internal/traffic"
)

// Config of the handlers; all fields are required.
type Config struct {
	Catalog   *catalog.Catalog
	Snapshots *snapshot.Writer
	Metrics   *metrics.Set
	Log       *slog.Logger
	Traffic   *traffic.Traffic
	Timeout   time.Duration // of a request, unless it asks for less
	Admit     int           // requests of one model inside at once, waiting or running
}

// Handlers are the prediction routes.
type Handlers struct{ cfg Config }

// New returns the handlers.
func New(cfg Config) *Handlers { return &Handlers{cfg: cfg} }

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

// Predict is POST /predict/{model_name}.
func (h *Handlers) Predict(c echo.Context) error {
	start := time.Now()
	probe := isProbe(c.Request())
	b := pool.Get().(*buffers)
	defer b.free()
	name := catalog.UpperName(c.Param("model_name"))
	limit, err := h.timeout(c.Request())
	if err != nil {
		return h.refuse(probe, name, metrics.Invalid, err)
	}
	leave, err := h.admit(probe, name)
	if err != nil {
		return err
	}
	defer leave()
	if err := b.read(c, start, limit); err != nil {
		return h.refuse(probe, name, outcomeOfBody(err), err)
	}
	p, faults := request.ParsePredict(b.body, &b.object)
	if faults != nil {
		return h.refuse(probe, name, metrics.Invalid, invalidRequest(faults))
	}
	slot, err := h.find(c.Request(), probe, wanted{name: name, alias: p.Alias, version: p.Version}, start.Add(limit))
	if err != nil {
		return err
	}
	defer slot.Release()
	return h.answer(c, b, slot, ask{features: p.Features, probabilities: p.Probabilities, source: sourceOf(c.Request(), snapshot.HTTP), probe: probe, start: start, limit: limit})
}

// Pipeline is POST /infer-pipeline/infer.
func (h *Handlers) Pipeline(c echo.Context) error {
	start := time.Now()
	probe := isProbe(c.Request())
	b := pool.Get().(*buffers)
	defer b.free()
	limit, err := h.timeout(c.Request())
	if err != nil {
		return h.refuse(probe, metrics.Other, metrics.Invalid, err)
	}
	if err := b.read(c, start, limit); err != nil {
		return h.refuse(probe, metrics.Other, outcomeOfBody(err), err)
	}
	p, faults := request.ParsePipeline(b.body)
	name := catalog.UpperName(p.Model)
	if name == "" {
		name = defaultPipelineModel
	}
	if faults != nil {
		return h.refuse(probe, name, metrics.Invalid, invalidRequest(faults))
	}
	leave, err := h.admit(probe, name)
	if err != nil {
		return err
	}
	defer leave()
	slot, err := h.find(c.Request(), probe, wanted{name: name, alias: p.Alias, version: p.Version, user: p.UserID}, start.Add(limit))
	if err != nil {
		return err
	}
	defer slot.Release()
	s := slot.Model.Schema()
	features := p.Features(func(column string) (category, ok bool) {
		i, ok := s.Lookup([]byte(column))
		return ok && s.Columns[i].Kind == schema.Category, ok
	})
	return h.answer(c, b, slot, ask{features: features, job: p.JobID, source: sourceOf(c.Request(), snapshot.Pipeline), probe: probe, start: start, limit: limit})
}

// defaultPipelineModel answers pipeline requests that name no model.
const defaultPipelineModel = "JPCP"

// ask is what a request wants of its slot.
type ask struct {
	features      []byte
	probabilities bool
	job           string
	source        snapshot.Source
	probe         bool
	start         time.Time
	limit         time.Duration
}

// headerProbe marks a request of a tool that tries the service. Its made-up rows say nothing of the model's
// traffic: a benchmark alone would fill the window that drift is judged by with one value.
const headerProbe = "X-Platform-Probe"

func isProbe(r *http.Request) bool {
	values := r.Header[headerProbe]
	return len(values) == 1 && values[0] == "1"
}

// headerSource says how a request reached the caller, which passes it on: the bus bridge sets it.
const headerSource = "X-Platform-Source"

// sourceOf is what the request's snapshot says of its way here: route, unless a bridge brought it.
func sourceOf(r *http.Request, route snapshot.Source) snapshot.Source {
	if values := r.Header[headerSource]; len(values) == 1 && values[0] == string(snapshot.Bus) {
		return snapshot.Bus
	}
	return route
}

// headerTimeout is in the canonical form that net/http stores.
const headerTimeout = "X-Request-Timeout-Ms"

// timeout returns the service's timeout, or the request's lower one.
func (h *Handlers) timeout(r *http.Request) (time.Duration, error) {
	values := r.Header[headerTimeout]
	if len(values) == 0 {
		return h.cfg.Timeout, nil
	}
	ms, err := strconv.ParseInt(values[0], 10, 32)
	if err != nil || ms < 1 {
		return 0, invalidRequest([]problem.Field{{Loc: []string{"header", headerTimeout}, Msg: "expected a whole number of milliseconds, at least 1"}})
	}
	return min(h.cfg.Timeout, time.Duration(ms)*time.Millisecond), nil
}

// admit limits the requests of one model before any work is done for them.
func (h *Handlers) admit(probe bool, name string) (leave func(), err error) {
	e := h.cfg.Catalog.Table().Model(name)
	if e == nil {
		return func() {}, nil // Find tells what is wrong; it costs no session
	}
	if !e.Gate.Enter(h.cfg.Admit) {
		return nil, h.refuse(probe, name, metrics.Shed, fault.Overloaded.
			Errorf("Model %s has %d requests waiting, as many as it takes; send the request again later.", name, h.cfg.Admit).After(time.Second))
	}
	return e.Gate.Leave, nil
}

// wanted is the copy that a request names. user is who the prediction is for, as JSON, if the body says so.
type wanted struct {
	name, alias, version string
	user                 []byte
}

// find acquires the copy: of the version, else of the alias, else of the alias that the traffic rules choose, else of
// Production.
func (h *Handlers) find(r *http.Request, probe bool, w wanted, deadline time.Time) (*catalog.Slot, error) {
	ctx := r.Context()
	if w.version != "" || w.alias != "" { // may have to be loaded first
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	} else if rule := h.cfg.Traffic.Rule(w.name); rule != nil {
		if slot := h.bySplit(r, rule, w); slot != nil {
			return slot, nil
		}
	}
	slot, err := h.cfg.Catalog.Find(ctx, w.name, w.alias, w.version)
	if err != nil {
		return nil, h.refuse(probe, w.name, outcomeOf(err), err)
	}
	return slot, nil
}

// bySplit acquires the copy of the alias that a rule chooses. It is nil when that alias is not loaded: the request
// then gets Production, which is counted.
func (h *Handlers) bySplit(r *http.Request, rule *traffic.Rule, w wanted) *catalog.Slot {
	e := h.cfg.Catalog.Table().Model(w.name)
	if e == nil {
		return nil // Find tells what is wrong
	}
	alias := rule.Alias(e.Tracker, func() string { return routingKey(r, w.user) })
	slot := h.cfg.Catalog.Acquire(w.name, alias)
	if slot == nil && alias != catalog.Production {
		h.cfg.Metrics.TrafficFallback.WithLabelValues(w.name, alias).Inc()
	}
	return slot
}

// headerRoutingKey is in the canonical form that net/http stores.
const headerRoutingKey = "X-Routing-Key"

// routingKey is what a split is sticky by: what the caller says, else whom the prediction is for, else who asks, else
// the request alone.
func routingKey(r *http.Request, user []byte) string {
	if values := r.Header[headerRoutingKey]; len(values) > 0 && values[0] != "" {
		return values[0]
	}
	if len(user) > 0 {
		var text string
		if json.Unmarshal(user, &text) == nil {
			user = []byte(text)
		}
		if len(user) > 0 {
			return string(user)
		}
	}
	if p, ok := auth.FromContext(r.Context()); ok {
		return p.Name
	}
	return service.RequestID(r.Context())
}

func outcomeOfBody(err error) int {
	if problem.DeadlineExceeded.Has(err) {
		return metrics.Timeout
	}
	return metrics.Invalid
}

func outcomeOf(err error) int {
	switch {
	case fault.ModelNotLoaded.Has(err):
		return metrics.NotFound
	case problem.DeadlineExceeded.Has(err):
		return metrics.Timeout
	}
	return metrics.Failed
}

// refuse counts a request that got no slot under its model's Production, or under other.
func (h *Handlers) refuse(probe bool, name string, outcome int, err error) error {
	alias := catalog.Production
	if h.cfg.Catalog.Table().Model(name) == nil {
		name, alias = metrics.Other, ""
	}
	counts := h.cfg.Metrics.For(name, alias)
	if probe {
		counts = counts.Probes
	}
	counts.Count(outcome)
	return err
}

func invalidRequest(faults []problem.Field) *problem.Error {
	detail := "The request is not valid: " + strings.Join(faults[0].Loc, ".") + ": " + faults[0].Msg + "."
	if more := len(faults) - 1; more > 0 {
		detail += fmt.Sprintf(" %d more in errors.", more)
	}
	return problem.Validation.New(detail).WithErrors(faults...)
}

// read takes the body, within the size that the server's middleware has set and the request's own deadline:
// a caller that sends its body slowly must not hold its place among the model's requests any longer.
func (b *buffers) read(c echo.Context, start time.Time, limit time.Duration) error {
	r := c.Request()
	if err := checkMedia(r); err != nil {
		return err
	}
	setReadDeadline(c, start.Add(limit))
	b.body = b.body[:0]
	n := int(max(r.ContentLength, 0)) // the middleware has bounded it
	if cap(b.body) < n {
		b.body = make([]byte, 0, n)
	}
	var err error
	if r.ContentLength >= 0 {
		b.body = b.body[:n]
		_, err = io.ReadFull(r.Body, b.body)
	} else {
		b.body, err = io.ReadAll(r.Body)
	}
	switch {
	case err == nil:
		setReadDeadline(c, time.Time{}) // else it would end the request's context while the model runs
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problem.DeadlineExceeded.New(fmt.Sprintf("The request body did not arrive within %s.", limit)).WithCause(err)
	case problem.BodyTooLarge.Has(problem.From(err)):
		return problem.From(err)
	}
	return problem.BadRequest.New("The request body ended early.").WithCause(err)
}

// setReadDeadline limits reading the body; the zero time removes the limit. net/http's writer has the method; a test's
// recorder need not.
func setReadDeadline(c echo.Context, t time.Time) {
	if w, ok := c.Response().Writer.(interface{ SetReadDeadline(time.Time) error }); ok {
		_ = w.SetReadDeadline(t) // fails only on a connection that is gone
	}
}

// checkMedia refuses what a browser sends without asking first, and what is no JSON.
func checkMedia(r *http.Request) error {
	ct := r.Header["Content-Type"]
	if len(ct) == 0 || ct[0] == "application/json" {
		return nil
	}
	media, _, err := mime.ParseMediaType(ct[0])
	if err == nil && (media == "application/json" || strings.HasSuffix(media, "+json")) {
		return nil
	}
	return problem.UnsupportedMedia.New("Send the body as JSON, with the header Content-Type: application/json.")
}

// answer predicts one row with the slot's copy and writes the response.
func (h *Handlers) answer(c echo.Context, b *buffers, slot *catalog.Slot, a ask) error {
	s := slot.Model.Schema()
	counts := slot.Metrics
	if a.probe {
		counts = counts.Probes
	}
	job := batch.NewJob()
	if f := request.Fill(a.features, s, &job.Row); f.Invalid != nil || f.Mismatch != nil {
		job.Free()
		if f.Invalid != nil {
			counts.Count(metrics.Invalid)
			return invalidRequest(f.Invalid)
		}
		counts.Count(metrics.Mismatch)
		return shapeMismatch(slot, f.Mismatch)
	}
	left := a.limit - time.Since(a.start)
	if left <= 0 {
		job.Free()
		counts.Count(metrics.Timeout)
		return deadlineFault(a.limit)
	}
	norm, mean, std := s.Summary(&job.Row) // before the job may leave this goroutine's hands
	slot.Submit(job)
	if err := b.wait(c.Request().Context(), job, left); err != nil {
		counts.Count(metrics.Timeout)
		if errors.Is(err, context.Canceled) {
			return problem.From(err)
		}
		return deadlineFault(a.limit)
	}
	res := job.Result
	job.Free()
	switch {
	case errors.Is(res.Err, ort.ErrOverran), errors.Is(res.Err, batch.ErrTakenOut):
		counts.Count(metrics.Timeout)
		return problem.DeadlineExceeded.New(fmt.Sprintf("Model %s version %s took too long and was taken out of service; GET /health says why.", slot.Name, slot.Version)).WithCause(res.Err)
	case res.Err != nil:
		counts.Count(metrics.Failed)
		return fault.ModelException.New(fmt.Sprintf("Model %s version %s failed on this row: %s.", slot.Name, slot.Version, trimPeriod(res.Err))).WithCause(res.Err)
	}
	b.answer = appendPrediction(b.answer[:0], slot, &res, a)
	w := c.Response()
	w.Header()["Content-Type"] = jsonType
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(b.answer)
	now := time.Now()
	counts.Count(metrics.Success)
	took := now.Sub(a.start)
	counts.Seconds.Observe(took.Seconds())
	if !a.probe {
		h.cfg.Snapshots.Put(snapshot.Record{
			Model: slot.Name, Alias: slot.Alias, Version: slot.Version, Prediction: res.Number, Label: res.Text, Kind: kindOf(slot.Model),
			Source: a.source, JobID: a.job, Norm: norm, Mean: mean, Std: std, TS: now, Took: took,
		})
	}
	if err != nil { // the caller has gone; the prediction was made
		h.cfg.Log.DebugContext(c.Request().Context(), "prediction not delivered", slog.Any("err", err))
	}
	return nil
}

func kindOf(m *model.Model) snapshot.Kind {
	switch {
	case m.Schema().Output.Kind != schema.Label:
		return snapshot.Number
	case m.TextLabels():
		return snapshot.TextLabel
	}
	return snapshot.NumberLabel
}

var jsonType = []string{"application/json"}

// wait is nil when the job has its result; else the job is no longer the caller's.
func (b *buffers) wait(ctx context.Context, job *batch.Job, left time.Duration) error {
	b.timer.Reset(left)
	defer b.timer.Stop()
	err := error(context.DeadlineExceeded)
	select {
	case <-job.Done():
		return nil
	case <-b.timer.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if !job.Abandon() {
		return nil // the result came at the same moment
	}
	return err
}

func deadlineFault(limit time.Duration) error {
	return problem.DeadlineExceeded.New(fmt.Sprintf("There was no prediction within %s.", limit))
}

func trimPeriod(err error) string { return strings.TrimSuffix(err.Error(), ".") }

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
		dst = appendString(dst, r.Text)
	} else {
		dst = appendNumber(dst, r.Number, r.Single)
	}
	dst = append(dst, slot.Tail...)
	if a.probabilities && r.Probabilities != nil {
		dst = append(dst, `,"probabilities":{`...)
		for i, p := range r.Probabilities {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendString(dst, slot.Model.Classes()[i])
			dst = append(dst, ':')
			dst = appendNumber(dst, p, r.SingleProbabilities)
		}
		dst = append(dst, '}')
	}
	if a.job != "" {
		dst = appendString(append(dst, `,"job_id":`...), a.job)
	}
	return append(dst, '}')
}
