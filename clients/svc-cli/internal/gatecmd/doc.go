// Package gatecmd is the commands of svc that audit gates: what they read, where they write, and which of it may not
// be one file.
package gatecmd
