package event

import "github.com/mlp-platform/platform/libs/outbox"

// Declared are all events that this service publishes; the store refuses to
// write any other.
var Declared = outbox.NewCatalogue(
	outbox.AuditDeclaration,

	ofTenant("job", "dispatched", Job{}, "the orchestrator took a training run"),
	ofTenant("job", "started", JobStarted{}, "a run was seen running"),
	ofTenant("job", "completed", Job{}, "a run ended well"),
	ofTenant("job", "failed", Job{}, "a run failed; reason says why"),
	ofTenant("job", "cancelled", Job{}, "a run was cancelled"),
	ofTenant("job", "crashed", Job{}, "a run ended without its own doing, such as with its worker"),
	ofTenant("job", "lost", Job{}, "the orchestrator has not known a run for ten minutes"),
	ofPlatform("job", "state_changed", JobState{}, "a batch job of the facility changed its state; before the first report it was UNKNOWN"),

	ofTenant("approval", "created", Approval{}, "a record waits for a decision"),
	ofTenant("approval", "approved", Approval{}, "a record was approved, and its run accepted or its promotion decided"),
	ofTenant("approval", "rejected", Approval{}, "a record was rejected"),
	ofTenant("approval", "expired", Approval{}, "nobody decided in time, or a newer record took the place"),
	ofTenant("approval", "dispatch_failed", Approval{}, "an approved run could not be started; the record is pending again"),

	ofPlatform("deploy", "alias_changed", AliasChanged{}, "an alias points to another version, or to none"),
	ofPlatform("deploy", "promoted", Promotion{}, "a promotion moved its alias"),
	ofPlatform("deploy", "promotion_denied", Promotion{}, "a promotion was asked for that the gate does not allow"),
	ofPlatform("deploy", "rolled_back", Promotion{}, "an alias went back to a version that held it before; from and to are the alias, reasons has what the decider gave"),

	ofPlatform("drift", "retrain_requested", DriftRetrain{}, "drift led to a record that waits for approval (requested) or to a run (dispatched)"),
	ofPlatform("drift", "retrain_blocked", DriftRetrain{}, "drift did not lead to training, since the data is corrupt (blocked_corrupt) or something failed; told once until it changes"),

	ofTenant("alert", "firing", Alert{}, "an alert fires, or fires with another severity"),
	ofTenant("alert", "resolved", Alert{}, "an alert fires no more"),

	ofPlatform("event", "push", Push{}, "the watched branch of the model repository has a new head"),
	ofPlatform("event", "freshness_changed", FreshnessChanged{}, "a model became current or stale"),
	ofPlatform("event", "config_changed", ConfigChanged{}, "settings have other values; keys names them"),
)

func ofTenant(namespace, name string, data any, when string) outbox.Declaration {
	return outbox.Declaration{Namespace: namespace, Name: name, Data: data, When: when}
}

func ofPlatform(namespace, name string, data any, when string) outbox.Declaration {
	return outbox.Declaration{Namespace: namespace, Name: name, Data: data, When: when, Platform: true}
}
