//go:build !unix

package listener

func openFiles() (uint64, bool) { return 0, false }
