package controltower

import (
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/spine"
)

var eventKeys = canon.MustFrom(spine.Event{Payload: &canon.Object{}}).(*canon.Object).Keys()

// event checks one envelope: its keys, its identity, its place behind after, the
// filters, its payload. An event_type this build does not know is taken: types are
// added.
func (a *documentReply) event(o *canon.Object, filters query, after int64) (spine.Event, error) {
	var none spine.Event
	if o.Len() != len(eventKeys) {
		return none, a.broken("an event does not have exactly the sixteen keys of an envelope")
	}
	for _, key := range eventKeys {
		if _, ok := o.Get(key); !ok {
			return none, a.broken("an event does not have exactly the sixteen keys of an envelope")
		}
	}
	if v, _ := o.Get("payload"); !isObject(v) {
		return none, a.broken("the payload of an event is no object")
	}
	c1, err := canon.C1(o)
	if err != nil {
		return none, a.broken("an event is no JSON: %v", err)
	}
	var e spine.Event
	if err := a.into(&e, o, c1); err != nil {
		return none, err
	}
	switch {
	case e.Kind != spine.EventKind || e.SchemaVersion != spine.SchemaVersion:
		return none, a.broken("an event is not %s of schema version %s", spine.EventKind, spine.SchemaVersion)
	case e.Sequence < 1 || e.Sequence > spine.MaxSequence:
		return none, a.broken("the sequence of an event is no integer from 1")
	case e.EventID != spine.EventID(e.Sequence):
		return none, a.broken("the event_id of an event does not carry its sequence")
	case e.EventType == "":
		return none, a.broken("the event_type of an event is no text")
	case e.Sequence <= after:
		return none, a.broken("event %d came after event %d: sequences must rise", e.Sequence, after)
	}
	if err := a.filtered(o, filters); err != nil {
		return none, err
	}
	if canon.Digest(e.Payload) != e.PayloadDigest {
		return none, a.tampered("the payload of event %d does not have its payload_digest", e.Sequence)
	}
	return e, nil
}

func isObject(v canon.Value) bool {
	_, ok := v.(*canon.Object)
	return ok
}
