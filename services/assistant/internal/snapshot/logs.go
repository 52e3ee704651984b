package snapshot

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

const (
	logLimit = 15 * time.Second
	logLines = 100
	logBytes = 64 << 10 // of one log
)

// logs reads the logs that add information. One that cannot be read is skipped; the finding on its container then rests
// on its state.
func (r *reading) logs(ctx context.Context, show Show) {
	ctx, cancel := context.WithTimeout(ctx, logLimit)
	defer cancel()
	wanted := slices.DeleteFunc(r.into.Wants(), func(l engine.Log) bool {
		return l.Pod == "" || r.namespace != "" && l.Namespace != r.namespace // the DNS servers, read in addition
	})
	type result struct {
		text string
		err  error
	}
	results := make([]chan result, len(wanted))
	var reading sync.WaitGroup
	defer reading.Wait()
	for i, want := range wanted {
		results[i] = make(chan result, 1)
		reading.Go(func() {
			r.slots <- struct{}{}
			defer func() { <-r.slots }()
			text, err := r.tail(ctx, want)
			results[i] <- result{text, err}
		})
	}
	r.into.Logs = map[engine.Log]string{}
	for i, want := range wanted {
		done := show(operation.Operation{
			Verb: operation.Logs, Kind: "pod", Names: []string{want.Pod}, Namespace: want.Namespace, Container: want.Container, Previous: want.Previous, Tail: logLines,
		})
		got := <-results[i]
		if got.err != nil {
			done(turn.Output{}, cluster.Fail(got.err))
			continue
		}
		r.into.Logs[want] = got.text
		shown := got.text
		if shown == "" {
			shown = "The log is empty.\n"
		}
		done(turn.Output{Text: shown, Untrusted: []string{got.text}}, nil)
	}
}

// tail reads the end of one log.
func (r *reading) tail(ctx context.Context, l engine.Log) (string, error) {
	lines := int64(logLines)
	stream, err := r.cluster.Typed().CoreV1().Pods(l.Namespace).GetLogs(l.Pod, &corev1.PodLogOptions{Container: l.Container, Previous: l.Previous, TailLines: &lines}).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer stream.Close() //nolint:errcheck // it was only read
	// The last bytes of the last lines: a crash gives its reason at the end.
	kept := make([]byte, 0, 2*logBytes)
	chunk := make([]byte, 16<<10)
	for {
		n, err := stream.Read(chunk)
		if kept = append(kept, chunk[:n]...); len(kept) > logBytes {
			kept = append(kept[:0], kept[len(kept)-logBytes:]...)
		}
		if err == io.EOF {
			return redact.Text(strings.ToValidUTF8(string(kept), "\uFFFD")), nil
		}
		if err != nil {
			return "", err
		}
	}
}
