//go:build race

package proxy

// largeBody is smaller under the race detector, which makes copying many times slower.
const largeBody = 128 << 20
