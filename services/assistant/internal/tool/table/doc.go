// Package table shows lists of cluster objects: the rows that the API server prints, those in trouble first, within a
// limit of characters.
//
// The columns are the server's own, so a custom resource is as readable as a pod. The name of a column gives the
// meaning of its cells, and is used only to order rows: a wrong guess moves a line and concludes nothing.
package table
