// Package report answers questions about how a cluster is, as Markdown tables, from a
// snapshot alone. It judges nothing: what is wrong is for package playbook to say.
//
// Names, images and messages are foreign text and stand as code. No table shows the
// value of a variable or of a Secret. Equal snapshots give equal tables.
package report
