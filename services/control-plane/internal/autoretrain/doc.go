// Package autoretrain trains models again because they drift, for those for which
// somebody has enabled it: that is the standing authorisation. The leader looks
// each minute, and POST /drift/trigger at once. Looked at is what Production
// serves. Of a model that drifts enough, one trigger leads to training:
//
//	gate approval  a record that waits for a decision (requested)
//	gate direct    a training run (dispatched)
//
// Both stamp the trigger in the very transaction that records what it led to,
// under a lock of the model's row, so that the cooldown begins exactly if
// something came of it. A dispatch takes longer than a transaction; until it is
// settled its trigger holds a claim with a lease. Should the process die, the
// next trigger continues the claim under its idempotency key, which finds the
// run if there is one.
package autoretrain
