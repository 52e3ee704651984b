// Package chat defines the wire format of the assistant's main route: the requests it accepts, and the exact bytes of
// the response frames.
//
// A request becomes a [Request]: the query without its context groups, the history, and how to find the session.
// [ParseWord] alone reports whether the query decides an action.
//
// An [Encoder] encodes each frame once, in the canonical profile; those bytes are stored and replayed. A [Renderer]
// converts them for each reader: unchanged, with event ids, or in the strict profile for SDKs that accept only
// chat-completions chunks.
package chat
