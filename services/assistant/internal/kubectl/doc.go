// Package kubectl reads and writes operations as kubectl command lines. Nothing here
// runs kubectl: the line is how a person says or reads a typed operation.
//
// The grammar is closed. An unknown verb or flag, a second value for a flag, or
// anything a shell would treat as more than text is refused, never guessed at.
package kubectl
