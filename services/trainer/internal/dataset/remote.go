package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/trainer/internal/source"
)

// readRemote fetches the files of a backend into a temporary folder and reads them there. The folder is removed after
// reading, so that no partial file is ever found.
func readRemote(ctx context.Context, s Source) (*Rows, error) {
	if s.Remote == nil {
		return nil, fmt.Errorf("backend %s is not configured here", s.Backend)
	}
	if s.Backend == modelrepo.BackendDataplane {
		return readDataplane(ctx, s)
	}
	dir, err := os.MkdirTemp(s.CacheDir, "fetch-")
	if err != nil {
		return nil, fmt.Errorf("folder for fetched files: %w", err)
	}
	defer os.RemoveAll(dir)
	var files []source.File
	var uri string
	if s.Backend == modelrepo.BackendPublicArchive {
		var file source.File
		file, err = s.Remote.Archive(ctx, *s.Set.Backends.PublicArchive, dir)
		files, uri = []source.File{file}, withoutSecrets(s.Set.Backends.PublicArchive.URL)
	} else {
		store := s.Set.Backends.ObjectStore
		files, err = s.Remote.Objects(ctx, *store, s.Set.Files, dir)
		uri = "s3://" + store.Bucket + "/" + strings.TrimPrefix(store.Prefix, "/")
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("folder for fetched files: %w", err)
	}
	defer root.Close()
	rows, err := readFiles(ctx, root, files, s.Set)
	if err == nil {
		rows.URI = uri
	}
	return rows, err
}

// withoutSecrets removes signatures and passwords from an address: the tracker shows it to everybody.
func withoutSecrets(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return u.String()
}

// readDataplane builds columns from the records of a dataplane, as they arrive.
func readDataplane(ctx context.Context, s Source) (*Rows, error) {
	if s.Set.Format == "swf" {
		return nil, errors.New("a dataplane gives records with columns, not a job log; declare the data set without format, and its columns by their names there")
	}
	rows := newRows(s.Set)
	digest := sha256.New()
	seen := map[string]bool{}
	columns := slices.Sorted(maps.Keys(s.Set.Columns))
	err := s.Remote.Items(ctx, *s.Set.Backends.Dataplane, digest, func(item source.Item) error {
		if rows.N == maxCSVRows {
			return fmt.Errorf("more than %d rows", maxCSVRows)
		}
		for _, name := range columns {
			spec := s.Set.Columns[name]
			from := spec.From
			if from == "" {
				from = name
			}
			value, ok := item[from]
			if ok {
				seen[name] = true
			}
			if err := rows.member(name, spec, value); err != nil {
				return fmt.Errorf("record %d, column %s: %w", rows.N+1, name, err)
			}
		}
		rows.N++
		return rows.checkHeld()
	})
	if err != nil {
		return nil, err
	}
	for _, name := range columns {
		if rows.N > 0 && !seen[name] {
			return nil, fmt.Errorf("dataplane %s: no record has the column %s", s.Set.Backends.Dataplane.Path, name)
		}
	}
	rows.File = make([]int, rows.N)
	rows.Version = "sha256:" + hex.EncodeToString(digest.Sum(nil))
	rows.URI = "dataplane:" + s.Set.Backends.Dataplane.Path
	rows.Origin = "recorded"
	return rows, nil
}

// member appends a JSON value to a column; none and null are missing.
func (r *Rows) member(name string, spec modelrepo.ColumnSpec, value json.RawMessage) error {
	text := string(value)
	if text == "null" {
		text = ""
	}
	switch {
	case text == "" || spec.Type == modelrepo.Vector:
		return r.cell(name, spec, text)
	case text[0] == '"':
		if err := json.Unmarshal(value, &text); err != nil {
			return err
		}
		if spec.Type == modelrepo.Number {
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return fmt.Errorf("%.80q is neither a number nor an instant (RFC 3339)", text)
			}
			r.Num[name] = append(r.Num[name], float64(at.UnixMicro())/1e6)
			r.held += numberBytes
			return nil
		}
	case text[0] == '{' || text[0] == '[':
		return fmt.Errorf("it is an object or a list, and the data set declares a %s", spec.Type)
	case spec.Type == modelrepo.Number && (text == "true" || text == "false"):
		text = map[string]string{"true": "1", "false": "0"}[text]
	}
	return r.cell(name, spec, text)
}
