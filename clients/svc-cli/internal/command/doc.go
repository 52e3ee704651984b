// Package command is what all commands of svc share: what they may touch of the world, how they print, and how
// they fail.
//
// A command's action is wrapped by [Env.Action], which turns its error into text, the error document and the
// exit code: 0 done; 1 a check answered no ([No]); 2 everything else.
package command
