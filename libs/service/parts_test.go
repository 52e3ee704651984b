package service

import (
	"testing"
	"time"
)

func TestRequireParts(t *testing.T) {
	t.Parallel()
	type parts struct {
		Now    func() time.Time
		Log    *int
		Notify func() `part:"optional"`
		Every  time.Duration
	}
	err := RequireParts("poller", parts{})
	if want := "poller: missing parts: Now, Log"; err == nil || err.Error() != want {
		t.Errorf("no parts: got %v, want %s", err, want)
	}
	if err := RequireParts("poller", parts{Now: time.Now, Log: new(int)}); err != nil {
		t.Errorf("all required parts: got %v, want nil", err)
	}
}
