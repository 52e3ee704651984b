package chain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// AnchorFormat names the format of a file of anchors.
const AnchorFormat = "platform-audit-anchors/v1"

// Anchors are the last known checkpoint of each tenant's chain, kept apart from it. Each records a true past state, so
// the chain must contain it for ever, no matter who wrote it down and how long ago.
type Anchors map[string]Checkpoint

type anchorFile struct {
	Format  string  `json:"format"`
	Anchors Anchors `json:"anchors"` // by tenant
}

// ReadAnchors reads the file at path; without one there are none.
func ReadAnchors(path string) (Anchors, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Anchors{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("audit anchors: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	var f anchorFile
	if err := d.Decode(&f); err != nil || f.Format != AnchorFormat || f.Anchors == nil {
		return nil, fmt.Errorf("audit anchors: %s is not a file of the format %s", path, AnchorFormat)
	}
	return f.Anchors, nil
}

// RaiseAnchors writes the higher anchors of each tenant into the file at path, atomically. Of two concurrent writers
// one may win: the file then holds a lower anchor than it could, which is still true.
func RaiseAnchors(path string, with Anchors) error {
	have, err := ReadAnchors(path)
	if err != nil {
		return err
	}
	raised := false
	for tenant, c := range with {
		if c.Seq > have[tenant].Seq {
			have[tenant], raised = c, true
		}
	}
	if !raised {
		return nil
	}
	if err := replaceFile(path, ".audit-anchors-*", anchorFile{AnchorFormat, have}); err != nil {
		return fmt.Errorf("audit anchors: %w", err)
	}
	return nil
}

// replaceFile atomically replaces the file at path with v as JSON; temporary is the name pattern of the file until
// then.
func replaceFile(path, temporary string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), temporary) // 0600
	if err != nil {
		return err
	}
	_, werr := tmp.Write(append(raw, '\n'))
	if err = errors.Join(werr, tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}
