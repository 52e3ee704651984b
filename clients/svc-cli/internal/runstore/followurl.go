package runstore

import (
	"context"
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/go/controltower"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

const (
	towerTimeout = 10 * time.Second
	towerIdle    = 30 * time.Second // twice the server's heartbeat
	// How a tower that went away is waited for.
	resumeFirst = 250 * time.Millisecond
	resumeMost  = 4 * time.Second
	resumeTries = 10 // half a minute in all
)

// url follows a control tower. A stream that the server ends, or that breaks, is resumed after its last event.
func (f *follower) url(c *cli.Context, from *int64) error {
	filter := eventFilter(c)
	if err := filter.Check(); err != nil {
		return err
	}
	token := f.e.Getenv(tokenEnv)
	if token == "" {
		return command.Usagef("set $%s to the token of the control tower", tokenEnv)
	}
	client, err := controltower.New(c.String("url"), token, towerTimeout)
	if err != nil {
		return towerFault(err)
	}
	options := controltower.StreamOptions{IdleTimeout: towerIdle, LastEventID: from, Filter: controltower.EventFilter{
		ProjectID: textOrEmpty(filter.ProjectID), RunID: textOrEmpty(filter.RunID), WorkUnitID: textOrEmpty(filter.WorkUnitID), EventType: textOrEmpty(filter.EventType)}}
	if from == nil {
		// Where the log ends now, so that nothing is missed should the first stream end before its first event.
		newest, err := newestEvent(c.Context, client)
		if err != nil {
			return towerFault(err)
		}
		options.LastEventID = &newest
	}
	wait, tries, begun := resumeFirst, 0, false
	for {
		before := *options.LastEventID
		err := f.stream(c.Context, client, &options)
		switch {
		case errors.Is(err, errEnough) || c.Context.Err() != nil:
			return err
		case err == nil || *options.LastEventID > before:
			wait, tries, begun = resumeFirst, 0, true // the tower is well
		}
		if err != nil {
			if tries++; !begun || !isPassing(err) || tries > resumeTries {
				return towerFault(err)
			}
		}
		if err := pauseFor(c.Context, wait); err != nil {
			return err
		}
		if wait *= 2; wait > resumeMost {
			wait = resumeMost
		}
	}
}

// stream prints one stream's events and notes the last one's sequence.
func (f *follower) stream(ctx context.Context, client *controltower.Client, o *controltower.StreamOptions) error {
	for ev, err := range client.Stream(ctx, *o) {
		if err != nil {
			return err
		}
		c1, err := canon.C1(ev.Envelope.Value())
		if err != nil {
			return err
		}
		sequence := ev.Sequence
		o.LastEventID = &sequence
		if err := f.print(c1); err != nil {
			return err
		}
	}
	return nil
}

// newestEvent tries to resume after the last possible sequence: the refusal names the newest one.
func newestEvent(ctx context.Context, client *controltower.Client) (int64, error) {
	last := int64(spine.MaxSequence)
	for _, err := range client.Stream(ctx, controltower.StreamOptions{IdleTimeout: towerIdle, LastEventID: &last}) {
		var refused *controltower.APIError
		if errors.As(err, &refused) && refused.Code == invalidSequence && refused.Details != nil {
			newest, _ := refused.Details.Get("latest_sequence")
			if n, ok := newest.(canon.Int); ok {
				if sequence, ok := n.Int64(); ok {
					return sequence, nil
				}
			}
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, &command.Fault{Code: "protocol_error", Message: "the control tower took a sequence that no log has"}
}

// isPassing reports whether a fault of a stream may be gone with the next one.
func isPassing(err error) bool {
	var refused *controltower.APIError
	if errors.As(err, &refused) {
		return refused.Retryable
	}
	var cut *controltower.TransportError
	return errors.As(err, &cut)
}

func pauseFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// towerFault maps the client's errors to their codes; those of the API keep theirs.
func towerFault(err error) error {
	var (
		refused   *controltower.APIError
		config    *controltower.ConfigError
		integrity *controltower.IntegrityError
		protocol  *controltower.ProtocolError
		transport *controltower.TransportError
	)
	code := command.Failed
	switch {
	case errors.As(err, &refused):
		return &command.Fault{Code: refused.Code, Message: refused.Message, Cause: err}
	case errors.As(err, &config):
		code = command.InvalidArguments
	case errors.As(err, &integrity):
		code = "integrity_error"
	case errors.As(err, &protocol):
		code = "protocol_error"
	case errors.As(err, &transport):
		code = "transport_error"
	default:
		return err
	}
	return &command.Fault{Code: code, Message: err.Error(), Cause: err}
}
