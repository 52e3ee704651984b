//go:build !unix

package command

// ignoreBackgroundReads has nothing to do where no terminal stops a process that reads from it.
func ignoreBackgroundReads() {}
