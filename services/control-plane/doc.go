// Package controlplane is the control plane: retraining, the approval gate, the
// promotion of versions, and what is known of all of them.
package controlplane
