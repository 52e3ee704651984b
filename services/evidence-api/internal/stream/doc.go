// Package stream sends the event log to those who follow it.
//
// While streams are open, one tailer watches the store's change counter, reads new events in batches, encodes each
// once and wakes the streams. They all take their frames from the same short window of the newest events. A stream
// that is behind the window, because it requested history or reads slowly, reads its own batches from the store until
// it has caught up.
//
// A stream's position is a sequence, not a queue: nothing is kept for it, none can overflow, and no event falls
// between history and live events. A stream costs one batch while it reads history and one write's buffer.
//
//	open -> retry line -> (history | window | wait, heartbeat)* -> marker -> end
//
// It ends with a marker after its longest time, when the server shuts down, or
// when the store fails; without one when the peer left or a write took too long.
package stream
