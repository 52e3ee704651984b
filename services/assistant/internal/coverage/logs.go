package coverage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// mostLogGaps limits the logs that are named individually.
const mostLogGaps = 3

// LogRead describes the part of one log that was read.
type LogRead struct {
	engine.Log
	Lines int
	From  time.Time // of the first line that was read; zero: unknown
	Cut   string    // why older lines were not read, such as "the answer reads 10 MB at most"; empty: it was read to its beginning
}

// Logs records which logs belong to a subject and how much of each was read. Each is a gap until it is read.
type Logs struct {
	wanted []engine.Log
	read   []LogRead
	left   map[engine.Log]string // the reason why it was not read
	period string                // the period that the logs were limited to, such as "10m"; empty: none
}

// NewLogs starts a record of the logs that belong to a subject.
func NewLogs(wanted []engine.Log) *Logs {
	return &Logs{wanted: wanted, left: map[engine.Log]string{}}
}

// LimitTo records that the question covers only the lines of a period.
func (l *Logs) LimitTo(period string) { l.period = period }

// Add records a log that was read.
func (l *Logs) Add(r LogRead) {
	if at := slices.IndexFunc(l.read, func(have LogRead) bool { return have.Log == r.Log }); at >= 0 {
		l.read[at] = r
		return
	}
	l.read = append(l.read, r)
}

// Leave records the reason why a log was not read.
func (l *Logs) Leave(log engine.Log, why string) { l.left[log] = why }

// ReadWhole reports whether a log was read to its beginning.
func (l *Logs) ReadWhole(log engine.Log) bool {
	return slices.ContainsFunc(l.read, func(r LogRead) bool { return r.Log == log && r.Cut == "" })
}

// Read returns the number of logs that were read, and of their pods.
func (l *Logs) Read() (logs, pods int) {
	seen := map[string]bool{}
	for _, r := range l.read {
		seen[r.Namespace+"/"+r.Pod] = true
	}
	return len(l.read), len(seen)
}

// None reports whether logs were wanted and none was read.
func (l *Logs) None() bool { return len(l.wanted) > 0 && len(l.read) == 0 }

// Complete reports whether every log was read to its beginning, or for the period asked about.
func (l *Logs) Complete() bool { return len(l.Gaps()) == 0 }

// Gaps lists the logs that were not read and the missing parts of others; several with one reason form one gap.
func (l *Logs) Gaps() []Gap {
	if l == nil {
		return []Gap{{"the logs of the pods, which are read for one namespace or workload", "kubectl logs POD -n NAMESPACE --all-containers"}}
	}
	var gaps []Gap
	unread := map[string][]engine.Log{}
	cut := map[string][]LogRead{}
	var reasons, cuts []string
	for _, log := range l.wanted {
		at := slices.IndexFunc(l.read, func(r LogRead) bool { return r.Log == log })
		switch {
		case at < 0:
			why := l.left[log]
			if unread[why] == nil {
				reasons = append(reasons, why)
			}
			unread[why] = append(unread[why], log)
		case l.read[at].Cut != "":
			why := l.read[at].Cut
			if cut[why] == nil {
				cuts = append(cuts, why)
			}
			cut[why] = append(cut[why], l.read[at])
		}
	}
	for _, why := range reasons {
		gaps = append(gaps, unreadGaps(unread[why], why)...)
	}
	for _, why := range cuts {
		gaps = append(gaps, cutGaps(cut[why], why)...)
	}
	return gaps
}

func unreadGaps(logs []engine.Log, why string) []Gap {
	if why != "" {
		why = " (" + why + ")"
	}
	if len(logs) > mostLogGaps {
		return []Gap{{fmt.Sprintf("%d logs%s, among them that of %s", len(logs), why, title(logs[0])), Command(logs[0])}}
	}
	var gaps []Gap
	for _, log := range logs {
		gaps = append(gaps, Gap{"the log of " + title(log) + why, Command(log)})
	}
	return gaps
}

func cutGaps(logs []LogRead, why string) []Gap {
	if len(logs) > mostLogGaps {
		return []Gap{{fmt.Sprintf("the older lines of %d logs (%s), among them that of %s", len(logs), why, title(logs[0].Log)), Command(logs[0].Log)}}
	}
	var gaps []Gap
	for _, r := range logs {
		before := fmt.Sprintf("what is older than the last %s", engine.CountNoun(r.Lines, "line", "lines"))
		if !r.From.IsZero() {
			before = "what is older than " + r.From.UTC().Format(time.DateTime)
		}
		gaps = append(gaps, Gap{fmt.Sprintf("%s in the log of %s (%s)", before, title(r.Log), why), Command(r.Log)})
	}
	return gaps
}

// NotLookedAt returns a paragraph that lists the gaps; empty if there are none.
func (l *Logs) NotLookedAt() string { return describeGaps(l.Gaps()) }

// title returns a log's title.
func title(log engine.Log) string {
	text := fmt.Sprintf("pod %s, container %s", engine.QuoteCode(log.Pod), engine.QuoteCode(log.Container))
	if log.Previous {
		text += ", the run before its restart"
	}
	return text
}

// Command returns the kubectl line that shows a whole log.
func Command(log engine.Log) string {
	line := fmt.Sprintf("kubectl logs %s -c %s -n %s", log.Pod, log.Container, log.Namespace)
	if log.Previous {
		line += " --previous"
	}
	return line
}

// mostReasons limits the reasons in a summary.
const mostReasons = 3

// Summary describes the logs that were read, as a sentence; empty if no log was wanted.
func (l *Logs) Summary() string {
	if len(l.wanted) == 0 {
		return ""
	}
	lines := 0
	for _, r := range l.read {
		lines += r.Lines
	}
	logs, pods := l.Read()
	text := fmt.Sprintf("Read %s from %s of %s", engine.CountNoun(lines, "line", "lines"), engine.CountNoun(logs, "log", "logs"), engine.CountNoun(pods, "pod", "pods"))
	if l.period != "" {
		text += ", " + l.period
	}
	unread := map[string]int{}
	var reasons []string
	for _, log := range l.wanted {
		if !slices.ContainsFunc(l.read, func(r LogRead) bool { return r.Log == log }) {
			why := l.left[log]
			if unread[why]++; unread[why] == 1 {
				reasons = append(reasons, why)
			}
		}
	}
	for i, why := range reasons {
		if i == mostReasons { // each may name its log
			rest := 0
			for _, why := range reasons[i:] {
				rest += unread[why]
			}
			text += fmt.Sprintf("; %s for similar reasons", engine.CountNoun(rest, "more log was not read", "more logs were not read"))
			break
		}
		text += "; " + engine.CountNoun(unread[why], "log was", "logs were") + " not read"
		if why != "" {
			text += ": " + strings.TrimSuffix(why, ".")
		}
	}
	return text + "."
}
