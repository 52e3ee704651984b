package forge

import (
	"encoding/json"
	"errors"
	"io"
	"path/filepath"

	"github.com/mlp-platform/platform/services/control-plane/internal/wire"
)

// readAnswers reads the lines of a child; what came before the last one stays where that is silent.
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

// checkAnswer refuses what a sound child never answers, and cuts texts. The repository that a child reads may have taken
// it over, so what it says is checked here again.
func checkAnswer(a response, r request) (response, error) {
	if !isCommitOrEmpty(a.Commit.SHA) || len(a.Files) > 20*maxFiles { // of each changed file, the old and the new name
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
