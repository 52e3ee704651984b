// Package steward reads the reports that the draft-PR steward leaves behind: one by one, and many as the history of one
// repository. A report is evidence of past actions; it is checked for consistency and shown, and nothing else is done
// with it.
//
// In a browser a report or a history is one page that is made when the command starts, has no script and accepts no
// commands. It needs no token, since it holds only the content of the user's own files; the Host check keeps out pages
// of other sites.
package steward
