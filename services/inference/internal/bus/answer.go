package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/clients/go/wire"
	"github.com/mlp-platform/platform/libs/problem"
)

// The kinds of messages, as metrics and logs name them.
const (
	kindInfer   = "infer"
	kindVector  = "vector"
	kindRetrain = "retrain"
	kindJob     = "job"
)

// SourceHeader tells the inference service that a prediction came over the bus, which its snapshots record.
const SourceHeader = "X-Platform-Source"

// SourceBus is the header's value.
const SourceBus = "bus"

// model is the model of the UUID that ends a subject.
func (b *Bridge) model(subject, prefix string) (string, error) {
	id := strings.TrimPrefix(subject, prefix)
	if name, ok := b.models.lookUp(id); ok {
		return name, nil
	}
	if b.models.models.Load() == nil {
		return "", problem.Unavailable.New("The bridge has not yet learned which models are on the bus; send the message again later.")
	}
	return "", problem.NotFound.Errorf("No enabled model has the bus UUID %.64q; `mlp bus list` shows those that have one.", id)
}

// infer answers bus.infer.<uuid>.
func (b *Bridge) infer(ctx context.Context, msg *nats.Msg) (any, error) {
	start := time.Now()
	name, err := b.model(msg.Subject, SubjectInfer)
	var reply Reply
	if err == nil {
		var r inferRequest
		if err = parse(msg.Data, &r); err == nil {
			switch {
			case r.ModelName != nil:
				err = invalid("model_name", "unknown field; the subject names the model")
			default:
				reply, err = b.predict(ctx, name, &r)
			}
		}
	}
	b.stats.countInference(name, false, 1, time.Since(start), err != nil)
	if err != nil {
		refused := refuseInfer(msg.Data, err).(Reply)
		refused.ModelName = optional(name)
		return refused, err
	}
	return reply, nil
}

// maxModelName is the longest name of a model.
const maxModelName = 128

// job answers bus.jobs: the message names the model itself.
func (b *Bridge) job(ctx context.Context, msg *nats.Msg) (any, error) {
	start := time.Now()
	var r inferRequest
	var reply Reply
	counted := "" // only names that the repository knows
	err := parse(msg.Data, &r)
	switch {
	case err != nil:
	case r.ModelName == nil || *r.ModelName == "" || len(*r.ModelName) > maxModelName:
		r.ModelName = nil
		err = invalid("model_name", "expected the name of a model")
	default:
		counted = b.models.named(*r.ModelName)
		reply, err = b.predict(ctx, *r.ModelName, &r)
	}
	b.stats.countInference(counted, false, 1, time.Since(start), err != nil)
	if err != nil {
		refused := refuseInfer(msg.Data, err).(Reply)
		refused.ModelName = r.ModelName
		return refused, err
	}
	return reply, nil
}

// predict requests one prediction from the inference service: by its features, or by its embedding.
func (b *Bridge) predict(ctx context.Context, name string, r *inferRequest) (Reply, error) {
	if err := r.check(); err != nil {
		return Reply{}, err
	}
	call := wire.Call{Method: http.MethodPost}
	if hasValue(r.Features) {
		call.Path = wire.Path("/predict/%s", name)
		call.Body = struct {
			Features json.RawMessage `json:"features"`
			Alias    *string         `json:"alias,omitempty"`
		}{r.Features, r.Alias}
	} else {
		call.Path = "/infer-pipeline/infer"
		call.Body = struct {
			Embedding []float64       `json:"embedding"`
			NumNodes  *int            `json:"num_nodes"`
			UserID    json.RawMessage `json:"user_id"`
			JobID     string          `json:"job_id"`
			ModelName string          `json:"model_name"`
			Alias     *string         `json:"alias,omitempty"`
		}{r.Embedding, r.NumNodes, r.UserID, identityText(r.JobID), name, r.Alias}
	}
	p, err := wire.Decode[inference.Prediction](b.cfg.Serving.Send(ctx, call, fromBus(identityText(r.UserID))))
	if err != nil {
		return Reply{}, servingFault(ctx, err)
	}
	return Reply{
		JobID: r.JobID, ModelName: &p.ModelName, ModelVersion: &p.ModelVersion, Alias: p.Alias, Prediction: p.Prediction,
		RunID: &p.RunId, Timestamp: time.Now().UTC(),
	}, nil
}

// fromBus marks a request; one user's jobs stay with one version where traffic is split.
func fromBus(user string) wire.Editor {
	return func(_ context.Context, req *http.Request) error {
		req.Header.Set(SourceHeader, SourceBus)
		if user != "" {
			req.Header.Set("X-Routing-Key", user)
		}
		return nil
	}
}

func refuseInfer(data []byte, err error) any {
	return Reply{JobID: jobID(data), Timestamp: time.Now().UTC(), Error: faultOf(err)}
}

