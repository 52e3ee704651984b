// Package autoretrain retrains models that drift, if an authorised person has enabled it for them: that is the standing
// authorisation. The leader checks each minute, and POST /drift/trigger at once. It checks the version that Production
// serves. When a model drifts enough, one trigger leads to training:
//
//	gate approval  a record that waits for a decision (requested)
//	gate direct    a training run (dispatched)
//
// Both stamp the trigger in the same transaction that records its effect, under a lock of the model's row, so that the
// cooldown begins exactly if it had one. A dispatch takes longer than a transaction; until it is settled its trigger
// holds a claim with a lease. If the process dies, the next trigger continues the claim under its idempotency key,
// which finds the run if there is one.
package autoretrain
