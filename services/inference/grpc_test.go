package inference_test

import (
	"context"
	"fmt"
	"math"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/inference"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest"
	"github.com/mlp-platform/platform/services/inference/internal/inferencetest/fixturetest"
	"github.com/mlp-platform/platform/services/inference/internal/openinference/oippb"
)

// rpc is a client of a running service's gRPC.
type rpc struct {
	oippb.GRPCInferenceServiceClient
	conn *grpc.ClientConn
}

// startGRPC is start of a service that serves gRPC too, with a client.
func startGRPC(t *testing.T, registry *fixturetest.Registry, opts ...inferencetest.Option) (*instance, *rpc) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	i := start(t, registry, append(opts, func(c *inference.Config) { c.GRPCListener = ln })...)
	testenv.Eventually(t, testWait, func() error { // on a busy machine, a service is ready before its models are loaded
		if r, _ := i.residency(); r.Resident < r.Known {
			return fmt.Errorf("%d of %d aliases are loaded", r.Resident, r.Known)
		}
		return nil
	})
	return i, dial(t, ln.Addr().String())
}

func dial(t *testing.T, addr string) *rpc {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(128<<20), grpc.MaxCallSendMsgSize(128<<20)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &rpc{oippb.NewGRPCInferenceServiceClient(conn), conn}
}

// floats is a tensor of typed contents.
func floats(name string, shape []int64, values ...float32) *oippb.ModelInferRequest_InferInputTensor {
	return &oippb.ModelInferRequest_InferInputTensor{Name: name, Datatype: "FP32", Shape: shape, Contents: &oippb.InferTensorContents{Fp32Contents: values}}
}

func infer(model string, inputs ...*oippb.ModelInferRequest_InferInputTensor) *oippb.ModelInferRequest {
	return &oippb.ModelInferRequest{ModelName: model, Inputs: inputs}
}

func textParam(s string) *oippb.InferParameter {
	return &oippb.InferParameter{ParameterChoice: &oippb.InferParameter_StringParam{StringParam: s}}
}

// The same rows get the same answer, typed or raw, by the graph's inputs, the columns or one matrix.
func TestGRPCTakesTypedAndRawTensors(t *testing.T) {
	t.Parallel()
	_, c := startGRPC(t, v2Registry(t))
	byColumn := infer("rows", floats("v", []int64{3, 2}, 0, 0, 1, 2, 2, 4), floats("a", []int64{3}, 0, 1, 2), floats("b", []int64{3, 1}, 0, 3, 6))
	byColumn.Id = "r-1"
	raw := infer("Rows", &oippb.ModelInferRequest_InferInputTensor{Name: "input", Datatype: "FP32", Shape: []int64{3, 4}})
	raw.Id, raw.RawInputContents = "r-1", [][]byte{floatBytes(0, 0, 0, 0, 1, 1, 2, 3, 2, 2, 4, 6)}
	want := func(change func(*oippb.ModelInferResponse)) *oippb.ModelInferResponse {
		r := &oippb.ModelInferResponse{
			ModelName: "ROWS", ModelVersion: "1", Id: "r-1", Parameters: map[string]*oippb.InferParameter{"alias": textParam("Production"), "answer": textParam("prediction")},
			Outputs: []*oippb.ModelInferResponse_InferOutputTensor{{Name: "prediction", Datatype: "FP32", Shape: []int64{3, 1}}},
		}
		change(r)
		return r
	}
	for name, c2 := range map[string]struct {
		ask  *oippb.ModelInferRequest
		want *oippb.ModelInferResponse
	}{
		"typed": {byColumn, want(func(r *oippb.ModelInferResponse) {
			r.Outputs[0].Contents = &oippb.InferTensorContents{Fp32Contents: []float32{1, 332, 663}}
		})},
		"raw": {raw, want(func(r *oippb.ModelInferResponse) { r.RawOutputContents = [][]byte{floatBytes(1, 332, 663)} })},
	} {
		got, err := c.ModelInfer(t.Context(), c2.ask)
		if err != nil {
			t.Fatalf("%s: %v, want an answer", name, err)
		}
		if diff := cmp.Diff(c2.want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%s: answer differs from want:\n%s", name, diff)
		}
	}
	raw.ModelVersion = "1"
	raw.Parameters = map[string]*oippb.InferParameter{"binary_data_output": {ParameterChoice: &oippb.InferParameter_BoolParam{}}}
	got, err := c.ModelInfer(t.Context(), raw)
	if err != nil || len(got.RawOutputContents) != 0 || got.Parameters["alias"] != nil {
		t.Fatalf("by version, with typed outputs: %v, %v; want typed contents and no alias", got, err)
	}
	if diff := cmp.Diff([]float32{1, 332, 663}, got.Outputs[0].Contents.GetFp32Contents()); diff != "" {
		t.Errorf("typed outputs of raw inputs differ from want:\n%s", diff)
	}
}

