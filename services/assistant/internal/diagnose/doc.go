// Package diagnose answers one question about a recorded cluster on a terminal: no database, no listener, no write. It
// also scores such answers against recordings whose cause is known.
package diagnose
