// Package alert keeps what is wrong right now. Sources say what fires; the
// leader compares that with the table:
//
//	(none) → firing    the source names it: row, event alert.firing
//	firing → firing    it names it with another severity: row, event alert.firing
//	firing → (none)    it names it no more: row, event alert.resolved
//
// Row and event are one transaction under a lock of the source, so each change
// is told once, whoever finds it. A fact has the time at which it was true, and
// one that is older than what the table shows changes nothing: a slow reading
// does not bring back what an event has ended meanwhile. Nothing is acknowledged
// here: that is the reader's own matter.
package alert