// vector answers bus.vector.<uuid>: many rows at once.
func (b *Bridge) vector(ctx context.Context, msg *nats.Msg) (any, error) {
	start := time.Now()
	name, err := b.model(msg.Subject, SubjectVector)
	var r vectorRequest
	var results []any
	if err == nil {
		if err = parse(msg.Data, &r); err == nil {
			results, err = b.score(ctx, name, r.Values)
		}
	}
	b.stats.countInference(name, true, max(len(results), 1), time.Since(start), err != nil)
	if err != nil {
		return refuseVector(msg.Data, err), err
	}
	return vectorReply{Results: results}, nil
}

// score requests a prediction for each row through the inference service's tensor route.
func (b *Bridge) score(ctx context.Context, name string, rows [][]float64) ([]any, error) {
	if len(rows) == 0 || len(rows) > maxVectors {
		return nil, invalid("values", fmt.Sprintf("expected 1 to %d rows, got %d", maxVectors, len(rows)))
	}
	width := len(rows[0])
	flat := make([]float64, 0, len(rows)*width)
	for i, row := range rows {
		if len(row) != width || width == 0 {
			return nil, invalid("values", fmt.Sprintf("row %d has %d numbers, the first has %d; all need as many as the model has columns", i, len(row), width))
		}
		flat = append(flat, row...)
	}
	type tensor struct {
		Name     string `json:"name"`
		Datatype string `json:"datatype"`
		Shape    []int  `json:"shape"`
		Data     any    `json:"data"`
	}
	call := wire.Call{
		Method: http.MethodPost, Path: wire.Path("/v2/models/%s/infer", name),
		Body: map[string]any{"inputs": []tensor{{"input", "FP64", []int{len(rows), width}, flat}}},
	}
	answer, err := wire.Decode[tensorAnswer](b.cfg.Serving.Send(ctx, call, fromBus("")))
	if err != nil {
		return nil, servingFault(ctx, err)
	}
	if results := answer.results(); len(results) == len(rows) {
		return results, nil
	}
	return nil, problem.BadGateway.New("The inference service did not answer with one result for each row.")
}

// tensorAnswer holds the fields of a tensor answer that the bridge reads.
type tensorAnswer struct {
	Parameters struct {
		Answer string `json:"answer"` // the output that is the prediction
	} `json:"parameters"`
	Outputs []struct {
		Name string `json:"name"`
		Data []any  `json:"data"`
	} `json:"outputs"`
}

func (a tensorAnswer) results() []any {
	for _, o := range a.Outputs {
		if o.Name == a.Parameters.Answer || len(a.Outputs) == 1 {
			return o.Data
		}
	}
	return nil
}

func refuseVector(_ []byte, err error) any { return vectorReply{Error: faultOf(err)} }

// keyPrefix keeps the idempotency keys of messages apart from those of other callers of the bridge's principal.
const keyPrefix = "bus:"

// retrain answers bus.retrain. A message that carries Nats-Msg-Id may be sent again: it starts one run.
func (b *Bridge) retrain(ctx context.Context, msg *nats.Msg) (any, error) {
	var r retrainRequest
	if err := parse(msg.Data, &r); err != nil {
		return refuseRetrain(msg.Data, err), err
	}
	if id := msg.Header.Get(nats.MsgIdHdr); len(id) > maxIdentity-len(keyPrefix) || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		err := problem.Validation.Errorf("The header %s must have at most %d printable characters and no space.", nats.MsgIdHdr, maxIdentity-len(keyPrefix))
		return refuseRetrain(msg.Data, err), err
	}
	call := wire.Call{Method: http.MethodPost, Path: "/retrain", Body: r}
	once := func(_ context.Context, req *http.Request) error {
		if id := msg.Header.Get(nats.MsgIdHdr); id != "" {
			req.Header.Set("Idempotency-Key", keyPrefix+id)
		}
		return nil
	}
	d, err := wire.Decode[controlplane.Dispatch](b.cfg.ControlPlane.Send(ctx, call, once))
	if err != nil {
		err = upstreamFault(ctx, "control plane", err)
		return refuseRetrain(msg.Data, err), err
	}
	b.stats.countRetrain()
	return retrainReply{FlowRunID: &d.FlowRunId, StatusURL: &d.StatusUrl}, nil
}

func refuseRetrain(_ []byte, err error) any { return retrainReply{Error: faultOf(err)} }

func servingFault(ctx context.Context, err error) error {
	return upstreamFault(ctx, "inference service", err)
}

// upstreamFault keeps a problem that a service answered, and names the service that did not answer.
func upstreamFault(ctx context.Context, service string, err error) error {
	var p *problem.Error
	switch {
	case errors.As(err, &p):
		return p
	case ctx.Err() != nil:
		return problem.DeadlineExceeded.Errorf("The %s did not answer in time.", service).WithCause(err)
	case errors.Is(err, wire.ErrUnreadable):
		return problem.BadGateway.Errorf("The answer of the %s cannot be read.", service).WithCause(err)
	}
	return problem.Unavailable.Errorf("The %s is not reachable; send the message again later.", service).WithCause(err)
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func invalid(name, msg string) error {
	return &problem.Error{Kind: problem.Validation, Detail: "The message is not a valid request.", Errors: []problem.Field{{Loc: []string{"body", name}, Msg: msg}}}
}
