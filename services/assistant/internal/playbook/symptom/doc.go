// Package symptom lists everything visibly unhealthy in a snapshot, whether or not a playbook knows its cause. An
// answer may state that nothing is wrong only if there is no symptom, and a finding that leaves symptoms of its object
// unexplained has to mention them.
package symptom
