//go:build !linux || !cgo

package runtime

func giveMemoryBack() {}
