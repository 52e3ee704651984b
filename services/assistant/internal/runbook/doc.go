// Package runbook reads runbooks from a folder: Markdown files whose front matter says what they are for. Their text is quoted to
// readers and never followed; values in it are no more trusted than those of an annotation.
//
// The folder belongs to somebody else, such as git-sync, who replaces it while it is read. So it is read as a whole, within bounds and
// without leaving it, once a minute, and what was read last stands until then.
package runbook
