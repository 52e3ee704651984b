// Package logtext reads the logs of programs: it groups lines that differ in their values only, and
// finds those that tell of trouble and the hosts that they name. It takes all of it for data.
package logtext

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// Source is one log of a container.
type Source struct{ Pod, Container, Text string }

// Group is the lines of one template.
type Group struct {
	Template string
	Line     string // the first one, as written
	Before   string // the line before it, of the same log
	Count    int
	First    time.Time // zero where lines carry no time
	Last     time.Time
	Pods     []string
	severity int
}

// longest limits the part of a line that is examined.
const longest = 4 << 10

// severities are the words by which a line tells of trouble, the gravest first.
var severities = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\b` + wordlist.AnyOf("panic", "fatal", "traceback", "segfault", "out of memory", "no space left on device", "emerg", "crit(ical)?") + `\b`),
	regexp.MustCompile(`(?i)\b` + wordlist.AnyOf(
		"errors?", "err", "severe", "exception", "fail(ed|ure|ures|s)?", "refused", "denied", "unauthori[sz]ed", "forbidden", "unavailable", "unreachable", "no such host",
		"no route to host", "broken pipe", "reset by peer", "deadlock", "corrupt(ed)?", "cannot", "can't", "could not", "unable to", "too many (connections|open files|clients)", "expired", "rejected",
		"ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EHOSTUNREACH", "ENOTFOUND", "EPIPE", "ENOSPC",
	) + `\b|[A-Za-z]+(Error|Exception)\b`),
	regexp.MustCompile(`(?i)\b` + wordlist.AnyOf("warn(ing)?", "time ?out", "timed out", "deadline exceeded", "retry(ing)?", "slow", "throttl(ed|ing)", "backoff", "queue full") + `\b|\bstatus[=: "]+5\d\d\b|" 5\d\d \d`),
}

// klogExpr is the head of a line of the Kubernetes components: severity, month and day.
var klogExpr = regexp.MustCompile(`^(?:\S+Z )?([EF])(?:0[1-9]|1[0-2])[0-3]\d \d\d:\d\d:\d\d`)

// calmExprs are the phrases that count errors and have none, or name a field that is empty. The rest of
// the line may still tell of trouble. A number is a count only at the start of a word: "worker-0 errors"
// counts nothing.
var calmExprs = []*regexp.Regexp{
	regexp.MustCompile(`(?i)(?:^|[\s,;(])(?:0|no) (?:errors|failures|warnings)\b`),
	regexp.MustCompile(`(?i)\b(?:(?:errors|failed|failures|warnings)"?[=:] ?|error"?[=:])0(?:[\s,;)}\]"]|$)`),
	regexp.MustCompile(`(?i)\b(?:errors?|err|exception|failures?)"?[=:] ?(?:null|nil|none|<nil>|false|""|''|\[\]|\{\})(?:[\s,;)}\]]|$)`),
}

// Telling groups the lines that tell of trouble: the gravest first, then the most frequent. lines is
// how many lines there were at all.
func Telling(sources []Source) (groups []Group, lines int) {
	at := map[string]int{}
	for _, s := range sources {
		before := ""
		for line := range strings.Lines(s.Text) {
			line = strings.TrimSpace(line)
			if line == "" {
				continue
			}
			line = line[:min(len(line), longest)]
			lines++
			severity := severityOf(line)
			if severity == 0 {
				before = line
				continue
			}
			template := Template(line)
			i, known := at[template]
			if !known {
				i = len(groups)
				at[template] = i
				groups = append(groups, Group{Template: template, Line: line, Before: before, severity: severity})
			}
			groups[i].add(line, s.Pod)
			before = line
		}
	}
	slices.SortStableFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.severity, b.severity), cmp.Compare(b.Count, a.Count))
	})
	return groups, lines
}

