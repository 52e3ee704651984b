// Package snapshot reads from a cluster what the playbooks look at, in parallel and as
// little of it as the question needs.
//
// Values that could be secret are taken out on the way: Secrets and ConfigMaps come
// with their keys only, environments and arguments redacted. Of what the policy hides,
// only the resources it holds on nodes remain, without a name.
package snapshot
