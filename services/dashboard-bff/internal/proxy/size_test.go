//go:build !race

package proxy

// largeBody is what must stream in constant memory, in bytes.
const largeBody = 2 << 30
