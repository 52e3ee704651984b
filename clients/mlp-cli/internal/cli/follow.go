package cli

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v2"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/mlp-platform/platform/clients/go/controlplane"
	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
)

// pollEvery is how often a command that follows asks again.
const pollEvery = 500 * time.Millisecond

func followFlag(usage string) cli.Flag {
	return &cli.BoolFlag{Name: "follow", Usage: usage}
}

// poll calls ask until it reports the end. The control plane may be restarting while what it started continues, so up
// to 60 consecutive failures are tolerated; a refusal ends the polling, since it is permanent.
func poll(ctx context.Context, ask func() (ended bool, err error)) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	failures := 0
	for {
		ended, err := ask()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			if failures++; failures > 60 || isRefusal(err) {
				return err
			}
		case ended:
			return nil
		default:
			failures = 0
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// isRefusal reports whether the error is a 4xx answer other than 429.
func isRefusal(err error) bool {
	status := fault.From(err).Status
	return status/100 == 4 && status != http.StatusTooManyRequests
}

// follow polls a run to its end, then prints doc with how it ended. A run that did not complete is an error.
func (e *Env) follow(ctx context.Context, cp *remote, doc map[string]any, id string) error {
	show, stop := e.spinner(ctx, "run "+id)
	run, err := e.waitForRun(ctx, cp, id, show)
	stop()
	if errors.Is(err, context.Canceled) {
		return fault.New("interrupted", "stopped watching; run %s continues", id).WithHint("cancel it with: mlp runs cancel %s", id)
	}
	if err != nil {
		return err
	}
	doc["flow_run_id"] = id
	doc["state"], doc["model_version"], doc["tracker_run_id"] = run.StateType, run.ModelVersion, run.TrackerRunId
	if !completed(run) {
		return fault.New("run_failed", "run %s ended %s", id, derefString(run.StateType)).WithHint("see its log: mlp runs logs %s", id)
	}
	return e.done(doc, "run %s completed; version %s registered", id, derefString(run.ModelVersion))
}

// followCancelled waits until a run that was cancelled has ended. It may have completed before the cancellation came.
func (e *Env) followCancelled(ctx context.Context, doc map[string]any, id string) error {
	r, err := e.Config()
	if err != nil {
		return err
	}
	show, stop := e.spinner(ctx, "run "+id)
	run, err := e.waitForRun(ctx, e.controlPlane(r), id, show)
	stop()
	if errors.Is(err, context.Canceled) {
		return fault.New("interrupted", "stopped watching; run %s is being cancelled", id).WithHint("see it with: mlp runs show %s", id)
	}
	if err != nil {
		return err
	}
	doc["state"] = run.StateType
	return e.done(doc, "run %s ended %s", id, derefString(run.StateType))
}

func completed(run controlplane.RunStatus) bool {
	return run.StateType != nil && *run.StateType == "COMPLETED"
}

// waitForRun returns a run when it has ended, and shows its states on the way.
func (e *Env) waitForRun(ctx context.Context, cp *remote, id string, show func(state string)) (run controlplane.RunStatus, err error) {
	err = poll(ctx, func() (bool, error) {
		var now controlplane.RunStatus
		if err := cp.get(ctx, "/retrain/"+escapeSegment(id), &now); err != nil {
			return false, err
		}
		if run = now; run.StateType != nil {
			show(output.Clean(*run.StateType))
		}
		return run.IsTerminal, nil
	})
	return run, err
}

// spinner shows the state of the followed item on stderr: on a terminal in place, else a line for each change. stop
// removes it.
func (e *Env) spinner(ctx context.Context, what string) (show func(state string), stop func()) {
	if !e.ErrTTY || e.Quiet || e.Format.Structured() {
		last := ""
		return func(state string) {
			if state != last {
				last = state
				e.Talk("%s is %s", what, state)
			}
		}, func() {}
	}
	states, shown := make(chan string, 1), ""
	progress := mpb.NewWithContext(ctx, mpb.WithOutput(e.bars), mpb.WithRefreshRate(120*time.Millisecond), mpb.WithWidth(30))
	line := progress.New(1, mpb.SpinnerStyle(), mpb.PrependDecorators(decor.Name(output.Clean(what)+"  ")),
		mpb.AppendDecorators(decor.Elapsed(decor.ET_STYLE_GO), decor.Any(func(decor.Statistics) string {
			select {
			case shown = <-states:
			default:
			}
			return "  " + shown
		})))
	return func(state string) {
		select {
		case states <- state:
		default:
		}
	}, func() { line.Abort(true); progress.Wait() }
}

// followedMove is an alias on its way to a version.
type followedMove struct {
	id   uuid.UUID // of the promotion
	what string    // for sentences
	see  string    // the command that shows its state
}

// followPromotion waits until a promotion has moved its alias, or failed to; one that is pending waits for a person.
func (e *Env) followPromotion(ctx context.Context, cp *controlplane.Client, doc map[string]any, move followedMove) error {
	var p controlplane.Promotion
	show, stop := e.spinner(ctx, "the promotion of "+move.what)
	err := poll(ctx, func() (bool, error) {
		now, err := decode[controlplane.Promotion](cp.GetPromotion(ctx, move.id))
		if err != nil {
			return false, err
		}
		p = now
		show(string(p.State))
		return p.State != controlplane.PromotionStatePending && p.State != controlplane.PromotionStateApproved, nil
	})
	stop()
	switch {
	case errors.Is(err, context.Canceled) && p.State == controlplane.PromotionStatePending:
		return fault.New("interrupted", "stopped watching; the promotion of %s still waits for another person's approval", move.what).WithHint("see it with: %s", move.see)
	case errors.Is(err, context.Canceled):
		return fault.New("interrupted", "stopped watching; the promotion of %s continues", move.what).WithHint("see it with: %s", move.see)
	case err != nil:
		return fault.New("not_followed", "how the promotion of %s ended is not known: %v", move.what, err).WithHint("see it with: %s", move.see)
	case p.State != controlplane.PromotionStatePromoted:
		return fault.New("promotion_failed", "the promotion of %s to %s is %s: %s", move.what, p.To, p.State, derefString(p.Reason))
	}
	doc["state"] = p.State
	return e.done(doc, "%s is %s", move.what, p.To)
}
