//go:build !race

package stream_test

// events is how many the largest log of the tests has.
const events = 1_000_000
