package grpcserver

import (
	"net/http"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/mlp-platform/platform/libs/problem"
)

// byStatus are the codes of HTTP's statuses; others are Internal.
var byStatus = map[int]codes.Code{
	http.StatusBadRequest: codes.InvalidArgument, http.StatusUnprocessableEntity: codes.InvalidArgument,
	http.StatusUnauthorized: codes.Unauthenticated, http.StatusForbidden: codes.PermissionDenied,
	http.StatusNotFound: codes.NotFound, http.StatusConflict: codes.FailedPrecondition,
	http.StatusRequestEntityTooLarge: codes.ResourceExhausted, http.StatusTooManyRequests: codes.ResourceExhausted,
	problem.ClientClosed.Status: codes.Canceled, http.StatusNotImplemented: codes.Unimplemented,
	http.StatusServiceUnavailable: codes.Unavailable, http.StatusGatewayTimeout: codes.DeadlineExceeded,
}

// shownFaults limits the faults of one status: clients take few KiB of it.
const shownFaults = 10

// statusOf converts a problem to a gRPC status. The problem's code is the reason in ErrorInfo; its errors are in
// BadRequest, and Retry-After is RetryInfo.
func statusOf(p *problem.Error, requestID string) *status.Status {
	code, ok := byStatus[p.Status()]
	if !ok {
		code = codes.Internal
	}
	message := p.Detail
	if message == "" {
		message = p.Kind.Title
	}
	details := []protoadapt.MessageV1{protoadapt.MessageV1Of(&errdetails.ErrorInfo{Reason: p.Kind.Code, Domain: "inference"})}
	if requestID != "" {
		details = append(details, protoadapt.MessageV1Of(&errdetails.RequestInfo{RequestId: requestID}))
	}
	if len(p.Errors) > 0 {
		bad := &errdetails.BadRequest{}
		for _, f := range p.Errors[:min(len(p.Errors), shownFaults)] {
			bad.FieldViolations = append(bad.FieldViolations, &errdetails.BadRequest_FieldViolation{Field: strings.Join(f.Loc, "."), Description: f.Msg})
		}
		details = append(details, protoadapt.MessageV1Of(bad))
	}
	if p.RetryAfter > 0 {
		details = append(details, protoadapt.MessageV1Of(&errdetails.RetryInfo{RetryDelay: durationpb.New(p.RetryAfter)}))
	}
	st := status.New(code, message)
	if with, err := st.WithDetails(details...); err == nil {
		st = with
	}
	return st
}
