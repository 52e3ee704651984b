// Package command holds the parts that all commands of svc share: their access to the environment, their output and
// their errors.
//
// A command's action is wrapped by [Env.Action], which turns its error into text, the error document and the
// exit code: 0 done; 1 a check answered no ([No]); 2 everything else.
package command
