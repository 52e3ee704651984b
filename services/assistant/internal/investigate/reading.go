package investigate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/coverage"
	"github.com/mlp-platform/platform/services/assistant/internal/logfact"
	"github.com/mlp-platform/platform/services/assistant/internal/logtext"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question/report"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// Limits on the logs that one question reads as evidence.
const (
	evidencePods  = 20               // whose logs are read whole
	evidenceBytes = 10 << 20         // of all logs together
	evidenceTime  = 10 * time.Second // for all of them together
	// peekPods limits the pods whose last lines are read first, if there are too many to read whole.
	peekPods = 200
	// peekLines is the number of those last lines.
	peekLines = 60
)

// The reasons why logs were not read to their beginning.
var (
	cutByBytes = "one log is read up to some MB from its end"
	cutByPeek  = fmt.Sprintf("of many pods only the last %d lines are read, and more if those show trouble", peekLines)
	cutByTime  = fmt.Sprintf("reading stopped after %s", evidenceTime)
	cutByPods  = fmt.Sprintf("one question reads the logs of %d pods", evidencePods)
	cutByTotal = fmt.Sprintf("one question reads %d MB of logs", evidenceBytes>>20)
)

// spentLogs counts the log data that one question has read: the limits apply to all of its reads together.
type spentLogs struct {
	pods  map[string]bool // by namespace/name
	bytes int
	took  time.Duration
}

// logReader reads the logs of one topic within the limits of the question.
type logReader struct {
	*work
	topic *topic
	most  int // pods whose logs are read whole
	pods  map[string]bool
	logs  *coverage.Logs
	texts map[engine.Log]string
}

// readEvidence reads the logs of the pods of a topic, of all containers and of the run before a recent restart, within
// the limits.
func (w *work) readEvidence(ctx context.Context, t *topic) (logEvidence, error) {
	return w.readLogs(ctx, t, evidencePods)
}

// readLogs is readEvidence for at most some pods, within the question's limits. If there are more pods, it first reads
// their last lines, then the whole logs of those whose lines report trouble.
func (w *work) readLogs(ctx context.Context, t *topic, most int) (logEvidence, error) {
	wanted := t.view().LogSources(engine.Recent)
	r := &logReader{work: w, topic: t, most: most, pods: map[string]bool{}, logs: coverage.NewLogs(wanted), texts: map[engine.Log]string{}}
	switch {
	case t.logPeriod() > 0:
		r.logs.LimitTo("from the last " + report.FormatPeriod(t.within))
	case t.within > 0:
		r.logs.LimitTo("of whatever age")
	}
	if w.spent.pods == nil {
		w.spent.pods = map[string]bool{}
	}
	begin := time.Now()
	limited, cancel := context.WithTimeout(ctx, evidenceTime-w.spent.took)
	defer func() {
		cancel()
		w.spent.took += time.Since(begin)
	}()
	order := slices.Clone(wanted)
	if countPods(wanted) > most {
		r.peek(limited, wanted)
		order = r.suspiciousFirst(wanted)
	}
	for _, log := range order {
		if !r.logs.ReadWhole(log) && r.mayRead(limited, log) {
			r.read(limited, log, 0)
		}
		if ctx.Err() != nil {
			return logEvidence{}, ctx.Err()
		}
	}
	return r.evidence(wanted), nil
}

func countPods(logs []engine.Log) int {
	seen := map[string]bool{}
	for _, log := range logs {
		seen[log.Namespace+"/"+log.Pod] = true
	}
	return len(seen)
}

// peek reads the last lines of the running containers.
func (r *logReader) peek(limited context.Context, wanted []engine.Log) {
	seen := map[string]bool{}
	for _, log := range wanted {
		pod := log.Namespace + "/" + log.Pod
		if log.Previous || limited.Err() != nil || !seen[pod] && len(seen) == peekPods {
			continue
		}
		seen[pod] = true
		r.read(limited, log, peekLines)
	}
}

