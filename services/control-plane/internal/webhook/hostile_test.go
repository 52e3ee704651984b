package webhook_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/testenv/hostiletest"
)

// Damaged and inflated deliveries with a valid proof are recorded or refused as malformed, and a sound one is recorded
// afterwards.
func TestHostileDeliveries(t *testing.T) {
	p := startWithSecret(t)
	a, b := []byte(sampleA(t, nil)), []byte(sampleB(t, nil))
	files := append(hostiletest.Mutate("forge A", 60, 1, a), hostiletest.Mutate("forge B", 40, 2, b)...)
	for name, data := range map[string]string{
		"brackets": strings.Repeat("[", 1<<20),
		"commits":  `{"commits": [` + strings.Repeat("{},", 1<<18) + `{}]}`,
		"keys":     "{" + strings.Repeat(`"ref": 1,`, 1<<16) + `"ref": 1}`,
		"escapes":  `{"ref": "` + strings.Repeat(`\ud800`, 1<<16) + `"}`,
		"nested":   strings.Repeat(`{"commits":[`, 1<<16),
	} {
		files = append(files, hostiletest.File{Kind: "forge A", Name: name, Data: []byte(data)})
	}
	hostiletest.Feed(t, files, 15*time.Second, func(f hostiletest.File) error {
		path, header := pathA, []string{"X-Gitlab-Token", secret, "X-Gitlab-Event", "Push Hook", "X-Gitlab-Event-UUID", uuid.NewString()}
		if f.Kind == "forge B" {
			path, header = pathB, headersB(t, string(f.Data))
		}
		answer := p.Call("POST", path, "", string(f.Data), header...)
		if answer.Status == 200 {
			return nil
		}
		if answer.Status < 400 || answer.Status > 499 {
			t.Errorf("%s %s: got %d %.300s; want 200 or 4xx", f.Kind, f.Name, answer.Status, answer.Body)
		}
		return errors.New(string(answer.Body))
	})
	if out := deliverA(p, string(a)); out["duplicate"] != false {
		t.Errorf("a sound delivery afterwards: %v; want it recorded", out)
	}
}
