// Package steward reads the reports that the draft-PR steward leaves behind: one by one,
// and many as the history of one repository. A report is evidence of what was done; it is
// checked against itself and shown, and nothing is done about it.
//
// In a browser a report or a history is one page that is made when the command starts, has no script and cannot be told
// to do anything. It needs no token, since it holds only what the user's own files hold; the Host check keeps out pages
// of other sites.
package steward
