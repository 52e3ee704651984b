package openinference

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/inference"
	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
	"github.com/mlp-platform/platform/services/inference/internal/request"
	"github.com/mlp-platform/platform/services/inference/internal/serving"
)

// MaxBody limits the body of an inference request, in bytes: MaxRows rows of an embedding, as JSON.
const MaxBody = 8 << 20

// headerJSONLength is the header with the length in bytes of a body's JSON part; binary tensors follow.
const headerJSONLength = "Inference-Header-Content-Length"

// Ready reports whether the replica may receive traffic, with the reason if not.
type Ready func() (reason string, ok bool)

// Handlers are the routes below /v2.
type Handlers struct {
	core  *serving.Core
	ready Ready
}

// New returns the handlers.
func New(core *serving.Core, ready Ready) *Handlers { return &Handlers{core, ready} }

// AddError puts the member error into the problem documents of all paths below /v2, where clients of the protocol look
// for it: also into those of requests that no route sees, such as bodies that are too large.
func AddError(next echo.HTTPErrorHandler) echo.HTTPErrorHandler {
	return func(err error, c echo.Context) {
		if path := c.Request().URL.Path; path == "/v2" || strings.HasPrefix(path, "/v2/") {
			p := problem.From(err)
			err = p.With(map[string]any{"error": cmp.Or(p.Detail, p.Kind.Title)})
		}
		next(err, c)
	}
}

// server is the service's metadata.
var server = api.V2Server{Name: "inference", Version: "1", Extensions: []string{"binary_tensor_data", "model_repository"}}

// Server is GET /v2.
func (h *Handlers) Server(c echo.Context) error {
	return c.JSON(http.StatusOK, server)
}

// Live is GET /v2/health/live.
func (h *Handlers) Live(c echo.Context) error {
	return c.JSON(http.StatusOK, api.V2Live{Live: true})
}

// ReadyState is GET /v2/health/ready.
func (h *Handlers) ReadyState(c echo.Context) error {
	if reason, ok := h.ready(); !ok {
		return problem.Unavailable.New("The service is not ready: " + reason).After(time.Second)
	}
	return c.JSON(http.StatusOK, api.V2Ready{Ready: true})
}

// ModelReady is GET /v2/models/{model_name}/ready and its form with a version. It reports loaded models and loads none:
// probes for many versions must not evict others.
func (h *Handlers) ModelReady(c echo.Context) error {
	call, leave, err := h.enter(c)
	if err != nil {
		return err
	}
	defer leave()
	slot, err := h.core.Catalog.Loaded(call.Name, c.Param("version"))
	if err != nil {
		return err
	}
	defer slot.Release()
	return c.JSON(http.StatusOK, api.V2ModelReady{Name: slot.Name, Ready: true})
}

// enter admits a metadata request for a model like one of its predictions.
func (h *Handlers) enter(c echo.Context) (call serving.Call, leave func(), err error) {
	if call, err = h.core.Begin(c.Request().Header, catalog.UpperName(c.Param("model_name"))); err != nil {
		return call, nil, err
	}
	leave, err = h.core.Admit(&call, 1)
	return call, leave, err
}

// Model is GET /v2/models/{model_name} and its form with a version, which may have to be loaded first.
func (h *Handlers) Model(c echo.Context) error {
	call, leave, err := h.enter(c)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithDeadline(c.Request().Context(), call.Deadline())
	defer cancel()
	slot, err := h.core.Catalog.Find(ctx, call.Name, "", c.Param("version"))
	if err != nil {
		return err
	}
	defer slot.Release()
	return c.JSON(http.StatusOK, describe(slot))
}

// describe is a copy's metadata.
func describe(slot *catalog.Slot) api.V2Model {
	m := slot.Model
	out := api.V2Model{Name: slot.Name, Versions: []string{slot.Version}, Platform: "onnx_onnxv1", Inputs: []api.V2TensorInfo{}, Outputs: []api.V2TensorInfo{}}
	for i, in := range m.Inputs() {
		out.Inputs = append(out.Inputs, api.V2TensorInfo{Name: in.Name, Datatype: api.V2TensorInfoDatatype(datatypeOf(in)), Shape: m.InputDims(i)})
	}
	for _, o := range m.Outputs() {
		shape := append([]int64{}, o.Dims...)
		if len(shape) > 0 {
			shape[0] = -1
		}
		out.Outputs = append(out.Outputs, api.V2TensorInfo{Name: o.Name, Datatype: api.V2TensorInfoDatatype(datatypeOf(o)), Shape: shape})
	}
	return out
}

