// Package table shows lists of cluster objects: the rows that the API server prints,
// those in trouble first, within a budget of characters.
//
// The columns are the server's own, so a custom resource is as readable as a pod.
// What a cell means is told by the name of its column, and only to order rows: a wrong
// guess moves a line and concludes nothing.
package table
