// Package runbook reads runbooks from a folder: Markdown files whose front matter states what they apply to. Their text
// is quoted to readers and never followed; values in it are no more trusted than those of an annotation.
//
// The folder is managed by another program, such as git-sync, which may replace it during a read. So it is read as a
// whole once a minute, within limits and without following links out of it, and the last reading applies until the
// next.
package runbook
