package runstore

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

// How a store is followed: as the server's stream follows it.
const (
	followPoll  = 250 * time.Millisecond
	followBatch = 200
)

// invalidSequence is the API's code for a place in the log that cannot be resumed from.
const invalidSequence = "invalid_last_event_id"

// follower prints events as they come, up to a number.
type follower struct {
	e    *command.Env
	left int64 // -1: without end
}

// errEnough ends a stream that printed the requested events.
var errEnough = errors.New("enough events")

// print writes one envelope, in form C1, as one line.
func (f *follower) print(c1 []byte) error {
	if _, err := f.e.Stdout.Write(append(c1, '\n')); err != nil {
		return err
	}
	if f.left--; f.left == 0 {
		return errEnough
	}
	f.left = max(f.left, -1)
	return nil
}

// readAfter reads --after: nil is from now on.
func readAfter(c *cli.Context) (*int64, error) {
	s := optionValue(c, "after")
	if s == nil {
		return nil, nil
	}
	n, err := strconv.ParseInt(*s, 10, 64)
	if err != nil || len(*s) > 18 || strings.Trim(*s, "0123456789") != "" {
		return nil, command.Failf(invalidSequence, "--after is the sequence of an event, 0 for all of them; not %q", *s)
	}
	return &n, nil
}

func runFollow(e *command.Env, c *cli.Context) error {
	if _, err := command.Arguments(c); err != nil {
		return err
	}
	if (c.String("store") == "") == (c.String("url") == "") {
		return command.Usagef("name one source: --store FILE or --url URL")
	}
	f := &follower{e: e, left: -1}
	if c.IsSet("max-events") {
		if f.left = c.Int64("max-events"); f.left < 1 {
			return command.Usagef("--max-events is 1 or more")
		}
	}
	from, err := readAfter(c)
	if err != nil {
		return err
	}
	if c.String("store") != "" {
		err = f.store(c, from)
	} else {
		err = f.url(c, from)
	}
	// Ctrl-C ends following.
	if errors.Is(err, errEnough) || c.Context.Err() != nil {
		return nil
	}
	return err
}

// store follows a file.
func (f *follower) store(c *cli.Context, from *int64) error {
	filter := eventFilter(c)
	if err := filter.Check(); err != nil {
		return err
	}
	return withReader(c, func(ctx context.Context, r *store.Reader) error {
		seen, err := r.LatestSequence(ctx)
		if err != nil {
			return err
		}
		if from != nil {
			if *from > seen {
				return command.Failf(invalidSequence, "--after %d is beyond the newest event, %d", *from, seen)
			}
			seen = *from
		}
		tick := time.NewTicker(followPoll)
		defer tick.Stop()
		for {
			// Before the read, so that a commit meanwhile shows as a change.
			mark, err := r.Mark(ctx)
			if err != nil {
				return err
			}
			if seen, err = f.drain(ctx, r, filter, seen); err != nil {
				return err
			}
			for changed := false; !changed; {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-tick.C:
				}
				now, err := r.Mark(ctx)
				if err != nil {
					return err
				}
				changed = now != mark
			}
		}
	})
}

// drain prints the events of the log after a sequence, and returns the newest sequence
// read.
func (f *follower) drain(ctx context.Context, r *store.Reader, filter store.EventFilter, seen int64) (int64, error) {
	for {
		items, upTo, err := r.EventsAfter(ctx, seen, filter, followBatch)
		if err != nil {
			return seen, err
		}
		for _, ev := range items {
			if err := f.print(ev.Envelope); err != nil {
				return seen, err
			}
		}
		if upTo < seen {
			return seen, command.Failf(string(store.StoreError), "the log ends at event %d, before event %d that was seen: another file took the store's place", upTo, seen)
		}
		seen = upTo
		if len(items) < followBatch {
			return seen, nil
		}
	}
}
