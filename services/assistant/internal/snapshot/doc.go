// Package snapshot reads from a cluster the objects that the playbooks examine, in parallel and only as far as the
// question needs them.
//
// Values that could be secret are removed during the read: Secrets and ConfigMaps keep only their keys, environments
// and arguments are redacted. Of objects that the policy hides, only the resources that they hold on nodes remain,
// without a name.
package snapshot
