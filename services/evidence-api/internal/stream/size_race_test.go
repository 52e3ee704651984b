//go:build race

package stream_test

// events is how many the largest log has under the race detector, where SQLite is
// some twenty times slower.
const events = 40_000
