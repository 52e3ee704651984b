// Package alert keeps what is wrong right now. Sources say what fires; the
// leader compares that with the table:
//
//	(none) → firing    a source names it: row, event alert.firing
//	firing → firing    it names it again with another severity, title or label: row, event alert.firing
//	firing → (none)    it names it no more: row ended, event alert.resolved
//
// Row and event are one transaction under the source's lock, so each change is
// told exactly once, whoever finds it. Nothing is acknowledged here: that is the
// reader's own matter.
package alert
