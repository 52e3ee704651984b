// Package stream sends the platform's events to browsers as server-sent events.
//
// Each replica reads the stream PLATFORM with its own consumer (feed), encodes an event once, keeps the newest
// (history) and queues it for every client that may see it (hub). A client is one request (Serve) with a bounded
// queue: one that reads too slowly loses its oldest events, is sent the number lost, and never slows the others.
//
// The id of an event is its sequence in the stream, the same on every replica, so a client can resume on any. States
// of a replica: down (503; clients poll) → open, once all events in the broker that belong to the history have been
// read → down, when the broker has been away for longer than BusGrace; every client then gets bye bus_unavailable.
// Draining is final.
package stream
