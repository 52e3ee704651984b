// Package assistant answers questions about a Kubernetes cluster, and changes in it what a person approved.
package assistant
