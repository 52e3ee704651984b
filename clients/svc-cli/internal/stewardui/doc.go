// Package stewardui shows a steward's report or history in a browser: one page that is
// made when the command starts, has no script and cannot be told to do anything. It needs
// no token, since it holds only what the user's own files hold; the Host check keeps out
// pages of other sites.
package stewardui