// Index is POST /v2/repository/index.
func (h *Handlers) Index(c echo.Context) error {
	var body struct {
		Ready *bool `json:"ready"`
	}
	if c.Request().ContentLength != 0 {
		if err := service.DecodeJSON(c, &body, false); err != nil {
			return err
		}
	}
	out := []api.V2IndexEntry{}
	for _, s := range h.core.Catalog.Slots() {
		out = append(out, api.V2IndexEntry{Name: s.Name, Version: s.Version, State: api.READY, Alias: s.Alias})
	}
	if body.Ready == nil || !*body.Ready {
		for _, f := range h.core.Catalog.Failures("") {
			out = append(out, api.V2IndexEntry{Name: f.Model, Version: f.Version, State: api.UNAVAILABLE, Alias: f.Alias, Reason: f.Reason})
		}
	}
	return c.JSON(http.StatusOK, out)
}

// Infer is POST /v2/models/{model_name}/infer and its form with a version.
func (h *Handlers) Infer(c echo.Context) error {
	call, err := h.core.Begin(c.Request().Header, catalog.UpperName(c.Param("model_name")))
	if err != nil {
		return h.core.Refuse(&call, metrics.Invalid, err)
	}
	q := query{version: c.Param("version"), weight: weightOf(c.Request().ContentLength)}
	leave, err := h.core.Admit(&call, q.weight)
	if err != nil {
		return err
	}
	defer leave()
	text, binary, err := readRequest(c, &call)
	if err != nil {
		return h.core.Refuse(&call, serving.OutcomeOfBody(err), err)
	}
	var faults, more []problem.Field
	q.Infer, faults = request.ParseInfer(text)
	if faults != nil {
		h.recordNonFinite(c.Request().Context(), &call, q.version, text)
	}
	q.tensors, more = attach(q.Inputs, binary)
	if faults = append(faults, more...); faults != nil {
		return h.core.Refuse(&call, metrics.Invalid, serving.Faulty(fault.InvalidTensors, faults))
	}
	return h.serve(c.Request().Context(), &call, &q, func(slot *catalog.Slot, outs []runtime.Tensor, wanted []wantedOutput) {
		h.write(c, slot, q.ID, outs, wanted)
	})
}

// write sends the response.
func (h *Handlers) write(c echo.Context, slot *catalog.Slot, id string, outs []runtime.Tensor, wanted []wantedOutput) {
	body, json := appendResponse(nil, slot, id, outs, wanted)
	w := c.Response()
	w.Header().Set("Content-Type", "application/json")
	if json < len(body) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set(headerJSONLength, strconv.Itoa(json))
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if _, err := w.Write(body); err != nil { // the caller has gone; the predictions were made
		h.core.Log.DebugContext(c.Request().Context(), "predictions not delivered", slog.Any("err", err))
	}
}

// readRequest returns the JSON part of a body and the binary part after it.
func readRequest(c echo.Context, call *serving.Call) (text, binary []byte, err error) {
	r := c.Request()
	length := r.Header.Get(headerJSONLength)
	if length == "" { // with it, no page of another origin can send the request unasked
		if err := serving.CheckMedia(r); err != nil {
			return nil, nil, err
		}
	}
	body, err := call.ReadBody(c, nil)
	if err != nil || length == "" {
		return body, nil, err
	}
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > len(body) {
		return nil, nil, fault.InvalidTensors.New(fmt.Sprintf("The header %s is %q; it must be the length of the JSON part, at most the %d bytes of the body.", headerJSONLength, problem.Shorten(length), len(body)))
	}
	return body[:n], body[n:], nil
}

// attach gives each tensor that was sent as binary its data, which follow each other in the tensors' order.
func attach(inputs []request.InferInput, binary []byte) (out []sent, faults []problem.Field) {
	had := len(binary)
	for i, in := range inputs {
		s := sent{InferInput: in, at: i}
		if in.Data == nil && in.BinarySize >= 0 {
			if in.BinarySize > len(binary) {
				return nil, []problem.Field{{Loc: []string{"body", "inputs", strconv.Itoa(i), "parameters", "binary_data_size"},
					Msg: fmt.Sprintf("is %d, and only %d of the %d bytes after the JSON part are left", in.BinarySize, len(binary), had)}}
			}
			s.binary, binary = binary[:in.BinarySize:in.BinarySize], binary[in.BinarySize:]
		}
		out = append(out, s)
	}
	if len(binary) > 0 {
		return nil, []problem.Field{{Loc: []string{"body"}, Msg: fmt.Sprintf("%d bytes after the JSON part belong to no tensor", len(binary))}}
	}
	return out, nil
}
