// Package doctor is `svc doctor`: whether connectors are ready, by offline probes, and
// whether a repository is governed well enough for an operation, by an observation that
// somebody else made. It changes nothing and asks nobody.
package doctor
