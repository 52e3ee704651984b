// Package httpd serves HTTP/1.0 and 1.1 to one user's own machine: one request a
// connection, exact limits, absolute deadlines.
//
// # Why not net/http
//
// The contract of the local servers fixes details that net/http does not let a
// caller choose:
//
//   - 414 for a request line over 65,536 bytes, 431 for one header line over 65,536
//     bytes or for more than 99 fields. net/http has one bound for the whole head,
//     adds 4,096 to it, and answers 431 for both.
//   - Fields in order and as sent, repeated or padded: the rules about Host and the
//     token need them. net/http takes Host out of the fields, refuses some values
//     itself in its own words, and trims.
//   - The raw target. net/http parses it and answers 400 to a bad escape that is the
//     resource's own 404 here.
//   - Content-Length and Transfer-Encoding are judged by the handler, which owns the
//     answers to them. net/http refuses "+2" before any handler runs.
//   - After an answer that leaves a body unread, bytes are discarded for a while.
//     net/http waits without reading, so that a client with a large body is stuck
//     and then reset.
//
// # Life of a connection
//
//	accept -> head -> handler -> answer -> [half-close, discard] -> close
//
// The head is due within the request timeout from accept, a body within the same
// time from the first read of it, an answer within it from the first byte of it.
// Whatever follows the request is ignored. An answer that leaves a body unread is
// followed by a half-close and up to 256 KiB or 500 ms of discarding: closing a
// socket with unread bytes resets it, and a reset can overtake the answer.
//
// A connection costs one goroutine and a pooled buffer of 4 KiB; a stream has one
// goroutine more, which notices that the peer went away.
//
// # What a head may hold
//
// Lines end in CRLF or LF, and the terminator counts. A field's value is all that
// follows the colon but for one space, so that a handler can distinguish a padded
// value from a bare one. An empty line before the request line is refused: it is a
// courtesy to clients that keep connections open.
package httpd
