package registry

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/logtext"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/tool/table"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

type logSearchArguments struct {
	Namespace string `json:"namespace" jsonschema:"Namespace."`
	Kind      string `json:"kind,omitempty" jsonschema:"Kind: pod, deployment, statefulset, daemonset, job or cronjob; left out: pod."`
	Name      string `json:"name" jsonschema:"Name of the pod or workload."`
	Container string `json:"container,omitempty" jsonschema:"Container; left out: all."`
	Contains  string `json:"contains,omitempty" jsonschema:"Only messages with this text, without regard to case."`
	Since     string `json:"since,omitempty" jsonschema:"How far back, such as 15m; at most 24h; left out: as far as can be read."`
	Previous  bool   `json:"previous,omitempty" jsonschema:"The container before its last restart."`
	Limit     int    `json:"limit,omitempty" jsonschema:"Most messages to return; left out: 30."`
}

// LogStatistics counts the messages of logs.
type LogStatistics struct {
	// LinesRead is how many lines were read, and LinesMatched how many of them fit the search.
	LinesRead    int          `json:"lines_read"`
	LinesMatched int          `json:"lines_matched"`
	Messages     []LogMessage `json:"messages"`
	// OtherMessages is how many further messages there are.
	OtherMessages int `json:"other_messages"`
	// NotRead describes the part of the logs that was not read; empty: none.
	NotRead string `json:"not_read"`
}

// LogMessage is the lines that differ in their times, ids and numbers only.
type LogMessage struct {
	Template string     `json:"template"`
	Example  string     `json:"example"`
	Count    int        `json:"count"`
	First    *time.Time `json:"first,omitempty" jsonschema:"Time of the first line, if lines carry one."`
	Last     *time.Time `json:"last,omitempty" jsonschema:"Time of the last line, if lines carry one."`
	// Numbers are those in the lines, by their place in the template.
	Numbers []LogNumber          `json:"numbers,omitempty"`
	At      *operation.Reference `json:"at,omitempty" jsonschema:"The first of the lines, counted in the lines read; left out where several logs were read."`
}

// LogNumber summarises the numbers at one place in the lines.
type LogNumber struct {
	First float64 `json:"first"`
	Last  float64 `json:"last"`
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
}

const (
	standardMessages = 30
	maxMessages      = 200
	maxNumbers       = 6 // of one message
	maxExample       = 400
)

// logSearch reads one log or those of a workload's pods whole, and counts.
func logSearch(ctx context.Context, box turn.Toolbox, a logSearchArguments) (Result, error) {
	if a.Limit < 0 || a.Limit > maxMessages {
		return Result{}, operation.Refuse(operation.InvalidArgument, "limit", "limit must be 1 to %d.", maxMessages)
	}
	op := operation.Normalize(operation.Operation{
		Verb: operation.Logs, Kind: cmp.Or(a.Kind, "pod"), Names: []string{a.Name}, Namespace: a.Namespace, Container: a.Container, Since: a.Since, Previous: a.Previous,
	})
	if err := op.Validate(); err != nil {
		return Result{}, err
	}
	out, err := box.Call(turn.WantWholeLog(ctx), op)
	if err != nil {
		return Result{}, err
	}
	stats := &LogStatistics{Messages: []LogMessage{}}
	var at *operation.Reference
	if len(out.References) == 1 {
		at = &out.References[0]
	}
	if out.WholeTruncated {
		stats.NotRead = "lines before the oldest that was read, or logs of further containers; name a container or a period"
	}
	stats.count(out.Whole, strings.ToLower(a.Contains), at)
	most := cmp.Or(a.Limit, standardMessages)
	if len(stats.Messages) > most {
		stats.OtherMessages = len(stats.Messages) - most
		stats.Messages = stats.Messages[:most]
	}
	result := shown(stats.text(a), stats, out.References...)
	result.Truncated = result.Truncated || out.WholeTruncated || stats.OtherMessages > 0
	return result, nil
}

// count groups the lines of a log by what does not differ between them, the most frequent first.
func (s *LogStatistics) count(log, contains string, at *operation.Reference) {
	index := map[string]int{}
	for line := range strings.Lines(log) {
		s.LinesRead++
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" || contains != "" && !strings.Contains(strings.ToLower(line), contains) {
			continue
		}
		s.LinesMatched++
		template := logtext.Template(line)
		i, known := index[template]
		if !known {
			i = len(s.Messages)
			index[template] = i
			m := LogMessage{Template: redact.Text(table.Line(template, maxExample)), Example: redact.Text(table.Line(line, maxExample))}
			if at != nil {
				first := *at
				first.Line = s.LinesRead
				m.At = &first
			}
			s.Messages = append(s.Messages, m)
		}
		s.Messages[i].add(line)
	}
	slices.SortStableFunc(s.Messages, func(a, b LogMessage) int { return cmp.Compare(b.Count, a.Count) })
}

var (
	stampExpr  = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?|\d\d:\d\d:\d\d(?:[.,]\d+)?`)
	numberExpr = regexp.MustCompile(`\b\d+(?:\.\d+)?`)
)

func (m *LogMessage) add(line string) {
	m.Count++
	if at := parseStamp(stampExpr.FindString(line)); !at.IsZero() {
		if m.First == nil || at.Before(*m.First) {
			m.First = timePointer(at)
		}
		if m.Last == nil || at.After(*m.Last) {
			m.Last = timePointer(at)
		}
	}
	for i, text := range numberExpr.FindAllString(stampExpr.ReplaceAllString(line, ""), maxNumbers) {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			continue
		}
		if i >= len(m.Numbers) {
			m.Numbers = append(m.Numbers, LogNumber{n, n, n, n})
			continue
		}
		at := &m.Numbers[i]
		at.Last, at.Least, at.Most = n, min(at.Least, n), max(at.Most, n)
	}
}

// parseStamp reads the time of a line. A timestamp without a date is ignored; without a zone it is UTC.
func parseStamp(text string) time.Time {
	text = strings.Replace(text, " ", "T", 1)
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at
		}
	}
	return time.Time{}
}

func (s *LogStatistics) text(a logSearchArguments) string {
	matched := ""
	if a.Contains != "" {
		matched = fmt.Sprintf(", %d with %s", s.LinesMatched, engine.QuoteCode(a.Contains))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s read%s.\n", engine.CountNoun(s.LinesRead, "line", "lines"), matched)
	if s.NotRead != "" {
		b.WriteString("Not read: " + s.NotRead + ".\n")
	}
	for _, m := range s.Messages {
		fmt.Fprintf(&b, "%d× %s", m.Count, m.Example)
		if m.First != nil {
			fmt.Fprintf(&b, "  (first %s, last %s)", formatMoment(m.First), formatMoment(m.Last))
		}
		for _, n := range m.Numbers {
			if m.Count > 1 && n.Least != n.Most {
				fmt.Fprintf(&b, "  [%v to %v, at last %v]", n.Least, n.Most, n.Last)
			}
		}
		b.WriteString("\n")
	}
	if s.OtherMessages > 0 {
		fmt.Fprintf(&b, "[%d other messages are left out; raise limit or give contains]\n", s.OtherMessages)
	}
	return b.String()
}
