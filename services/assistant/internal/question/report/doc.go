// Package report answers questions about the state of a cluster, as Markdown tables, from a snapshot alone. It judges
// nothing: package playbook decides what is wrong.
//
// Names, images and messages are foreign text and appear as code. No table shows the value of a variable or of a
// Secret. Equal snapshots give equal tables.
package report