// suspiciousFirst orders logs by the trouble in their last lines; equal logs keep their order, in which unhealthy pods
// are first.
func (r *logReader) suspiciousFirst(wanted []engine.Log) []engine.Log {
	weight := map[engine.Log]int{}
	for log, text := range r.texts {
		groups, _ := logtext.Telling([]logtext.Source{{Pod: log.Pod, Container: log.Container, Text: text}})
		for _, g := range groups {
			if !g.Hint && !g.Over {
				weight[log] = 2
			}
		}
		if len(groups) > 0 {
			weight[log] = max(weight[log], 1)
		}
	}
	order := slices.Clone(wanted)
	slices.SortStableFunc(order, func(a, b engine.Log) int { return cmp.Compare(weight[b], weight[a]) })
	return order
}

// mayRead reports whether the limits allow reading a whole log, and records why not.
func (r *logReader) mayRead(limited context.Context, log engine.Log) bool {
	pod := log.Namespace + "/" + log.Pod
	why := ""
	switch {
	case limited.Err() != nil:
		why = cutByTime
	case r.spent.bytes >= evidenceBytes:
		why = cutByTotal
	case !r.pods[pod] && len(r.pods) == r.most, !r.spent.pods[pod] && len(r.spent.pods) == evidencePods:
		why = cutByPods
	}
	if why != "" {
		r.logs.Leave(log, why)
		return false
	}
	r.pods[pod], r.spent.pods[pod] = true, true
	return true
}

// read reads one log: its last lines, or with 0 as many as the tool returns.
func (r *logReader) read(limited context.Context, log engine.Log, tail int) {
	op := operation.Operation{Verb: operation.Logs, Kind: "pod", Names: []string{log.Pod}, Namespace: log.Namespace, Container: log.Container, Previous: log.Previous, Tail: tail}
	if within := r.topic.logPeriod(); within > 0 && !log.Previous {
		op.Since = within.String()
	}
	ctx := limited
	if tail == 0 {
		ctx = turn.WantWholeLog(limited)
	}
	out, err := r.tools.Call(ctx, operation.Normalize(op))
	switch {
	case err != nil && limited.Err() != nil:
		r.logs.Leave(log, cutByTime)
		return
	case err != nil:
		r.logs.Leave(log, err.Error())
		return
	}
	text := out.Whole
	if text == "" && !out.Empty {
		text = out.Text
	}
	if tail == 0 {
		r.spent.bytes += len(text)
	}
	r.texts[log] = text
	read := coverage.LogRead{Log: log}
	switch chosen := (logtext.Filter{}).Choose(text); {
	case tail > 0 && strings.Count(text, "\n") >= tail:
		read.Lines, read.From, read.Cut = chosen.All, chosen.First, cutByPeek
	case out.WholeTruncated:
		read.Lines, read.From, read.Cut = chosen.All, chosen.First, cutByBytes
	default:
		read.Lines = chosen.All
	}
	r.logs.Add(read)
}

// hasCompleted reports whether a log is that of an init container that succeeded: what it complained of is over.
func (t *topic) hasCompleted(log engine.Log) bool {
	for i := range t.snap.Pods {
		if pod := &t.snap.Pods[i]; pod.Namespace == log.Namespace && pod.Name == log.Pod {
			return slices.ContainsFunc(pod.Status.InitContainerStatuses, func(st corev1.ContainerStatus) bool {
				return !log.Previous && st.Name == log.Container && st.State.Terminated != nil && st.State.Terminated.ExitCode == 0
			})
		}
	}
	return false
}

// evidence returns the evidence in the logs, in the order requested.
func (r *logReader) evidence(wanted []engine.Log) logEvidence {
	e := logEvidence{spaces: map[string][]string{}, logs: r.logs}
	var completed []logtext.Source
	for _, log := range wanted {
		text, ok := r.texts[log]
		if !ok {
			continue
		}
		if !slices.Contains(e.spaces[log.Pod], log.Namespace) {
			e.spaces[log.Pod] = append(e.spaces[log.Pod], log.Namespace)
		}
		source := logtext.Source{Pod: log.Pod, Container: log.Container, Text: text}
		if r.topic.hasCompleted(log) {
			completed = append(completed, source)
			continue
		}
		e.sources = append(e.sources, source)
	}
	e.over, _ = logtext.Telling(completed)
	e.climbs = logfact.Climbs(e.sources)
	groups, _ := logtext.Telling(e.sources)
	for _, g := range groups {
		switch {
		case g.Over:
			e.over = append(e.over, g)
		case g.Hint:
			e.hints = append(e.hints, g)
		default:
			e.groups = append(e.groups, g)
		}
	}
	return e
}
