// Package turn answers one request: it decides what the request decides, runs what was
// approved, lets an engine investigate, and proposes at most one write at a time.
//
//	request ──▶ active ──▶ finished
//	   │          │  ▲
//	   │          └──┴ owner died: a replica takes over and closes it with what is known
//	   ├─ repeat of an active one: attached to it
//	   ├─ repeat of a finished one: its frames once more
//	   └─ another is active: waits, then 409, or the orphan is stopped
//
// One turn of a session is active at a time, by a lease in its row. Every write of its
// owner carries the lease's fence, so that an owner that only slept adds nothing once
// another has taken over.
//
// Frames are kept as bytes. Approval and completion frames are in the store before a reader gets them, and the turn is
// closed with the completion; the others follow within a moment, at most maxUnstored of them at a time. A turn that is
// taken over continues beyond those, so that no event id is used for two frames.
//
// Readers come and go. Without readers, at this replica or another, the turn continues for the orphan time and then
// stops at a safe point. A write that has begun always finishes.
package turn
