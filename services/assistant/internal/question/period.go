package question

import (
	"strconv"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

var (
	periodExpr = Pattern(`\b(?:last|past|previous|since|within the last|for the last)\s+(?:(\d+|an?|one|two|three|four|five|six|ten|few)\s*)?` +
		`(seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|hr|h|days?|d|weeks?|w)\b`)
	agoExpr = Pattern(`\b(\d+|an?|one|two|three|few)\s*(minutes?|mins?|hours?|hrs?|days?) ago\b`)
	dayExpr = Pattern(`\b` + wordlist.AnyOf("today", "since yesterday", "yesterday", "tonight", "this (morning|afternoon|evening)", "overnight", "this week") + `\b`)
)

var units = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}

// few is the number that "a few hours" means.
const few = 3

// periodOf returns the period before now that a sentence mentions, or 0.
func periodOf(low string) time.Duration {
	m := periodExpr.FindStringSubmatch(low)
	if m == nil {
		m = agoExpr.FindStringSubmatch(low)
	}
	if m != nil {
		return time.Duration(countOf(m[1])) * units[m[2][0]]
	}
	switch day := dayExpr.FindString(low); day {
	case "":
		return 0
	case "this week":
		return 7 * 24 * time.Hour
	case "yesterday", "since yesterday":
		return 48 * time.Hour
	}
	return 24 * time.Hour
}

func countOf(word string) int {
	if n, err := strconv.Atoi(word); err == nil {
		return min(n, 10000)
	}
	if n := numbers[word]; n > 0 {
		return int(n)
	}
	if word == "few" {
		return few
	}
	return 1
}

// otherTimeExpr matches times that periodOf does not read: times of day, and names of days.
var otherTimeExpr = Pattern(`\b(since|after|before|until|around|between|at|from) (about |around |last )?(\d{1,2}:\d{2}(:\d{2})?( ?(am|pm))?( and \d{1,2}:\d{2})?|\d{1,2} ?(am|pm)|noon|midnight|lunch|breakfast|dinner|monday|tuesday|wednesday|thursday|friday|saturday|sunday|night|\d{4}-\d{2}-\d{2})\b`)

// unreadTimeOf returns a time range in a sentence that does not limit the answer, or "".
func unreadTimeOf(low string) string {
	if periodOf(low) > 0 {
		return ""
	}
	return otherTimeExpr.FindString(low)
}
