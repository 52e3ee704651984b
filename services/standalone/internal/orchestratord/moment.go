package orchestratord

import (
	"encoding/json"
	"strings"
	"time"
)

// moment is a point in time as clients write it: with T or, as Python prints it, with a blank, and in UTC where they
// name no zone. A nil one is none.
type moment time.Time

func (m *moment) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	normal := strings.Replace(text, " ", "T", 1)
	t, err := time.Parse(time.RFC3339Nano, normal)
	if err != nil {
		t, err = time.Parse("2006-01-02T15:04:05.999999999", normal)
	}
	if err != nil {
		return invalidMember("", "%q is no date and time; want 2006-01-02T15:04:05Z", text)
	}
	*m = moment(t)
	return nil
}

func (m *moment) time() *time.Time {
	if m == nil {
		return nil
	}
	return pointerTo(time.Time(*m).UTC())
}