// Models of two outputs, and a batch of many runs.
func TestGRPCBatchesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	_, c := startGRPC(t, v2Registry(t))
	rows := make([]float32, 1000)
	for r := range rows {
		rows[r] = float32(r)
	}
	ask := infer("pair", floats("x", []int64{1000, 1}, rows...))
	ask.Outputs = []*oippb.ModelInferRequest_InferRequestedOutputTensor{{Name: "mean"}}
	got, err := c.ModelInfer(t.Context(), ask)
	if err != nil || len(got.Outputs) != 1 {
		t.Fatalf("%v, %v; want the one output that was asked for", got, err)
	}
	if diff := cmp.Diff(rows, got.Outputs[0].Contents.GetFp32Contents()); diff != "" {
		t.Errorf("rows differ from want:\n%s", diff)
	}
}

func TestGRPCDescribesServerAndModels(t *testing.T) {
	t.Parallel()
	_, c := startGRPC(t, v2Registry(t))
	ctx := t.Context()
	if live, err := c.ServerLive(ctx, &oippb.ServerLiveRequest{}); err != nil || !live.Live {
		t.Errorf("live: %v, %v", live, err)
	}
	if ready, err := c.ServerReady(ctx, &oippb.ServerReadyRequest{}); err != nil || !ready.Ready {
		t.Errorf("ready: %v, %v", ready, err)
	}
	if m, err := c.ServerMetadata(ctx, &oippb.ServerMetadataRequest{}); err != nil || m.Name != "inference" || m.Version != "1" {
		t.Errorf("server: %v, %v", m, err)
	}
	for model, want := range map[string]bool{"rows": true, "nosuch": false} {
		if ready, err := c.ModelReady(ctx, &oippb.ModelReadyRequest{Name: model}); err != nil || ready.Ready != want {
			t.Errorf("%s ready: %v, %v, want %v", model, ready, err, want)
		}
	}
	got, err := c.ModelMetadata(ctx, &oippb.ModelMetadataRequest{Name: "image"})
	if err != nil {
		t.Fatal(err)
	}
	tensorOf := func(name string) []*oippb.ModelMetadataResponse_TensorMetadata {
		return []*oippb.ModelMetadataResponse_TensorMetadata{{Name: name, Datatype: "FP32", Shape: []int64{-1, 2, 2}}}
	}
	want := &oippb.ModelMetadataResponse{Name: "IMAGE", Versions: []string{"1"}, Platform: "onnx_onnxv1", Inputs: tensorOf("pixels"), Outputs: tensorOf("flipped")}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("model differs from want:\n%s", diff)
	}
	if _, err := c.RepositoryModelLoad(ctx, &oippb.RepositoryModelLoadRequest{ModelName: "rows"}); status.Code(err) != codes.Unimplemented {
		t.Errorf("load: %v, want Unimplemented: the registry says what is loaded", err)
	}
}

// reasonOf is the code of the problem behind a status, and its faults.
func reasonOf(err error) (reason, faults string) {
	for _, d := range status.Convert(err).Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			reason = d.Reason
		case *errdetails.BadRequest:
			for _, v := range d.FieldViolations {
				faults += v.Field + ": " + v.Description + "; "
			}
		}
	}
	return reason, faults
}

