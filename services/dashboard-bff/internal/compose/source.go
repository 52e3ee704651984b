package compose

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/mlp-platform/platform/services/dashboard-bff/internal/caller"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/upstream"
)

// ErrSkipped means that a source has nothing to return here, as with a service that is not configured or too old for
// the call. That is no fault of the service, and nothing is retried.
var ErrSkipped = errors.New("the source was skipped")

// Source is one call to a service, which all views with the same caller's tenant and parameters share.
type Source[P comparable, T any] struct {
	// Name is how views list the source in _partial and _sources. Several sources may have one name.
	Name string
	// Service answers the call.
	Service upstream.Service
	// Call distinguishes this source from others of its name and service, such as "list policies".
	Call string
	// Budget is for a call that may take longer than a view waits; 0 is the pool's timeout. Views do not wait for it
	// beyond that: until it ends they show the previous answer with its age, if there is one.
	Budget time.Duration
	// Pace is for a call that is expensive for the service: its answer is shared for that multiple of the time it
	// took, if that is longer than answers are shared otherwise.
	Pace int
	// Fetch makes the call within ctx. Its answer is shared by many requests, which must not change it. An answer
	// that is a definite no, such as an unknown model, is a value of T and no error.
	Fetch func(ctx context.Context, who caller.Caller, parameters P) (T, error)
}

// None are the parameters of a source that takes none.
type None struct{}

// ControlPlaneSource returns a source that is one call to the control plane, with the usual limits.
func ControlPlaneSource[P comparable, T any](name, call string, fetch func(context.Context, caller.Caller, P) (T, error)) Source[P, T] {
	return Source[P, T]{Name: name, Service: upstream.ControlPlane, Call: call, Fetch: fetch}
}

// key of a shared answer. The parameters' own type is part of it.
type key struct {
	service    upstream.Service
	name, call string
	tenant     string
	parameters any
}

func (k key) String() string {
	return fmt.Sprintf("%s (%s of %s, tenant %s, %+v)", k.name, k.call, k.service, k.tenant, k.parameters)
}

// skipped reports whether an error means that there was nothing to call.
func skipped(err error) bool {
	return errors.Is(err, ErrSkipped) || errors.Is(err, upstream.ErrNotConfigured)
}

// timedOut reports whether an error is a timeout, of the source or of a connection below it.
func timedOut(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}