func (g *Group) add(line, pod string) {
	g.Count++
	if at := timeOf(line); !at.IsZero() {
		if g.First.IsZero() || at.Before(g.First) {
			g.First = at
		}
		if at.After(g.Last) {
			g.Last = at
		}
	}
	if !slices.Contains(g.Pods, pod) {
		g.Pods = append(g.Pods, pod)
	}
}

// severityOf is 1 for the gravest lines; 0 tells of no trouble.
func severityOf(line string) int {
	if m := klogExpr.FindStringSubmatch(line); m != nil {
		return map[string]int{"F": 1, "E": 2}[m[1]]
	}
	for _, calm := range calmExprs {
		line = calm.ReplaceAllString(line, " ")
	}
	for i, expr := range severities {
		if expr.MatchString(line) {
			return i + 1
		}
	}
	return 0
}

// variable are the parts of a line that differ between lines of one template.
var variable = []struct {
	expr *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?`), "TIME"},
	{regexp.MustCompile(`\d\d:\d\d:\d\d(?:[.,]\d+)?`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F-]{22}\b`), "ID"},
	{regexp.MustCompile(`\b(?:0x)?[0-9a-f]*\d[0-9a-f]*[a-f][0-9a-f]{6,}\b|\b0x[0-9a-fA-F]+\b`), "ID"},
	{regexp.MustCompile(`\d+(?:\.\d+)?`), "N"},
}

// Template is a line without what differs between lines of its kind.
func Template(line string) string {
	for _, v := range variable {
		line = v.expr.ReplaceAllString(line, v.as)
	}
	return line
}

var timeExpr = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?`)

// timeOf is the time that a line carries, or zero. Times without a zone are taken for UTC.
func timeOf(line string) time.Time {
	text := strings.Replace(timeExpr.FindString(line), " ", "T", 1)
	if text == "" {
		return time.Time{}
	}
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at
	}
	at, err := time.Parse("2006-01-02T15:04:05", text)
	if err != nil {
		return time.Time{}
	}
	return at
}

// Host is a host that a line names; Port is empty where it names none.
type Host struct{ Name, Port string }

var hostExpr = regexp.MustCompile(`\b([a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*)(?::(\d{1,5}))?\b`)

// beforeHostExpr is what stands before a short host name: other words of a line only look like one.
var beforeHostExpr = regexp.MustCompile(`(?i)(?:://|@|\bhost(?:name)?["']?[=:] ?["']?|\b(?:lookup|dial(?:ing)?|connect(?:ing|ion)?)(?: (?:tcp|udp|to|with|server|host|at))* ["']?)$`)

// Hosts are the words of a line that may be hosts, with their ports. A name without a dot needs a port,
// or words before it that lead to a host. What they are, only the cluster knows.
func Hosts(line string) []Host {
	var hosts []Host
	line = timeExpr.ReplaceAllString(line, " ")
	for _, m := range hostExpr.FindAllStringSubmatchIndex(line, -1) {
		h := Host{Name: strings.ToLower(line[m[2]:m[3]])}
		if m[4] >= 0 {
			h.Port = line[m[4]:m[5]]
		}
		certain := h.Port != "" || strings.Contains(h.Name, ".") || beforeHostExpr.MatchString(line[max(0, m[0]-40):m[0]])
		if certain && !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

var durationExpr = regexp.MustCompile(`(?i)\b(?:took|duration|latency|elapsed|rt|time|in|after)[=:" ]+(\d+(?:\.\d+)?) ?(ms|milliseconds|s|seconds)\b`)

// Durations are the durations of requests that lines tell, sorted.
func Durations(sources []Source) []time.Duration {
	var all []time.Duration
	for _, s := range sources {
		for _, m := range durationExpr.FindAllStringSubmatch(s.Text, -1) {
			unit := "s"
			if strings.HasPrefix(strings.ToLower(m[2]), "m") {
				unit = "ms"
			}
			if d, err := time.ParseDuration(m[1] + unit); err == nil {
				all = append(all, d)
			}
		}
	}
	slices.Sort(all)
	return all
}
