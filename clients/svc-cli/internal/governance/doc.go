// Package governance judges whether a repository is governed well enough for an
// operation. It reads an observation, a document from another source, and, if one is
// given, a workflow file; it queries no forge and changes nothing.
//
// What an observation does not hold is unknown, and unknown is never good enough: a
// required guard that was not observed makes the whole answer UNKNOWN.
package governance
