// Package symptom lists what is visibly not healthy in a snapshot, whether or not a playbook
// knows a cause for it. An answer may say that nothing is wrong only if there is no symptom,
// and a finding that leaves symptoms of its object unexplained has to say so.
package symptom
