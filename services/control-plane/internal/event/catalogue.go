package event

import "github.com/mlp-platform/platform/libs/outbox"

// Declared lists every event that this service publishes; the store refuses to
// write any other.
var Declared = outbox.NewCatalogue(
	outbox.AuditDeclaration,

	ofTenant("job", "dispatched", Job{}, "the orchestrator accepted a training run"),
	ofTenant("job", "started", JobStarted{}, "a run was seen running"),
	ofTenant("job", "completed", Job{}, "a run completed successfully"),
	ofTenant("job", "failed", Job{}, "a run failed; reason holds the cause"),
	ofTenant("job", "cancelled", Job{}, "a run was cancelled"),
	ofTenant("job", "crashed", Job{}, "a run ended for an external reason, such as the loss of its worker"),
	ofTenant("job", "lost", Job{}, "a run has been unknown to the orchestrator for ten minutes"),
	ofPlatform("job", "state_changed", JobState{}, "a batch job of the facility changed state; before the first report it is UNKNOWN"),

	ofTenant("approval", "created", Approval{}, "a record waits for a decision"),
	ofTenant("approval", "approved", Approval{}, "a record was approved, and its run was accepted or its promotion decided"),
	ofTenant("approval", "rejected", Approval{}, "a record was rejected"),
	ofTenant("approval", "expired", Approval{}, "it was not decided in time, or a newer record superseded it"),
	ofTenant("approval", "dispatch_failed", Approval{}, "an approved run could not be started; the record is pending again"),

	ofPlatform("deploy", "alias_changed", AliasChanged{}, "an alias points to another version, or to none"),
	ofPlatform("deploy", "promoted", Promotion{}, "a promotion moved its alias"),
	ofPlatform("deploy", "promotion_denied", Promotion{}, "a requested promotion was denied by the gate"),
	ofPlatform("deploy", "rolled_back", Promotion{}, "an alias was rolled back to a version that held it before; from and to are the alias, reasons holds the reason given"),

	ofPlatform("drift", "retrain_requested", DriftRetrain{}, "drift opened an approval record (requested) or started a run (dispatched)"),
	ofPlatform("drift", "retrain_blocked", DriftRetrain{}, "drift did not start training because the data is corrupt (blocked_corrupt) or something failed; published once until the outcome changes"),

	ofTenant("alert", "firing", Alert{}, "an alert fires, or its severity changed"),
	ofTenant("alert", "resolved", Alert{}, "an alert no longer fires"),

	ofPlatform("event", "push", Push{}, "the watched branch of the model repository has a new head"),
	ofPlatform("event", "freshness_changed", FreshnessChanged{}, "a model became current or stale"),
	ofPlatform("event", "config_changed", ConfigChanged{}, "settings changed; keys names them"),
)

func ofTenant(namespace, name string, data any, when string) outbox.Declaration {
	return outbox.Declaration{Namespace: namespace, Name: name, Data: data, When: when}
}

func ofPlatform(namespace, name string, data any, when string) outbox.Declaration {
	return outbox.Declaration{Namespace: namespace, Name: name, Data: data, When: when, Platform: true}
}
