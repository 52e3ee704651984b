package localloop

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/confined"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/field"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/localloop/verification"
	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// Difference is one place in which a folder differs from the current output of the
// same run.
type Difference struct {
	File   string `json:"file"`
	Path   string `json:"path"` // JSON pointer; "" is the whole file
	Detail string `json:"detail"`
}

// Comparison is the result of a replay.
type Comparison struct {
	Outcome     *Outcome
	Differences []Difference // by file
}

// maxDifferences limits the differences reported for one file.
const maxDifferences = 20

// Replay runs again and compares, byte for byte, what the run would write with the
// content of dir. It writes nothing. In verification results it leaves out when, how
// long and in which environment the verifier ran, but still checks that these fields
// are valid.
func (s *Source) Replay(ctx context.Context, dir string, o Options) (*Comparison, error) {
	folder, err := confined.Open(dir)
	if err != nil {
		return nil, &Fault{Code: ReadError, Detail: err.Error()}
	}
	defer func() { _ = folder.Close() }()
	found, err := folder.List()
	if err != nil {
		return nil, &Fault{Code: ReadError, Detail: fmt.Sprintf("the folder %s cannot be read: %v", dir, err)}
	}
	out, err := s.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	c := &Comparison{Outcome: out, Differences: []Difference{}}
	present := slices.Concat(found.Files, found.Other)
	for _, name := range present {
		if _, ok := out.Files[name]; !ok {
			c.add(name, "", "the run does not write this file")
		}
	}
	results := map[string]*verification.Result{}
	for _, a := range s.Config.Attempts {
		if r := out.Results[a.ID]; r != nil {
			results[a.ResultFile()] = r
		}
	}
	for _, name := range out.FileNames() {
		if !slices.Contains(present, name) {
			c.add(name, "", "the file is absent")
			continue
		}
		have, err := folder.Read(name, canon.MaxFile)
		if err != nil {
			c.add(name, "", "the file cannot be compared: %v", err)
			continue
		}
		c.compare(name, out.Files[name], have, results[name])
	}
	slices.SortStableFunc(c.Differences, func(a, b Difference) int { return strings.Compare(a.File, b.File) })
	return c, nil
}

func (c *Comparison) add(file, path, format string, a ...any) {
	c.Differences = append(c.Differences, Difference{File: strings.ToValidUTF8(file, "\uFFFD"), Path: path, Detail: fmt.Sprintf(format, a...)})
}

// compare compares one file with its expected content.
func (c *Comparison) compare(name string, want, have []byte, result *verification.Result) {
	if bytes.Equal(want, have) {
		return
	}
	if !strings.HasSuffix(name, ".json") {
		c.add(name, "", "line %d differs", firstLine(want, have))
		return
	}
	doc, err := field.Parse(have)
	if err != nil {
		c.add(name, "", "the file is no document: %v", err)
		return
	}
	if result != nil {
		theirs, err := verification.Read(doc)
		if err != nil {
			c.add(name, "", "the file is no verification result: %v", err)
			return
		}
		// Taken over, so that whatever else differs shows.
		mine := *result
		mine.StartedAt, mine.FinishedAt, mine.Resources, mine.Provenance.Environment = theirs.StartedAt, theirs.FinishedAt, theirs.Resources, theirs.Provenance.Environment
		again, err := writeDocument(mine)
		if err != nil || bytes.Equal(again, have) {
			return
		}
		want = again
	}
	expected, err := canon.Parse(want)
	if err != nil {
		c.add(name, "", "the file cannot be compared: %v", err)
		return
	}
	before := len(c.Differences)
	c.walk(name, "", expected, doc, before)
	if len(c.Differences) == before {
		c.add(name, "", "the document is the same, but it is written in another way")
	}
}

func (c *Comparison) walk(file, path string, want, have canon.Value, before int) {
	full := func() bool { return len(c.Differences)-before >= maxDifferences }
	if field.Equal(want, have) || full() {
		return
	}
	switch w := want.(type) {
	case *canon.Object:
		h, ok := have.(*canon.Object)
		if !ok {
			break
		}
		for _, key := range allKeys(w, h) {
			if full() {
				return
			}
			inWant, inHave := hasKey(w, key), hasKey(h, key)
			a, _ := w.Get(key)
			b, _ := h.Get(key)
			switch at := canon.Pointer(path, key); {
			case !inHave:
				c.add(file, at, "the key is absent")
			case !inWant:
				c.add(file, at, "the run does not write this key")
			default:
				c.walk(file, at, a, b, before)
			}
		}
		return
	case canon.Array:
		h, ok := have.(canon.Array)
		if !ok || len(h) != len(w) {
			break
		}
		for i := range w {
			c.walk(file, canon.Element(path, i), w[i], h[i], before)
		}
		return
	}
	c.add(file, path, "the value differs")
}

func hasKey(o *canon.Object, key string) bool { _, ok := o.Get(key); return ok }

func allKeys(a, b *canon.Object) []string {
	all := map[string]bool{}
	for _, k := range slices.Concat(a.Keys(), b.Keys()) {
		all[k] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// firstLine is the first line, counted from 1, in which two texts differ.
func firstLine(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return 1 + bytes.Count(a[:n], []byte("\n"))
}
