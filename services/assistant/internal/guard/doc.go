// Package guard holds the rules on who may change what, and what needs a decision first. All of
// it is pure: the caller supplies the expanded operation and the objects before and after.
package guard
