//go:build !race

package proxy

// largeBody is a body size, in bytes, that must stream in constant memory.
const largeBody = 2 << 30
