package logtext

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Duration is a duration that a line reports.
type Duration struct {
	Took time.Duration
	Line string
}

var durationExpr = regexp.MustCompile(`(?i)\b(?:took|duration|dur|latency|elapsed|rt|time|in|ms|query_time|request_time|response_time)"?[=:" ]+"?(\d+(?:\.\d+)?) ?(ms|milliseconds|seconds|s)\b`)

// delayExpr matches a delay until something happens, as opposed to the time that it took.
var delayExpr = regexp.MustCompile(`(?i)\b(?:retry\w*|reconnect\w*|restart\w*|again|next|sleep\w*|wait\w*|back-?off|expires?|try(?:ing)?) (?:\w+ )?in[=:" ]+"?\d`)

// Durations returns the request durations that lines report, the shortest first.
func Durations(sources []Source) []Duration {
	var all []Duration
	left := mostWeighed
	for _, s := range sources {
		for line := range strings.Lines(s.Text) {
			line = ends(line[:min(len(line), longest)])
			if !hasDuration(line) {
				continue
			}
			if left -= len(line); left < 0 {
				break // the next log's first line ends it, too
			}
			if delayExpr.MatchString(line) {
				continue
			}
			for _, m := range durationExpr.FindAllStringSubmatch(line, -1) {
				unit := "s"
				if strings.HasPrefix(strings.ToLower(m[2]), "m") {
					unit = "ms"
				}
				if d, err := time.ParseDuration(m[1] + unit); err == nil {
					all = append(all, Duration{d, strings.TrimSpace(line)})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Duration) int { return cmp.Compare(a.Took, b.Took) })
	return all
}

// hasDuration reports whether a line has a digit before an s or ms; other lines need no search.
func hasDuration(line string) bool {
	for i := 1; i < len(line); i++ {
		if c := line[i] | 0x20; (c == 's' || c == 'm') && (isDigit(line[i-1]) || i > 1 && line[i-1] == ' ' && isDigit(line[i-2])) {
			return true
		}
	}
	return false
}