// Requests that the model does not accept are refused as over HTTP, with the code, the field and the fault.
func TestGRPCRefusesWhatTheModelDoesNotTake(t *testing.T) {
	t.Parallel()
	_, c := startGRPC(t, v2Registry(t))
	x := func(values ...float32) *oippb.ModelInferRequest_InferInputTensor {
		return floats("x", []int64{int64(len(values)), 1}, values...)
	}
	with := func(change func(*oippb.ModelInferRequest)) *oippb.ModelInferRequest {
		r := infer("pair", x(1))
		change(r)
		return r
	}
	for name, c2 := range map[string]struct {
		ask    *oippb.ModelInferRequest
		code   codes.Code
		reason string
		want   string
	}{
		"no such model":   {infer("nosuch", x(1)), codes.NotFound, "model_not_loaded", "NOSUCH is not loaded"},
		"no such version": {with(func(r *oippb.ModelInferRequest) { r.ModelVersion = "99" }), codes.NotFound, "model_not_loaded", "no version 99"},
		"no such alias": {with(func(r *oippb.ModelInferRequest) {
			r.Parameters = map[string]*oippb.InferParameter{"alias": textParam("Canary")}
		}), codes.NotFound, "model_not_loaded", "no version with the alias Canary"},
		"alias no text":     {with(func(r *oippb.ModelInferRequest) { r.Parameters = map[string]*oippb.InferParameter{"alias": {}} }), codes.InvalidArgument, "invalid_tensors", "body.parameters.alias: expected a string"},
		"long id":           {with(func(r *oippb.ModelInferRequest) { r.Id = strings.Repeat("a", 256) }), codes.InvalidArgument, "invalid_tensors", "body.id: an id has at most 255 bytes"},
		"no inputs":         {infer("pair"), codes.InvalidArgument, "invalid_tensors", "at least one tensor"},
		"name":              {infer("pair", floats("y", []int64{1, 1}, 1)), codes.InvalidArgument, "invalid_tensors", `the tensor "x" is missing`},
		"shape":             {infer("pair", floats("x", []int64{1, 2}, 1, 2)), codes.InvalidArgument, "invalid_tensors", "has the shape [1 2], the model takes [-1 1]"},
		"negative size":     {infer("pair", floats("x", []int64{-1, 1}, 1)), codes.InvalidArgument, "invalid_tensors", "body.inputs.0.shape: a size must be at least 0"},
		"many dimensions":   {infer("pair", floats("x", make([]int64, 9), 1)), codes.InvalidArgument, "invalid_tensors", "more than 8 dimensions"},
		"rows":              {infer("pair", x(make([]float32, 10000)...)), codes.InvalidArgument, "invalid_tensors", "10000 rows; a request has at most 1024"},
		"no rows":           {infer("pair", floats("x", []int64{0, 1})), codes.InvalidArgument, "invalid_tensors", "has no rows"},
		"too few values":    {infer("pair", floats("x", []int64{2, 1}, 1)), codes.InvalidArgument, "invalid_tensors", "has 4 bytes of data, its shape needs 8"},
		"datatype":          {infer("pair", &oippb.ModelInferRequest_InferInputTensor{Name: "x", Datatype: "FP64", Shape: []int64{1, 1}, Contents: &oippb.InferTensorContents{Fp64Contents: []float64{1}}}), codes.InvalidArgument, "invalid_tensors", "the model takes FP32"},
		"no such datatype":  {infer("pair", &oippb.ModelInferRequest_InferInputTensor{Name: "x", Datatype: "FP13", Shape: []int64{1, 1}, Contents: &oippb.InferTensorContents{}}), codes.InvalidArgument, "invalid_tensors", "the model takes FP32"},
		"other member":      {infer("pair", &oippb.ModelInferRequest_InferInputTensor{Name: "x", Datatype: "FP32", Shape: []int64{1, 1}, Contents: &oippb.InferTensorContents{Int64Contents: []int64{1}}}), codes.InvalidArgument, "invalid_tensors", "1 values are in other members than fp32_contents"},
		"not a number":      {infer("pair", x(float32(math.NaN()))), codes.InvalidArgument, "invalid_tensors", "value 0 is not finite"},
		"no contents":       {infer("pair", &oippb.ModelInferRequest_InferInputTensor{Name: "x", Datatype: "FP32", Shape: []int64{1, 1}}), codes.InvalidArgument, "invalid_tensors", "body.inputs.0.contents: this member is missing"},
		"both contents":     {with(func(r *oippb.ModelInferRequest) { r.RawInputContents = [][]byte{floatBytes(1)} }), codes.InvalidArgument, "invalid_tensors", "either contents or raw contents"},
		"raw for no tensor": {with(func(r *oippb.ModelInferRequest) { r.RawInputContents = make([][]byte, 2) }), codes.InvalidArgument, "invalid_tensors", "2 raw contents for 1 tensors"},
		"unknown output": {with(func(r *oippb.ModelInferRequest) {
			r.Outputs = []*oippb.ModelInferRequest_InferRequestedOutputTensor{{Name: "median"}}
		}), codes.InvalidArgument, "invalid_tensors", "the outputs are mean, spread"},
		"shared memory": {with(func(r *oippb.ModelInferRequest) {
			r.Inputs[0].Parameters = map[string]*oippb.InferParameter{"shared_memory_region": textParam("r")}
		}), codes.InvalidArgument, "invalid_tensors", "shared memory is not served"},
		"a row fails":        {infer("rows", floats("input", []int64{2, 4}, 0, 0, 0, 0, 3e38, 3e38, 3e38, 3e38)), codes.Internal, "model_exception", "body.row.1: "},
		"larger than a body": {infer("pair", x(make([]float32, 3<<20)...)), codes.ResourceExhausted, "", "larger than max"},
	} {
		_, err := c.ModelInfer(t.Context(), c2.ask)
		reason, faults := reasonOf(err)
		if status.Code(err) != c2.code || reason != c2.reason || !strings.Contains(status.Convert(err).Message()+" "+faults, c2.want) {
			t.Errorf("%s: %v (%s; %s), want %s %s with %q", name, err, reason, faults, c2.code, c2.reason, c2.want)
		}
	}
}

