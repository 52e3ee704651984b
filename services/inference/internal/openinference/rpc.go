package openinference

import (
	"context"
	"net/http"
	"net/textproto"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/mlp-platform/platform/libs/onnx/runtime"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/inference/internal/catalog"
	"github.com/mlp-platform/platform/services/inference/internal/fault"
	"github.com/mlp-platform/platform/services/inference/internal/metrics"
	"github.com/mlp-platform/platform/services/inference/internal/openinference/oippb"
	"github.com/mlp-platform/platform/services/inference/internal/serving"
)

// RPC is the protocol over gRPC. Its errors are problems, which the server converts to statuses.
type RPC struct {
	*Handlers
}

// OpenMethods need no credential, like the routes of the same names.
var OpenMethods = []string{oippb.GRPCInferenceService_ServerLive_FullMethodName, oippb.GRPCInferenceService_ServerReady_FullMethodName}

// ServerLive implements the protocol.
func (r *RPC) ServerLive(context.Context, *oippb.ServerLiveRequest) (*oippb.ServerLiveResponse, error) {
	return &oippb.ServerLiveResponse{Live: true}, nil
}

// ServerReady implements the protocol.
func (r *RPC) ServerReady(context.Context, *oippb.ServerReadyRequest) (*oippb.ServerReadyResponse, error) {
	_, ok := r.ready()
	return &oippb.ServerReadyResponse{Ready: ok}, nil
}

// ServerMetadata implements the protocol. Binary data are a part of it here, and no extension.
func (r *RPC) ServerMetadata(context.Context, *oippb.ServerMetadataRequest) (*oippb.ServerMetadataResponse, error) {
	return &oippb.ServerMetadataResponse{Name: server.Name, Version: server.Version}, nil
}

// ModelReady reports loaded models and loads none, like its HTTP route.
func (r *RPC) ModelReady(ctx context.Context, in *oippb.ModelReadyRequest) (*oippb.ModelReadyResponse, error) {
	call, leave, err := r.begin(ctx, in.Name, 1)
	if err != nil {
		return nil, err
	}
	defer leave()
	slot, err := r.core.Catalog.Loaded(call.Name, in.Version)
	switch {
	case fault.ModelNotLoaded.Has(err):
		return &oippb.ModelReadyResponse{}, nil
	case err != nil:
		return nil, err
	}
	slot.Release()
	return &oippb.ModelReadyResponse{Ready: true}, nil
}

// ModelMetadata implements the protocol; the version may have to be loaded first.
func (r *RPC) ModelMetadata(ctx context.Context, in *oippb.ModelMetadataRequest) (*oippb.ModelMetadataResponse, error) {
	call, leave, err := r.begin(ctx, in.Name, 1)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithDeadline(ctx, call.Deadline())
	defer cancel()
	slot, err := r.core.Catalog.Find(ctx, call.Name, "", in.Version)
	if err != nil {
		return nil, err
	}
	defer slot.Release()
	m := describe(slot)
	out := &oippb.ModelMetadataResponse{Name: m.Name, Versions: m.Versions, Platform: m.Platform}
	for _, t := range m.Inputs {
		out.Inputs = append(out.Inputs, &oippb.ModelMetadataResponse_TensorMetadata{Name: t.Name, Datatype: string(t.Datatype), Shape: t.Shape})
	}
	for _, t := range m.Outputs {
		out.Outputs = append(out.Outputs, &oippb.ModelMetadataResponse_TensorMetadata{Name: t.Name, Datatype: string(t.Datatype), Shape: t.Shape})
	}
	return out, nil
}

// ModelInfer implements the protocol.
func (r *RPC) ModelInfer(ctx context.Context, in *oippb.ModelInferRequest) (out *oippb.ModelInferResponse, err error) {
	weight := weightOf(int64(proto.Size(in)))
	call, leave, err := r.begin(ctx, in.ModelName, weight)
	if err != nil {
		return nil, err
	}
	defer leave()
	q, faults := readMessage(in)
	if faults != nil {
		return nil, r.core.Refuse(&call, metrics.Invalid, serving.Faulty(fault.InvalidTensors, faults))
	}
	q.weight = weight
	err = r.serve(ctx, &call, &q, func(slot *catalog.Slot, outs []runtime.Tensor, wanted []wantedOutput) {
		out = makeMessage(slot, q.ID, outs, wanted)
	})
	return out, err
}

// begin admits a call, whose entries have the names and meanings of HTTP's headers.
func (r *RPC) begin(ctx context.Context, model string, weight int) (call serving.Call, leave func(), err error) {
	md, _ := metadata.FromIncomingContext(ctx)
	header := make(http.Header, len(md))
	for name, values := range md {
		header[textproto.CanonicalMIMEHeaderKey(name)] = values
	}
	if call, err = r.core.Begin(header, catalog.UpperName(model)); err != nil {
		return call, nil, r.core.Refuse(&call, metrics.Invalid, err)
	}
	if at, ok := ctx.Deadline(); ok {
		if call.Limit = min(call.Limit, time.Until(at)); call.Limit <= 0 {
			return call, nil, r.core.Refuse(&call, metrics.Timeout, problem.DeadlineExceeded.New("The call's deadline has passed."))
		}
	}
	leave, err = r.core.Admit(&call, weight)
	return call, leave, err
}

// errFollowed refuses to load or unload by hand: which models serve is decided by their aliases.
var errFollowed = status.Error(codes.Unimplemented, "Models are loaded and unloaded by their aliases in the tracker; move an alias, or ask POST /reload to look now.")

// RepositoryModelLoad is refused.
func (r *RPC) RepositoryModelLoad(context.Context, *oippb.RepositoryModelLoadRequest) (*oippb.RepositoryModelLoadResponse, error) {
	return nil, errFollowed
}

// RepositoryModelUnload is refused.
func (r *RPC) RepositoryModelUnload(context.Context, *oippb.RepositoryModelUnloadRequest) (*oippb.RepositoryModelUnloadResponse, error) {
	return nil, errFollowed
}
