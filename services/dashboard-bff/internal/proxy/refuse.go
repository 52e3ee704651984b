package proxy

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// credentials names, for each service, the setting for an operator to fix when the service refuses the dashboard.
var credentials = map[upstream.Service]string{
	upstream.Tracker:          "MLFLOW_TRACKING_TOKEN, or tracker_url: the tracker must let the dashboard's host in (MLFLOW_SERVER_ALLOWED_HOSTS)",
	upstream.Orchestrator:     "PREFECT_API_KEY, or orchestrator_url",
	upstream.Serving:          "SERVING_TOKEN, or the dashboard's key in the inference service's DELEGATION_TRUST_JSON",
	upstream.ServingDashboard: "serving_dashboard_url: it must let the dashboard in without a login",
	upstream.MetricsStore:     "metrics_store_url: it must let the dashboard in without a login",
	upstream.Dashboards:       "dashboards_api_key",
	upstream.ControlPlane:     "control_plane_token, or the dashboard's key in the control plane's DELEGATION_TRUST_JSON",
}

// refuseStatus turns the service's refusal of the dashboard into a 502: a 401 would ask the caller to sign in again,
// which would not help. The platform's own services know the person, so their 403 is meant for them.
func (x *exchange) refuseStatus(res *http.Response) error {
	s := x.proxy.cfg.Upstreams.Resolve(x.service)
	own := s == upstream.ControlPlane || s == upstream.Serving
	switch res.StatusCode {
	case http.StatusUnauthorized, http.StatusProxyAuthRequired:
	case http.StatusForbidden:
		if own {
			return nil
		}
	default:
		return nil
	}
	if err := x.recordWrite(res.Request.Context(), res.StatusCode); err != nil {
		return err
	}
	detail := fmt.Sprintf("%s refused the dashboard with %d; an admin mends %s.", x.service, res.StatusCode, credentials[s])
	return fault.UpstreamCredentials.New(detail).WithHeader(headerUpstreamStatus, strconv.Itoa(res.StatusCode))
}
