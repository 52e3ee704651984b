package pg

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// tail passes the server's log on and remembers its last lines, from which a
// failed start is explained.
type tail struct {
	to io.Writer

	mu    sync.Mutex // guards what follows
	part  []byte
	lines []string
}

const tailLines = 30

// Write never fails: a broken log must not stop the database.
func (t *tail) Write(b []byte) (int, error) {
	if t.to != nil {
		_, _ = t.to.Write(b)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.part = append(t.part, b...)
	for {
		i := bytes.IndexByte(t.part, '\n')
		if i < 0 {
			break
		}
		if line := strings.TrimSpace(string(t.part[:i])); line != "" {
			t.lines = append(t.lines, line)
		}
		t.part = t.part[i+1:]
	}
	if n := len(t.lines) - tailLines; n > 0 {
		t.lines = slices.Delete(t.lines, 0, n)
	}
	if len(t.part) > 4096 {
		t.part = t.part[len(t.part)-4096:]
	}
	return len(b), nil
}

func (t *tail) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.part, t.lines = nil, nil
}

func (t *tail) has(what string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.lines, func(l string) bool { return strings.Contains(l, what) })
}

// last returns the most informative line: the last one about an error, else the
// last.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range slices.Backward(t.lines) {
		for _, mark := range []string{"PANIC:", "FATAL:", "ERROR:", "error:"} {
			if _, text, ok := strings.Cut(l, mark); ok {
				return strings.TrimSpace(text)
			}
		}
	}
	if len(t.lines) == 0 {
		return "it said nothing"
	}
	return t.lines[len(t.lines)-1]
}

// explain combines the error of a failed command and its log into one sentence.
func (c *cluster) explain(what string, cause error) error {
	switch {
	case c.log.has("No space left on device"):
		return fmt.Errorf("postgres: %s: the disk that holds %s is full; free some space and start again", what, c.dir)
	case c.log.has("could not resize shared memory"), c.log.has("could not create shared memory"):
		return fmt.Errorf("postgres: %s: not enough shared memory (%s); give /dev/shm at least 64 MB", what, c.log.last())
	case c.log.has("Permission denied"):
		user := "this user"
		if c.as != nil {
			user = fmt.Sprintf("user %d, under which it runs because it refuses to be root,", c.as.Uid)
		}
		return fmt.Errorf("postgres: %s: %s may not use a file (%s); change its owner or choose another directory", what, user, c.log.last())
	default:
		return fmt.Errorf("postgres: %s (%w): %s", what, cause, c.log.last())
	}
}
