// Package steward reads the reports that the draft-PR steward leaves behind: one by one,
// and many as the history of one repository. A report is evidence of what was done; it is
// checked against itself and shown, and nothing is done about it.
//
// In a browser a report or a history is one page that is made when the command starts, has no script and accepts no
// commands. It needs no token, since it holds only the content of the user's own files; the Host check keeps out pages
// of other sites.
package steward
