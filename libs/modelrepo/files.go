package modelrepo

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
)

// Limits of the files shown beside a model.
const (
	maxReadme = 1 << 20
	maxImage  = 8 << 20
)

// imageName keeps to one path element, so nothing outside images/ can be named.
var imageName = lazyPattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}\.(png|jpg|jpeg|gif|webp|svg)$`)

var imageTypes = map[string]string{
	"png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp", "svg": "image/svg+xml",
}

// Readme returns the model's README.md and the hex SHA-256 of its bytes; fs.ErrNotExist if there is none. It is a
// regular file of at most 1 MiB; symbolic links are not followed.
func (r *Repo) Readme(m *Model) (text []byte, sha string, err error) {
	text, err = r.file(m.Dir+"/README.md", maxReadme)
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(text)
	return text, hex.EncodeToString(sum[:]), nil
}

// Image returns a file of the model's images folder and its media type; fs.ErrNotExist if there is none of that
// name. It is a regular file of at most 8 MiB; symbolic links are not followed.
func (r *Repo) Image(m *Model, name string) (data []byte, mediaType string, err error) {
	ext := imageName().FindStringSubmatch(name)
	if ext == nil {
		return nil, "", fmt.Errorf("image %q: %w", name, fs.ErrNotExist)
	}
	data, err = r.file(m.Dir+"/images/"+name, maxImage)
	return data, imageTypes[ext[1]], err
}

func (r *Repo) file(name string, limit int64) ([]byte, error) {
	root, err := os.OpenRoot(r.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	b, err := readBounded(root, name, limit)
	if err != nil {
		return nil, fmt.Errorf("%s %w", name, err)
	}
	return b, nil
}
