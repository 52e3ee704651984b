package stream

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/outbox"
)

// message returns a body with one member changed.
func message(t *testing.T, change func(*outbox.Envelope)) []byte {
	t.Helper()
	e := outbox.Envelope{
		SpecVersion: "1.0", ID: uuid.MustParse("01890a5d-ac96-774b-bcce-b302099a8057"), Source: "/services/x", Type: "platform.job.started",
		Time: time.Unix(0, 0).UTC(), Tenant: "a.b", Data: json.RawMessage(`{"model":"M"}`),
	}
	change(&e)
	body, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestEncodeRefusesWhatIsNoEventForClients(t *testing.T) {
	t.Parallel()
	const subject = "platform.a%2Eb.job.started"
	for name, c := range map[string]struct {
		subject string
		body    []byte
		want    string
	}{
		"no JSON":              {subject, []byte("x"), "not an event"},
		"no tenant":            {subject, message(t, func(e *outbox.Envelope) { e.Tenant = "" }), "no tenant"},
		"another tenant":       {"platform.b.job.started", message(t, func(*outbox.Envelope) {}), "its subject is"},
		"another name":         {"platform.a%2Eb.job.failed", message(t, func(*outbox.Envelope) {}), "its subject is"},
		"audit":                {"platform.a%2Eb.audit.recorded", message(t, func(e *outbox.Envelope) { e.Type = "platform.audit.recorded" }), errNotStreamed.Error()},
		"line end in the name": {"platform.a%2Eb.job.x\ndata", message(t, func(e *outbox.Envelope) { e.Type = "platform.job.x\ndata" }), "has a type"},
		"a list as data":       {subject, message(t, func(e *outbox.Envelope) { e.Data = json.RawMessage(`[1]`) }), "no object"},
		"null as data":         {subject, message(t, func(e *outbox.Envelope) { e.Data = json.RawMessage(`null`) }), "no object"},
		"no data":              {subject, []byte(strings.Replace(string(message(t, func(*outbox.Envelope) {})), `,"data":{"model":"M"}`, "", 1)), "data"},
	} {
		if e, err := encodeEvent(c.subject, c.body, 1); e != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want an error with %q", name, e, err, c.want)
		}
	}
	if _, err := encodeEvent("platform.a%2Eb.audit.recorded", message(t, func(e *outbox.Envelope) { e.Type = "platform.audit.recorded" }), 1); !errors.Is(err, errNotStreamed) {
		t.Errorf("audit: %v, want %v", err, errNotStreamed)
	}
}

// Line ends between the members of data would end the frame early.
func TestFrameIsOneLineOfDataWithTheClientsDrops(t *testing.T) {
	t.Parallel()
	body := message(t, func(*outbox.Envelope) {})
	body = []byte(strings.Replace(string(body), `{"model":"M"}`, "{\n\n  \"model\" : \"M\\nN\"\r\n}", 1))
	e, err := encodeEvent("platform.a%2Eb.job.started", body, 4711)
	if err != nil {
		t.Fatal(err)
	}
	for dropped, want := range map[uint64]string{0: "0", 7: "7", 1<<64 - 1: "18446744073709551615"} {
		want = "id: 4711\nevent: job.started\ndata: {\"model\":\"M\\nN\",\"_event\":{\"id\":\"01890a5d-ac96-774b-bcce-b302099a8057\",\"time\":\"1970-01-01T00:00:00Z\",\"actor\":\"\"},\"_dropped\":" + want + "}\n\n"
		if got := string(e.appendFrame(nil, dropped)); got != want {
			t.Errorf("dropped %d: frame %q, want %q", dropped, got, want)
		}
	}
}
