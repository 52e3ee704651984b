// Package governance judges whether a repository is governed well enough for an
// operation. It looks at an observation, a document that somebody else made, and, if one
// is given, at a workflow file; it asks no forge and changes nothing.
//
// What an observation does not hold is unknown, and unknown is never good enough: a
// required guard that was not observed makes the whole answer UNKNOWN.
package governance
