// Package logfact finds facts that no single line of a log shows: rising numbers, and the limit next to them that they
// reach. It treats all of a log as data.
package logfact

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/logtext"
)

const (
	leastSamples = 5    // minimum lines of one form for a trend
	leastGrowth  = 1.5  // minimum growth, as a factor, near a limit
	freeGrowth   = 3.0  // minimum growth, as a factor, without a limit
	nearLimit    = 0.85 // fraction of the limit
	mostForms    = 4000 // maximum forms of lines tracked in one log
	mostNumbers  = 12   // maximum numbers in one line
	longest      = 1 << 10
)

// growing are words for quantities that should not grow without bound. A rise without a limit is reported only next to
// one of them.
var growing = strings.Fields(`memory mem heap rss used usage queue queued backlog pending lag depth waiting connections conns
	open fds descriptors handles goroutines threads sessions inflight in-flight latency size watches`)

// Climb is a number that rises through a log.
type Climb struct {
	Pod, Container string
	Line           string // the last line with it
	First, Last    float64
	Limit          float64 // a constant number next to it that it approaches; 0: none
	Count          int
	From, To       time.Time // zero if lines have no time
}

// Climbs returns the rising numbers, those near a limit first.
func Climbs(sources []logtext.Source) []Climb {
	var all []Climb
	for _, s := range sources {
		forms := map[string]*form{}
		var order []*form
		for line := range strings.Lines(s.Text) {
			line = strings.TrimRight(line, " \r\n")
			key, numbers := split(line[:min(len(line), longest)])
			if len(numbers) == 0 || len(numbers) > mostNumbers {
				continue
			}
			f := forms[key]
			if f == nil {
				if len(forms) == mostForms {
					continue
				}
				f = &form{key: key, first: line, columns: make([]column, len(numbers))}
				forms[key] = f
				order = append(order, f)
			}
			f.add(line, numbers)
		}
		for _, f := range order {
			if c, ok := f.climb(); ok {
				c.Pod, c.Container = s.Pod, s.Container
				all = append(all, c)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Climb) int {
		return cmp.Or(-cmp.Compare(min(a.Limit, 1), min(b.Limit, 1)), -cmp.Compare(a.Count, b.Count))
	})
	return all
}

// form groups lines that differ only in their numbers.
type form struct {
	key         string
	first, last string
	count       int
	columns     []column
}

// column is one number of the lines of a form.
type column struct {
	first, last, least, most float64
	rises, falls             int
}

func (f *form) add(line string, numbers []float64) {
	f.last = line
	f.count++
	for i, n := range numbers {
		c := &f.columns[i]
		if f.count == 1 {
			*c = column{first: n, last: n, least: n, most: n}
			continue
		}
		switch {
		case n > c.last:
			c.rises++
		case n < c.last:
			c.falls++
		}
		c.last, c.least, c.most = n, min(c.least, n), max(c.most, n)
	}
}

// climb returns the rising number of the form, if there is one.
func (f *form) climb() (Climb, bool) {
	if f.count < leastSamples {
		return Climb{}, false
	}
	for _, c := range f.columns {
		growth := leastGrowth
		if c.last < c.most || 10*c.falls > f.count || c.rises < leastSamples-1 {
			continue
		}
		limit := f.limitOf(c)
		if limit == 0 {
			growth = freeGrowth
			if c.falls > 0 || f.count < 2*leastSamples || !names(f.key, growing) {
				continue
			}
		}
		if c.first > 0 && c.last < growth*c.first {
			continue
		}
		return Climb{Line: f.last, First: c.first, Last: c.last, Limit: limit, Count: f.count, From: logtext.TimeOf(f.first), To: logtext.TimeOf(f.last)}, true
	}
	return Climb{}, false
}

// limitOf returns a constant number of the form that a column approaches, or 0.
func (f *form) limitOf(c column) float64 {
	for _, other := range f.columns {
		if other.least == other.most && other.most >= c.most && c.last >= nearLimit*other.most && other.most > 1 {
			return other.most
		}
	}
	return 0
}

func names(key string, words []string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(key), func(r rune) bool { return (r < 'a' || r > 'z') && r != '-' }), func(word string) bool {
		return slices.Contains(words, word)
	})
}

// split extracts the numbers of a line. Dates, addresses, versions and digits within words do not count.
func split(line string) (key string, numbers []float64) {
	var b strings.Builder
	for i := 0; i < len(line); {
		if !isDigit(line[i]) {
			b.WriteByte(line[i])
			i++
			continue
		}
		end := i
		for end < len(line) && (isDigit(line[end]) || strings.IndexByte(".:-T+", line[end]) >= 0) {
			end++
		}
		for end > i && !isDigit(line[end-1]) {
			end--
		}
		token := line[i:end]
		n, err := strconv.ParseFloat(token, 64)
		switch {
		case i > 0 && (isLetter(line[i-1]) || line[i-1] == '-' && i > 1 && isLetter(line[i-2])):
			b.WriteString(token) // part of a name such as p99 or worker-3
		case err != nil:
			b.WriteByte('#')
		default:
			b.WriteByte('#')
			numbers = append(numbers, n)
		}
		i = end
	}
	return b.String(), numbers
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
