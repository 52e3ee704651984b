// Package alert records the alerts that fire now. Sources report what fires; the
// leader compares that with the table:
//
//	(none) → firing    the source names it: row, event alert.firing
//	firing → firing    it names it with another severity: row, event alert.firing
//	firing → (none)    it names it no more: row, event alert.resolved
//
// Row and event are written in one transaction under a lock of the source, so each change is published once, whichever
// replica finds it. Each fact carries the time at which it was true, and one older than the table's row changes
// nothing: a slow reading does not restore an alert that an event has since ended. Acknowledgement is not handled here;
// that is up to the reader.
package alert
