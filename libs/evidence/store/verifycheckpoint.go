package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/libs/evidence/tree"
)

// What many findings of one cause are about.
const (
	logPart   = "log"
	notesPart = "notes"
)

// checkpoint compares the log of a size with the checkpoint over it.
func (v *verifier) checkpoint(t tx, size int64, root tree.Hash, occurred string) error {
	subject := fmt.Sprintf("checkpoint %d", size)
	var c checkpointRow
	if err := c.scan(t.row("SELECT "+checkpointColumns+" FROM checkpoints WHERE tree_size = ?", size)); err != nil {
		return err
	}
	v.out.Checked.Checkpoints++
	sound := c.root == tree.Hex(root)
	switch {
	case sound:
	case v.lostEvents > 0: // so that no later root can fit
	default:
		v.findIn(logPart, FindingTree, subject, "The events do not make up its root.")
	}
	if sound && (!spine.IsTimestamp(c.createdAt) || size > 0 && c.createdAt != occurred) {
		v.findIn(logPart, FindingCheckpoint, subject, "created_at is not the time of the event that it ends with.")
	}
	if !c.note.Valid {
		return nil
	}
	stated, err := openNote(c.note.String, v.options.PublicKey)
	switch want := (statement{originPrefix + v.storeID, size, root}); {
	case err != nil:
		v.findIn(logPart, FindingSignature, subject, "%v", err)
	case stated == want:
		v.out.Checked.SignedCheckpoints++
		if v.options.PublicKey != nil {
			v.out.Checked.SignedEvents = size
			if v.out.OldestSigned == 0 {
				v.out.OldestSigned = size
			}
		}
	case sound || stated.origin != want.origin || stated.size != size || tree.Hex(stated.root) != c.root:
		v.findIn(notesPart, FindingCheckpoint, subject, "Its note speaks of another log, size or root.")
	}
	return nil
}

// againstOlder is called where the log has the older checkpoint's size.
func (v *verifier) againstOlder(root tree.Hash) {
	if v.older.origin != originPrefix+v.storeID {
		v.find(FindingInconsistent, "older checkpoint", "It is another store's.")
	}
	if v.older.root != root {
		v.find(FindingInconsistent, "older checkpoint", "The first %d events are not those that it covers.", v.older.size)
	}
}

// parseCheckpoint parses a checkpoint that was saved earlier: a signed note, its
// text alone, or the API's document.
func parseCheckpoint(data []byte) (s statement, signed string, err error) {
	text := string(data)
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		value, err := canon.Parse(data, canon.ObjectRoot())
		if err != nil {
			return s, "", err
		}
		document := value.(*canon.Object)
		if kind, _ := document.Get("kind"); kind != "svc-event-log-checkpoint" {
			return s, "", errors.New("the document is no svc-event-log-checkpoint")
		}
		inner, _ := document.Get("checkpoint")
		o, _ := inner.(*canon.Object)
		origin, _ := o.Get("origin")
		size, _ := o.Get("tree_size")
		hash, _ := o.Get("root_hash")
		number, _ := size.(canon.Int)
		text, _ := hash.(string)
		var whole bool
		s.origin, _ = origin.(string)
		s.size, whole = number.Int64()
		if s.root, err = tree.ParseHex(strings.TrimPrefix(text, "sha256:")); err != nil || !whole || s.origin == "" {
			return s, "", errors.New("the document names no origin, tree_size and root_hash")
		}
		if given, _ := o.Get("signed_note"); given != nil {
			signed, _ = given.(string)
			stated, noteErr := openNote(signed, nil)
			if noteErr != nil || stated != s {
				err = errors.New("the document and its signed note disagree")
			}
		}
		return s, signed, err
	}
	if strings.Contains(text, "\n\n") {
		s, err = openNote(text, nil)
		return s, text, err
	}
	s, err = parseStatement(text)
	return s, "", err
}
