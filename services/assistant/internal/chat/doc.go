// Package chat is the wire of the assistant's main route: what a request may say, and the exact bytes of the frames that
// answer it.
//
// A request becomes a [Request]: the query with its context groups taken off, the history that came along, and where to
// find the session. [ParseWord] reports whether the query decides an action; nothing else ever does.
//
// Frames are encoded once, by an [Encoder], in the canonical profile. Those bytes are what is stored and replayed. A
// [Renderer] makes of them what one reader asked for: the same, with event ids, or the strict profile for SDKs that
// accept nothing but chat-completions chunks.
package chat
