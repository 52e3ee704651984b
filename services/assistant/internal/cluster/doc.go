// Package cluster is the one way to the Kubernetes cluster: which cluster it is, clients that redact what they read,
// the kinds that it serves under all their names, and its errors as sentences for the reader.
//
// Every client goes through the transport of package redact. The values of Secrets never reach this process' memory as
// text that could be shown; typed clients therefore cannot decode a Secret, see [Cluster.SecretKeys].
package cluster
