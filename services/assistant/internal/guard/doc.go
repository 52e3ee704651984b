// Package guard holds the rules about who may change what, and what is asked first.
// All of it is pure: the caller brings the expanded operation and the objects before
// and after.
package guard
