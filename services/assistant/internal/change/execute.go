package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mlp-platform/platform/services/assistant/internal/action"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Execute implements action.Cluster. The calls are made in order; the first failure ends it, and the text lists what
// was written before and what was not tried.
func (s *Service) Execute(ctx context.Context, a action.Action) (string, error) {
	var done, left []string
	for _, e := range a.Observed {
		for _, t := range e.Targets {
			left = append(left, t.Ref.String())
		}
	}
	for i, e := range a.Observed {
		stamp := e.At
		if i < len(a.Operations) {
			stamp = a.Operations[i].At // from the proposal, not from the last read
		}
		for _, t := range e.Targets {
			left = left[1:]
			told, err := s.perform(ctx, e, t, stamp)
			if err == nil {
				done = append(done, told)
				continue
			}
			return stoppedEarly(done, told, left, t.Ref, err)
		}
	}
	return strings.Join(done, " "), nil
}

// stoppedEarly describes an action that ended early. told describes what the failed call did nevertheless.
func stoppedEarly(done []string, told string, left []string, ref operation.Ref, err error) (string, error) {
	if told != "" {
		done = append(done, told)
	}
	before := strings.Join(done, " ")
	if errors.Is(err, context.Canceled) || isUnanswered(err) {
		return before, fmt.Errorf("%s: %w: %w", ref, action.ErrNoAnswer, err)
	}
	text := before
	if len(done) > 0 {
		text += " "
	}
	text += errorSentence(ref, err)
	switch {
	case len(left) > 0:
		text += fmt.Sprintf(" Not tried any more: %s.", listSomeNames(left))
	case before == "":
		text += " Nothing was written."
	}
	return "", errors.New(text)
}

// perform makes the call of an operation on one of its objects, provided the object is as approved. If it returns an
// error, told describes what was written nevertheless.
func (s *Service) perform(ctx context.Context, e operation.Expanded, t operation.Target, stamp string) (told string, err error) {
	for range maxMoves {
		c, err := s.prepare(ctx, e.Operation, t.Ref, stamp)
		if err != nil {
			return "", notSentError(err)
		}
		if !matchesBinding(c, e, t) {
			return "", operation.Refuse(operation.Conflict, "", "%s has changed since it was looked at.", t.Ref)
		}
		if c.way == patches && c.live.GetResourceVersion() != t.ResourceVersion && satisfiesBody(c.live.Object, c.body, false) {
			// Another client was faster, or this is a call that was considered dead: nothing is written twice.
			return t.Ref.String() + " is already in the requested state; nothing was written.", nil
		}
		switch c.way {
		case drains:
			told, err = s.drain(ctx, e.Operation, c, e.Affected)
		case recreates:
			told, err = s.recreate(ctx, c)
		default:
			_, err = s.send(ctx, c, false)
			told = c.ref.String() + " was " + c.done + "."
		}
		switch {
		case err == nil:
			return told, nil
		case c.way == drains || c.way == recreates:
			return told, err // which names what was done nevertheless
		case isConflict(err) && c.live != nil:
			continue
		}
		return "", err
	}
	return "", operation.Refuse(operation.Conflict, "", "%s is changed by others all the time; it could not be written.", t.Ref)
}

// notSentError wraps an error from before the call: nothing was written.
func notSentError(err error) error {
	if isUnanswered(err) && !errors.Is(err, context.Canceled) {
		return operation.Refuse(operation.Unavailable, "", "The cluster did not answer a look at the object.")
	}
	return err
}

// matchesBinding reports whether an object and its copy sources match those that the call was bound to. The resource
// version may have changed: a new status does not change the wanted state.
func matchesBinding(c call, e operation.Expanded, t operation.Target) bool {
	now := bindTarget(e.Operation, t.Ref, c.live)
	if c.live == nil && c.way != creates || now.UID != t.UID || now.Fingerprint != t.Fingerprint {
		return false
	}
	return !slices.ContainsFunc(c.sources, func(src operation.Target) bool {
		return !slices.ContainsFunc(e.Sources, func(was operation.Target) bool {
			return sameRef(was.Ref, src.Ref) && was.UID == src.UID && was.Fingerprint == src.Fingerprint
		})
	})
}

// recreate deletes an object, waits until it is gone, and creates the new one.
func (s *Service) recreate(ctx context.Context, c call) (told string, err error) {
	gone := c
	gone.way = removes
	if _, err := s.send(ctx, gone, false); err != nil {
		return "", err
	}
	told = c.ref.String() + " was deleted."
	wait, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	for {
		_, err := s.read(wait, c.ref)
		if apierrors.IsNotFound(err) {
			break
		}
		if err := waitFor(wait, pollFirst); err != nil {
			if ctx.Err() != nil {
				return told, ctx.Err()
			}
			return told, operation.Refuse(operation.TimedOut, "", "It is still there after %s, so the new one was not created.", writeTime)
		}
	}
	c.way, c.live = creates, nil
	if _, err := s.send(ctx, c, false); err != nil {
		return told, err
	}
	return c.ref.String() + " was " + c.done + ".", nil
}
