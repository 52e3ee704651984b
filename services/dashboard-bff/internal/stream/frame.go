package stream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/outbox"
)

// event is one fact of the platform with its frame. It is shared by all clients and never changes.
type event struct {
	sequence        uint64 // in the stream PLATFORM
	tenant          string
	namespace, name string
	frame           []byte // ends with withoutDrops
}

// withoutDrops ends the frame of a client that lost nothing; only this number differs between clients.
const withoutDrops = "0}\n\n"

// maxDigits is the most that a number of drops adds to a frame.
const maxDigits = 20

// appendFrame adds the event's frame for a client that has lost so many events.
func (e *event) appendFrame(dst []byte, dropped uint64) []byte {
	if dropped == 0 {
		return append(dst, e.frame...)
	}
	dst = append(dst, e.frame[:len(e.frame)-len(withoutDrops)]...)
	dst = strconv.AppendUint(dst, dropped, 10)
	return append(dst, withoutDrops[1:]...)
}

// origin is the member _event of an event's data.
type origin struct {
	ID    uuid.UUID `json:"id"`
	Time  time.Time `json:"time"`
	Actor string    `json:"actor"`
}

// errNotStreamed marks events of namespaces that clients do not get.
var errNotStreamed = errors.New("not an event for clients")

// encodeEvent encodes a message of the stream as a frame.
func encodeEvent(subject string, body []byte, sequence uint64) (*event, error) {
	e, err := outbox.ParseEnvelope(body)
	if err != nil {
		return nil, err
	}
	if e.Tenant == "" {
		return nil, errors.New("the event has no tenant")
	}
	namespace, name := e.Namespace(), e.Name()
	if !slices.Contains(namespaces, namespace) {
		return nil, errNotStreamed
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !nameRune(r) }) { // a line end would forge a field
		return nil, fmt.Errorf("the event's name is %q", name)
	}
	// The broker's permissions are by subject: a publisher that may write for one tenant must not reach another by
	// naming it in the body.
	if subject != outbox.Subject(e.Tenant, namespace, name) {
		return nil, fmt.Errorf("the event says tenant %q and %q, its subject is %q", e.Tenant, e.Type, subject)
	}
	from, err := json.Marshal(origin{e.ID, e.Time.UTC(), e.Actor})
	if err != nil {
		return nil, fmt.Errorf("encode the origin: %w", err)
	}
	var data bytes.Buffer
	if err := json.Compact(&data, e.Data); err != nil { // a line end between members would end the frame
		return nil, fmt.Errorf("data of %s: %w", e.Type, err)
	}
	members, ok := bytes.CutPrefix(data.Bytes(), []byte("{"))
	if !ok {
		return nil, fmt.Errorf("data of %s is no object", e.Type)
	}
	members = bytes.TrimSuffix(members, []byte("}"))

	frame := make([]byte, 0, len(members)+len(from)+len(namespace)+len(name)+64)
	frame = strconv.AppendUint(append(frame, "id: "...), sequence, 10)
	frame = append(append(append(append(frame, "\nevent: "...), namespace...), '.'), name...)
	frame = append(append(frame, "\ndata: {"...), members...)
	if len(members) > 0 {
		frame = append(frame, ',')
	}
	frame = append(append(frame, `"_event":`...), from...)
	frame = append(append(frame, `,"_dropped":`...), withoutDrops...)
	return &event{sequence: sequence, tenant: e.Tenant, namespace: namespace, name: name, frame: frame}, nil
}

// nameRune reports whether a name in the catalogue may hold the character.
func nameRune(r rune) bool { return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '_' }

// retryMillis is the time after which a browser reconnects.
const retryMillis = 3000

// hello is the data of the first frame. Gap means that events between Last-Event-ID and now are not
// replayed: the client has to fetch its views again.
type hello struct {
	Channels []string `json:"channels"`
	Resumed  bool     `json:"resumed"`
	Gap      bool     `json:"gap"`
}

func (h hello) frame() []byte {
	data, _ := json.Marshal(h) // strings and booleans always encode
	return fmt.Appendf(nil, "retry: %d\nevent: hello\ndata: %s\n\n", retryMillis, data)
}

// Reasons for the end of a stream, sent to the client in the last frame.
const (
	TokenExpired   = "token_expired"
	LoggedOut      = "logged_out"
	Draining       = "draining"
	BusUnavailable = "bus_unavailable"
)

func byeFrame(reason string) []byte {
	return fmt.Appendf(nil, "event: bye\ndata: {\"reason\":%q}\n\n", reason)
}

var keepAliveFrame = []byte(": keep-alive\n\n")
