package cli

import (
	"time"

	"github.com/mlp-platform/platform/libs/cli/fault"
)

// parseTime reads a time as people write it: RFC 3339, a day, a day and time of day (UTC), a word, or how long ago (90m, 12h,
// 30d, 4w).
func parseTime(s string, now time.Time) (time.Time, error) {
	today := now.UTC().Truncate(24 * time.Hour)
	switch s {
	case "now":
		return now, nil
	case "today":
		return today, nil
	case "yesterday":
		return today.AddDate(0, 0, -1), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02", "2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	if d, err := parseWindow(s); err == nil {
		return now.Add(-d), nil
	}
	return time.Time{}, fault.Usage("%q is not a valid time", s).WithHint("write 2026-11-20T08:00:00Z, 2026-11-20, now, today, yesterday, or how long ago: 90m, 12h, 30d, 4w")
}

// parseWindow reads a span: 90m, 12h, 30d, 4w; a bare number is days.
func parseWindow(s string) (time.Duration, error) {
	units := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	unit, digits := 24*time.Hour, s
	if n := len(s); n > 0 {
		if u, ok := units[s[n-1]]; ok {
			unit, digits = u, s[:n-1]
		}
	}
	n := 0
	for _, r := range digits {
		if r < '0' || r > '9' || n > 100_000 {
			return 0, fault.Usage("%q is not a valid duration", s).WithHint("write 90m, 12h, 30d or 4w")
		}
		n = n*10 + int(r-'0')
	}
	if n == 0 {
		return 0, fault.Usage("%q is not a valid duration", s).WithHint("write 90m, 12h, 30d or 4w")
	}
	if limit := 100 * 365 * 24 * time.Hour; n > int(limit/unit) {
		return 0, fault.Usage("%q is longer than a hundred years", s)
	}
	return time.Duration(n) * unit, nil
}
