// Package fault is the dashboard's table of errors.
package fault

import (
	"net/http"

	"github.com/mlp-platform/platform/libs/problem"
)

// The service's own kinds; the shared ones are in libs/problem.
var (
	Unauthenticated         = problem.Kind{Code: "unauthenticated", Status: http.StatusUnauthorized, Title: "Sign in first"}
	InvalidToken            = problem.Kind{Code: "invalid_token", Status: http.StatusUnauthorized, Title: "Credential not valid"}
	ProviderUntrusted       = problem.Kind{Code: "provider_untrusted", Status: http.StatusUnauthorized, Title: "Identity provider not trusted"}
	InvalidPassword         = problem.Kind{Code: "invalid_password", Status: http.StatusUnauthorized, Title: "Wrong password"}
	StepUpRequired          = problem.Kind{Code: "step_up_required", Status: http.StatusUnauthorized, Title: "Stronger sign-in required"}
	LocalLoginDisabled      = problem.Kind{Code: "local_login_disabled", Status: http.StatusForbidden, Title: "Password login is off"}
	CSRFRefused             = problem.Kind{Code: "csrf_refused", Status: http.StatusForbidden, Title: "Cross-site request refused"}
	RoleRequired            = problem.Kind{Code: "role_required", Status: http.StatusForbidden, Title: "Role missing"}
	NoRole                  = problem.Kind{Code: "no_role", Status: http.StatusForbidden, Title: "No role"}
	OperatorTenantRequired  = problem.Kind{Code: "operator_tenant_required", Status: http.StatusForbidden, Title: "Operator tenant required"}
	FeatureOff              = problem.Kind{Code: "feature_off", Status: http.StatusForbidden, Title: "Feature switched off"}
	NotFound                = problem.Kind{Code: "not_found", Status: http.StatusNotFound, Title: "Not found"}
	UnknownService          = problem.Kind{Code: "unknown_service", Status: http.StatusNotFound, Title: "Unknown service"}
	UnknownProvider         = problem.Kind{Code: "unknown_provider", Status: http.StatusNotFound, Title: "Unknown identity provider"}
	ModelNotFound           = problem.Kind{Code: "model_not_found", Status: http.StatusNotFound, Title: "Unknown model"}
	JobNotFound             = problem.Kind{Code: "job_not_found", Status: http.StatusNotFound, Title: "Unknown job"}
	RunNotFound             = problem.Kind{Code: "run_not_found", Status: http.StatusNotFound, Title: "Unknown run"}
	AlertNotFound           = problem.Kind{Code: "alert_not_found", Status: http.StatusNotFound, Title: "Unknown alert"}
	AlertResolved           = problem.Kind{Code: "alert_resolved", Status: http.StatusConflict, Title: "Alert resolved"}
	ConfigChanged           = problem.Kind{Code: "config_changed", Status: http.StatusPreconditionFailed, Title: "Configuration changed meanwhile"}
	ValidationFailed        = problem.Kind{Code: "validation_failed", Status: http.StatusUnprocessableEntity, Title: "Invalid request"}
	SnapshotLimit           = problem.Kind{Code: "snapshot_limit", Status: http.StatusConflict, Title: "Too many snapshots"}
	EmptyComment            = problem.Kind{Code: "empty_comment", Status: http.StatusUnprocessableEntity, Title: "Empty comment"}
	BadDocsPath             = problem.Kind{Code: "bad_docs_path", Status: http.StatusBadRequest, Title: "Not a documentation path"}
	BadProxyPath            = problem.Kind{Code: "bad_proxy_path", Status: http.StatusBadRequest, Title: "Path refused"}
	LoginLocked             = problem.Kind{Code: "login_locked", Status: http.StatusTooManyRequests, Title: "Login locked"}
	IDPUnreachable          = problem.Kind{Code: "idp_unreachable", Status: http.StatusBadGateway, Title: "Identity provider unreachable"}
	UpstreamUnavailable     = problem.Kind{Code: "upstream_unavailable", Status: http.StatusBadGateway, Title: "Service behind the dashboard unreachable"}
	UpstreamCredentials     = problem.Kind{Code: "upstream_credentials", Status: http.StatusBadGateway, Title: "Credentials refused behind the dashboard"}
	UpstreamRedirect        = problem.Kind{Code: "upstream_redirect", Status: http.StatusBadGateway, Title: "Redirect to elsewhere refused"}
	UpstreamTimeout         = problem.Kind{Code: "upstream_timeout", Status: http.StatusGatewayTimeout, Title: "Service behind the dashboard too slow"}
	SessionStoreUnavailable = problem.Kind{Code: "session_store_unavailable", Status: http.StatusServiceUnavailable, Title: "Session store unavailable"}
	TrustFileInvalid        = problem.Kind{Code: "trust_file_invalid", Status: http.StatusServiceUnavailable, Title: "Trust file invalid"}
	ServiceNotConfigured    = problem.Kind{Code: "service_not_configured", Status: http.StatusServiceUnavailable, Title: "Service not configured"}
	StreamUnavailable       = problem.Kind{Code: "stream_unavailable", Status: http.StatusServiceUnavailable, Title: "Stream unavailable"}
	StoreUnavailable        = problem.Kind{Code: "store_unavailable", Status: http.StatusServiceUnavailable, Title: "Database unavailable"}
)
