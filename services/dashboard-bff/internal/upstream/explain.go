package upstream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
)

// ExplainControlPlane converts an error of a read from the control plane to an answer for the caller; what names the
// data.
func ExplainControlPlane(err error, what string) error {
	var p *problem.Error
	var n net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, ErrNotConfigured):
		return fault.ServiceNotConfigured.New("The control plane keeps " + what + ", and no address of it is configured; set control_plane_url.").WithCause(err)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &n) && n.Timeout():
		return fault.UpstreamTimeout.New("The control plane did not answer in time; try again, or request less.").WithCause(err)
	case errors.As(err, &p) && p.Status() == http.StatusUnauthorized:
		return fault.UpstreamCredentials.New("The control plane refused the dashboard's credential; check control_plane_token, or that it trusts the dashboard's delegations.").
			WithHeader("X-Upstream-Status", strconv.Itoa(p.Status())).WithCause(err)
	case errors.As(err, &p) && p.Status() == http.StatusNotFound:
		return fault.NotFound.New("The control plane knows no such thing in your tenant.").WithCause(err)
	case errors.As(err, &p) && (p.Status() == http.StatusForbidden || p.Status() == http.StatusUnprocessableEntity || p.Status() == http.StatusTooManyRequests):
		return p // it is about the caller or the request
	}
	return fault.UpstreamUnavailable.New("The control plane, which keeps " + what + ", gives no usable answer; see GET /api/health.").WithCause(err)
}
