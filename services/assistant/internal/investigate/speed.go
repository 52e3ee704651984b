package investigate

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/mlp-platform/platform/services/assistant/internal/logtext"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
)

// speed answers "slow": CPU usage against limits, durations in logs, and measured latency.
func (w *work) speed(ctx context.Context, a question.Ask, t *topic) error {
	var lines []string
	lines = append(lines, t.throttled()...)
	if all := logtext.Durations(t.logs); len(all) > 0 {
		lines = append(lines, fmt.Sprintf("Its logs contain %s: half are over %s, the longest is %s.", engine.CountNoun(len(all), "duration", "durations"), all[len(all)/2].Took, all[len(all)-1].Took.Round(time.Millisecond)))
		if slowest := all[len(all)-1]; slowest.Took >= time.Second {
			lines = append(lines, "The slowest is in "+engine.QuoteLine(slowest.Line)+".")
		}
	}
	if len(lines) > 0 {
		w.say("How fast it is:\n\n- " + strings.Join(lines, "\n- "))
	}
	if len(t.objects) == 0 || t.unmeasured {
		return nil
	}
	a.Intent = question.Latency
	_, err := w.measure(ctx, a, t)
	return err
}

// throttled names the containers that use nearly all of their CPU limit.
func (t *topic) throttled() []string {
	if t.snap.Usage == nil {
		return []string{"The metrics API is not there or could not be read, so whether a CPU limit slows it is not known."}
	}
	var lines []string
	v := t.view()
	nearest, share, unmeasured := "", int64(-1), 0
	for _, log := range v.LogSources(0) {
		spec := v.ContainerOf(log)
		if spec == nil {
			continue
		}
		limit, limited := spec.Resources.Limits[corev1.ResourceCPU]
		if !limited || limit.IsZero() {
			continue
		}
		used, ok := t.snap.Usage[log]
		if !ok {
			unmeasured++
			continue
		}
		uses := fmt.Sprintf("ontainer %s of pod %s uses %s of its CPU limit of %s", engine.QuoteCode(log.Container), engine.QuoteCode(log.Pod), resource.NewMilliQuantity(used.Cpu().MilliValue(), resource.DecimalSI), limit.String())
		of := 100 * used.Cpu().MilliValue() / limit.MilliValue()
		if of >= engine.NearCPULimit {
			lines = append(lines, "C"+uses+", so it is probably throttled.")
		}
		if of > share {
			nearest, share = uses, of
		}
	}
	switch {
	case len(lines) == 0 && nearest != "":
		lines = append(lines, "No container of "+t.subject()+" was at its CPU limit when it was measured last: c"+nearest+".")
	case len(lines) == 0 && unmeasured == 0:
		lines = append(lines, "No container of "+t.subject()+" has a CPU limit.")
	}
	if unmeasured > 0 {
		lines = append(lines, fmt.Sprintf("The usage of %s with a CPU limit has not been measured yet, so whether the limit slows them is not known.", engine.CountNoun(unmeasured, "container", "containers")))
	}
	return lines
}
