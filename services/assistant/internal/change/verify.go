package change

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// The interval between two reads grows from the first to the last.
const (
	pollFirst = 200 * time.Millisecond
	pollLast  = 2 * time.Second
)

// observation is the state of one object as read after a write.
type observation struct {
	text string
	// settled means that it is as wanted, or will not become so.
	settled bool
}

// Verify implements action.Cluster. It reports the state that it read, rather than inferring it from the calls.
func (s *Service) Verify(ctx context.Context, a action.Action) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Config.Verify)
	defer cancel()
	type job struct {
		e operation.Expanded
		t operation.Target
	}
	var jobs []job
	for _, e := range a.Observed {
		for _, t := range e.Targets {
			jobs = append(jobs, job{e, t})
		}
	}
	seen := make([]observation, len(jobs))
	for pause := pollFirst; ; pause = min(2*pause, pollLast) {
		g, round := errgroup.WithContext(ctx)
		g.SetLimit(atOnce)
		for i, j := range jobs {
			if !seen[i].settled {
				g.Go(func() error {
					now, err := s.observe(round, j.e, j.t)
					if err == nil {
						seen[i] = now
					}
					return err
				})
			}
		}
		err := g.Wait()
		if err != nil && ctx.Err() == nil {
			return "", cluster.Fail(err)
		}
		text, settled := describeObservations(seen)
		if settled {
			return text, nil
		}
		if waitFor(ctx, pause) != nil {
			if text == "" {
				return "", errors.Join(err, ctx.Err())
			}
			return fmt.Sprintf("%s This is as seen %s after the write.", text, s.Config.Verify), nil
		}
	}
}

// describeObservations describes the observations: all for a few objects, only the exceptions for
// many.
func describeObservations(seen []observation) (text string, settled bool) {
	var b strings.Builder
	done, open := 0, 0
	for _, v := range seen {
		if v.settled {
			done++
		}
		if v.text == "" || len(seen) > maxTold && v.settled {
			continue
		}
		if open++; open <= maxTold {
			b.WriteString(v.text + " ")
		}
	}
	text = strings.TrimSpace(b.String())
	if len(seen) > maxTold {
		text = strings.TrimSpace(fmt.Sprintf("%d of %d objects are as wanted. %s", done, len(seen), text))
	}
	return text, done == len(seen)
}
