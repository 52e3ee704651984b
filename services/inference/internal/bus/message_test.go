package bus

import (
	"strings"
	"testing"
)

// A broker may be set up for larger messages than the bridge takes.
func TestParseRefusesLargeMessages(t *testing.T) {
	t.Parallel()
	text := `{"model_name": "` + strings.Repeat("x", 2<<20) + `"}`
	var r inferRequest
	err := parse([]byte(text), &r)
	if got := faultOf(err); err == nil || got.Code != "body_too_large" || got.Status != 413 {
		t.Errorf("got %+v (%v), want body_too_large 413", got, err)
	}
	if id := jobID([]byte(`{"job_id": "j", "x": "` + strings.Repeat("x", 2<<20) + `"}`)); string(id) != "null" {
		t.Errorf("got job id %s of a message of 2 MB, want null: it is not read", id)
	}
}
