// Package bootstrap plans the files that `svc init --github` would put into a repository.
// It only plans: it writes no file, queries no forge and reads no secret, so the same
// arguments give the same bytes on every machine.
package bootstrap
