package wire

import "time"

// UTC converts t to UTC: the database driver returns the local zone.
func UTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// OptionalText returns nil for an empty string.
func OptionalText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Deref returns what p points to, or the zero value.
func Deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