func TestGRPCNeedsTheScopeOfPredictions(t *testing.T) {
	t.Parallel()
	_, c := startGRPC(t, v2Registry(t), func(c *inference.Config) {
		c.Credentials = service.Secret(`{"secret-of-the-application": {"principal": "app", "tenant": "default", "scopes": ["predict"]}}`)
	})
	bearer := func(secrets ...string) context.Context {
		ctx := t.Context()
		for _, s := range secrets {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+s)
		}
		return ctx
	}
	ask := infer("pair", floats("x", []int64{1, 1}, 1))
	for name, c2 := range map[string]struct {
		ctx    context.Context
		code   codes.Code
		reason string
	}{
		"none":      {bearer(), codes.Unauthenticated, "missing_credential"},
		"wrong":     {bearer("secret-of-nobody-at-all"), codes.Unauthenticated, "invalid_credential"},
		"two":       {bearer("secret-of-the-application", "secret-of-the-application"), codes.Unauthenticated, "invalid_credential"},
		"the right": {bearer("secret-of-the-application"), codes.OK, ""},
	} {
		_, err := c.ModelInfer(c2.ctx, ask)
		if reason, _ := reasonOf(err); status.Code(err) != c2.code || reason != c2.reason {
			t.Errorf("%s: %v (%s), want %s %s", name, err, reason, c2.code, c2.reason)
		}
	}
	for name, call := range map[string]func() error{
		"ModelReady": func() error { _, err := c.ModelReady(t.Context(), &oippb.ModelReadyRequest{Name: "pair"}); return err },
		"ModelMetadata": func() error {
			_, err := c.ModelMetadata(t.Context(), &oippb.ModelMetadataRequest{Name: "pair"})
			return err
		},
		"ServerMetadata": func() error { _, err := c.ServerMetadata(t.Context(), &oippb.ServerMetadataRequest{}); return err },
	} {
		if err := call(); status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s without a credential: %v, want Unauthenticated", name, err)
		}
	}
	if _, err := c.ServerReady(t.Context(), &oippb.ServerReadyRequest{}); err != nil {
		t.Errorf("ServerReady: %v, want it open", err)
	}
	// Reflection is off.
	if err := c.conn.Invoke(bearer("secret-of-the-application"), "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", &oippb.ServerLiveRequest{}, &oippb.ServerLiveResponse{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("reflection: %v, want Unimplemented", err)
	}
}
