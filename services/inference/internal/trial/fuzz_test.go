package trial

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv/hostiletest"
)

// artifact is one with a description and a graph; it notes which files are read.
type artifact struct{ read []string }

func (a *artifact) ReadFile(name string, _ int64) ([]byte, error) {
	a.read = append(a.read, name)
	if name != "MLmodel" && name != defaultGraphFile {
		return nil, fs.ErrNotExist
	}
	return []byte("x"), nil
}

func (a *artifact) Size() int64 { return 1 }

// FuzzAnswers: a model may have taken over the process that tries it, so any output of that process yields a permitted
// number of rows or a short reason, and reads no more files than a model may have.
func FuzzAnswers(f *testing.F) {
	for _, text := range []string{
		`{"rows": 32}`, `{"want": "model.onnx"}` + "\n" + `{"rows": 1}`, `{"want": "../../etc/passwd"}` + "\n" + `{"want": "x"}`, `{"rows": -1}`, `{"rows": 1e9}`,
		`{"reason": "\u001b[2J\u202e\n"}`, `{"memory": true, "rows": 3}`, `{"reason": "` + string(bytes.Repeat([]byte("x"), 9000)) + `"}`, strings.Repeat(`{"want":"x"}`, maxFiles+1), `[[[[`, `null`, "\x00", "{}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		src := &artifact{}
		req := request{Memory: 1 << 20, Rows: 32, RunLimit: time.Second}
		hostiletest.CheckAllocation(t, uint64(2<<20+64*len(said)), func() {
			res, err := converse(io.Discard, newAnswers(bytes.NewReader(said)), src, req)
			var refusal *Refusal
			switch {
			case err == nil && (res.Bounds.Rows < 1 || res.Bounds.Rows > req.Rows):
				t.Errorf("got %d rows; want 1 to %d", res.Bounds.Rows, req.Rows)
			case errors.As(err, &refusal) && (len(refusal.Reason) > maxReason+len("…") || bytes.ContainsAny([]byte(refusal.Reason), "\x00\x1b\n\u202e")):
				t.Errorf("the reason is %q; want one short, clean line", refusal.Reason)
			}
		})
		if len(src.read) > 2+maxFiles {
			t.Errorf("it read %d files; want MLmodel, platform.json and %d at most", len(src.read), maxFiles)
		}
	})
}
