// Package webhook takes the push webhooks of both forges: it bounds the body,
// checks the proof that the forge sent it, reads the forge's payload and hands
// the push on.
//
// Whoever sends is a stranger until the proof holds. So a refusal costs little:
// what the headers alone decide is decided before the body is read, a body has
// as much memory as has arrived of it and must keep arriving, only complete ones
// are hashed and parsed, and refusals are counted but not written to the ledger,
// which a stranger could fill.
package webhook

import (
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/push"
)

const (
	// maxBody bounds a payload, in bytes.
	maxBody = 5 << 20
	// parsers is how many bodies of each forge are hashed and parsed at once.
	parsers = 8
	// waitTimeout is how long a delivery waits for memory, or for its turn to be parsed.
	waitTimeout = 2 * time.Second
)

// Names of the forges, as metrics have them.
const (
	forgeA = "forge-a"
	forgeB = "forge-b"
)

// API serves the webhooks.
type API struct {
	pushes *push.Service
	secret service.Secret
	key    []byte // of signed deliveries of forge A; nil: they prove themselves by the token
	count  func(forge, outcome string)
	now    func() time.Time

	laneA, laneB lane
}

// lane is what the deliveries of one forge share. Each forge has its own, so that
// those who pose as one do not keep the other waiting.
type lane struct {
	memory *semaphore.Weighted // bytes of bodies
	turns  chan struct{}       // to hash and parse
}

func newLane() lane {
	return lane{memory: semaphore.NewWeighted(laneMemory), turns: make(chan struct{}, parsers)}
}

// New serves nobody while secret is empty. count is told of each delivery: its
// outcome is accepted, duplicate, skipped or the code of the error.
func New(pushes *push.Service, secret service.Secret, key []byte, count func(forge, outcome string), now func() time.Time) *API {
	return &API{
		pushes: pushes, secret: secret, key: key, count: count, now: now,
		laneA: newLane(), laneB: newLane(),
	}
}

// forge is what differs between the two.
type forge struct {
	name string
	// offers says whether the headers alone leave a proof possible; proves
	// decides, once the body is there.
	offers func(h http.Header) bool
	proves func(h http.Header, body []byte) bool
	parse  func(h http.Header, p payload) (out push.Push, skip string, err error)
	want   string // of a proof, for the one who lacks it
	lane   lane
}
