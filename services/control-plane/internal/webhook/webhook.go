// Package webhook receives the push webhooks of both forges: it limits the body,
// authenticates the forge, parses its payload and records the push.
//
// Senders are untrusted until authenticated, so refusals must be cheap: headers are
// checked before the body is read, a body gets only as much memory as has arrived
// and must keep arriving, only complete bodies are hashed and parsed, and refusals
// are counted but not written to the ledger, which a stranger could otherwise fill.
package webhook

import (
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/push"
)

const (
	// maxBody limits a payload, in bytes.
	maxBody = 5 << 20
	// parsers limits how many bodies of each forge are hashed and parsed in parallel.
	parsers = 8
	// waitTimeout is how long a delivery waits for memory, or for its turn to be parsed.
	waitTimeout = 2 * time.Second
)

// Names of the forges in metrics.
const (
	forgeA = "forge-a"
	forgeB = "forge-b"
)

// API serves the webhooks.
type API struct {
	pushes *push.Service
	secret service.Secret
	key    []byte // for signed deliveries of forge A; nil: they authenticate by the token
	count  func(forge, outcome string)
	now    func() time.Time

	laneA, laneB lane
}

// lane holds the resources shared by the deliveries of one forge. Each forge has its own,
// so that impostors of one forge do not block the other.
type lane struct {
	memory *semaphore.Weighted // bytes of bodies
	turns  chan struct{}       // to hash and parse
}

func newLane() lane {
	return lane{memory: semaphore.NewWeighted(laneMemory), turns: make(chan struct{}, parsers)}
}

// New returns an API; it refuses all deliveries while secret is empty. count is called for each delivery; the outcome
// is accepted, duplicate, skipped or the code of the error.
func New(pushes *push.Service, secret service.Secret, key []byte, count func(forge, outcome string), now func() time.Time) *API {
	return &API{
		pushes: pushes, secret: secret, key: key, count: count, now: now,
		laneA: newLane(), laneB: newLane(),
	}
}

// forge describes the differences between the two forges.
type forge struct {
	name string
	// offers reports whether the headers can contain a valid proof; proves decides when
	// the body has been read.
	offers func(h http.Header) bool
	proves func(h http.Header, body []byte) bool
	parse  func(h http.Header, p payload) (out push.Push, skip string, err error)
	want   string // explains the required proof to the sender
	lane   lane
}
