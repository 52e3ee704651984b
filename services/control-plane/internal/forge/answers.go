package forge

import (
	"encoding/json"
	"errors"
	"io"
	"path/filepath"

	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// readAnswers reads the lines of a child; members missing from the last line keep their earlier values.
func readAnswers(out io.Reader, r request) (last response, err error) {
	d := json.NewDecoder(io.LimitReader(out, maxChildOutput))
	for {
		next := response{}
		if err := d.Decode(&next); err != nil {
			if errors.Is(err, io.EOF) {
				return last, nil
			}
			return last, errForeignAnswer // the decoder's own error may quote megabytes
		}
		if next, err = checkAnswer(next, r); err != nil {
			return last, err
		}
		if next.Commit.SHA == "" {
			next.Commit.SHA = last.Commit.SHA
		}
		if next.Stage == "" {
			next.Stage = last.Stage
		}
		if last = next; last.Done {
			return last, nil
		}
	}
}

var errForeignAnswer = errors.New("the reader's answer is not one that it gives")

// checkAnswer refuses answers that a sound child never gives, and truncates texts. The repository that a child reads
// may have taken it over, so its answers are checked again here.
func checkAnswer(a response, r request) (response, error) {
	if !isCommitOrEmpty(a.Commit.SHA) || len(a.Files) > 20*maxFiles { // the old and the new name of each changed file
		return response{}, errForeignAnswer
	}
	if a.Dir != "" && (filepath.Clean(a.Dir) != a.Dir || filepath.Dir(a.Dir) != filepath.Join(r.Slot, trees)) {
		return response{}, errForeignAnswer
	}
	for _, name := range a.Files {
		if !wire.Storable(name) {
			return response{}, errForeignAnswer
		}
	}
	if d := a.Diff; d != nil {
		if len(d.Files) > maxFiles || !isCommitOrEmpty(d.From) || !isCommitOrEmpty(d.To) {
			return response{}, errForeignAnswer
		}
		for _, f := range d.Files {
			if !wire.Storable(f.Path) || !wire.Storable(f.Status) || !wire.Storable(f.Patch) {
				return response{}, errForeignAnswer
			}
		}
	}
	a.Commit = newCommit(a.Commit.SHA, a.Commit.Author, a.Commit.Message)
	a.Fault = wire.TruncateText(a.Fault, maxText)
	return a, nil
}

func isCommitOrEmpty(sha string) bool {
	return sha == "" || isFullSHA(sha) && abbreviated.MatchString(sha)
}
