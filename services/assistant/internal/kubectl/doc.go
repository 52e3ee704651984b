// Package kubectl reads and writes operations as kubectl command lines. It never runs kubectl: the line is only the
// notation in which a person writes or reads a typed operation.
//
// The grammar is closed. An unknown verb or flag, a second value for a flag, or anything that a shell would treat as
// more than text is refused, never interpreted.
package kubectl
