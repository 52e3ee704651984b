// Package fault is the inference service's table of errors.
package fault

import (
	"net/http"

	"github.com/mlp-platform/platform/libs/problem"
)

// The service's own kinds; the shared ones are in libs/problem.
var (
	ModelNotLoaded       = problem.Kind{Code: "model_not_loaded", Status: http.StatusNotFound, Title: "Model not loaded"}
	FeatureShapeMismatch = problem.Kind{Code: "feature_shape_mismatch", Status: http.StatusInternalServerError, Title: "Features differ from the trained columns"}
	ModelException       = problem.Kind{Code: "model_exception", Status: http.StatusInternalServerError, Title: "The model failed"}
	TrackerUnavailable   = problem.Kind{Code: "tracker_unavailable", Status: http.StatusServiceUnavailable, Title: "Tracker unavailable"}
	ScoringUnavailable   = problem.Kind{Code: "scoring_unavailable", Status: http.StatusServiceUnavailable, Title: "Scoring server unavailable"}
	Overloaded           = problem.Kind{Code: "overloaded", Status: http.StatusServiceUnavailable, Title: "Too many requests waiting"}
	NoTrafficRules       = problem.Kind{Code: "no_traffic_rules", Status: http.StatusNotFound, Title: "No traffic rules"}
	NoShadowRule         = problem.Kind{Code: "no_shadow_rule", Status: http.StatusNotFound, Title: "No shadow rule"}
	StoreUnavailable     = problem.Kind{Code: "store_unavailable", Status: http.StatusServiceUnavailable, Title: "Database unavailable"}
	InvalidTensors       = problem.Kind{Code: "invalid_tensors", Status: http.StatusBadRequest, Title: "Invalid tensors"}
	InvalidWebhookProof  = problem.Kind{Code: "invalid_webhook_proof", Status: http.StatusUnauthorized, Title: "Invalid webhook proof"}
	WebhookSecretMissing = problem.Kind{Code: "webhook_secret_missing", Status: http.StatusServiceUnavailable, Title: "Webhook secret not set"}
	NotEnoughSnapshots   = problem.Kind{Code: "not_enough_snapshots", Status: http.StatusConflict, Title: "Not enough predictions yet"}
	CrossOrigin          = problem.Kind{Code: "cross_origin_request", Status: http.StatusForbidden, Title: "Cross-origin request refused"}
)
