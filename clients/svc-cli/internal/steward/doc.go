// Package steward reads the reports that the draft-PR steward leaves behind: one by one,
// and many as the history of one repository. A report is evidence of what was done; it is
// checked against itself and shown, and nothing is done about it.
package steward
