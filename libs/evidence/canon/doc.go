// Package canon is the JSON of the evidence product: one strict parser for
// every document that comes in, and the five written forms, so that two
// programs that hold the same document hold the same bytes and the same digest.
//
// A [Value] keeps what other decoders lose: an integer of any size stays exact,
// and a number written with a point or an exponent stays a float ("10.0" is
// never written as "10").
package canon
