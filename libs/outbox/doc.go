// Package outbox carries facts from a service's database to everyone else.
//
// A service inserts events in the transaction that changes its state. A relay
// publishes the committed rows to the JetStream stream PLATFORM as CloudEvents,
// at least once, with the row's id as the message id, so that the broker drops
// repeats within ten minutes and consumers drop the rest through their inbox.
//
// A row is pending until the broker has acknowledged it:
//
//	pending ──ack──────────────────────────▶ published ──7 days──▶ deleted
//	   │  ▲                                      │
//	   │  └── the stream lost it, or a replay ───┘
//	   └──refused EVENT_MAX_ATTEMPTS times─▶ poison ──replay──▶ pending
//	                                           └──drop──▶ deleted
//
// A fault of the broker that affects all rows alike (no connection, no answer, no
// stream, no space) costs a row nothing; the relay waits and retries. Only a
// fault of the row itself counts as a refusal, and later rows do not wait for it.
//
// One relay at a time works on an outbox, so that events leave in the order of
// their rows. That order is not promised around a refusal, and transactions that
// overlap have no order among each other.
package outbox
