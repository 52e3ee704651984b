// Package doctor is `svc doctor`: whether connectors are ready, by offline probes, and
// whether a repository is governed well enough for an operation, by an observation from
// another source. It changes nothing and makes no requests.
package doctor
