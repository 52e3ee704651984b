package fault

// Failure is a row of the closed table of error events in a stream. The cause of a failure stays in the log: an event
// never quotes it.
type Failure struct {
	Code    string // stable slug
	Message string // a sentence for the user
}

// The failures.
var (
	ClusterUnreachable = Failure{"cluster_unreachable", "The cluster does not answer."}
	ClusterForbidden   = Failure{"cluster_forbidden", "The cluster does not let the assistant do this."}
	MetricsUnavailable = Failure{"metrics_unavailable", "The metrics store does not answer."}
	LogsUnavailable    = Failure{"logs_unavailable", "The log store does not answer."}
	EngineFailed       = Failure{"engine_failed", "The investigation failed."}
	ModelUnavailable   = Failure{"model_unavailable", "The language model does not answer; the built-in playbooks continue without it."}
	ContextOverflow    = Failure{"context_overflow", "The conversation does not fit into the language model's window; the built-in playbooks continue without it."}
	BudgetSpent        = Failure{"budget_spent", "The investigation used up its budget."}
	TurnTimeout        = Failure{"turn_timeout", "The answer took longer than a turn may take."}
	Superseded         = Failure{"superseded", "A newer request of this session took the place of this one."}
	Interrupted        = Failure{"interrupted", "The server stopped while it answered."}
	SessionDeleted     = Failure{"session_deleted", "The session was deleted while it was answered."}
	ShuttingDown       = Failure{"shutting_down", "The server is shutting down; send the request again."}
	StreamStore        = Failure{"store_unavailable", "The assistant's own store does not answer."}
	InternalFailure    = Failure{"internal", "The assistant failed; its log has the cause."}
)
