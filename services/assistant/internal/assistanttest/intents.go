package assistanttest

import "github.com/mlp-platform/platform/services/assistant/internal/question"

var intentNames = [...]string{
	"unclear", "greeting", "assent", "line", "request", "held", "advice", "diagnosis", "overview", "health", "unhealthy_pods", "warnings",
	"restarts", "usage", "capacity", "quotas", "no_limits", "no_probes", "events", "empty_services", "external", "error_logs", "error_rate", "latency",
	"recent_changes", "images", "idle", "env_secrets", "drain_plan", "who_can", "secrets", "keys", "users", "number", "clock", "manual", "runbook", "reach", "certificates", "applications", "releases", "prices", "list", "describe", "logs", "history",
}

// IntentName returns the name of an intent in the manual and in the messages of failed tests.
func IntentName(i question.Intent) string { return intentNames[i] }
