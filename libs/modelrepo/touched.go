package modelrepo

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Touched lists the ids of the models that a change of the files concerns, in
// order: those whose folder, data set definition, local data or sources are
// among them, and all of them if a registry is. Files are relative to the
// repository, with forward slashes.
func (r *Repo) Touched(files []string) []string {
	out := []string{}
	for _, id := range r.Names() {
		if slices.ContainsFunc(files, r.concern(r.Models[id])) {
			out = append(out, id)
		}
	}
	return out
}

// concern returns a function that reports whether the change of a file concerns
// the model.
func (r *Repo) concern(m *Model) func(file string) bool {
	own := map[string]bool{}
	var data []string
	for _, d := range m.Datasets {
		set, ok := r.Datasets[d.Name]
		if !ok {
			continue
		}
		own[set.Path] = true
		if set.Backends.Local != nil {
			data = append(data, set.Files...)
		}
	}
	return func(file string) bool {
		file = path.Clean(file)
		if own[file] || isUnder(file, "registries") || isUnder(file, m.Dir) {
			return true
		}
		return slices.ContainsFunc(data, func(pattern string) bool {
			ok, _ := path.Match(pattern, file) // checked when it was read
			return ok
		}) || slices.ContainsFunc(m.Sources, func(pattern string) bool { return ofSource(pattern, file) })
	}
}

func isUnder(file, dir string) bool { return strings.HasPrefix(file, dir+"/") }

// ofSource also matches files below a folder that the pattern names; in it **
// matches any number of folders.
func ofSource(pattern, file string) bool {
	pattern = path.Clean(pattern)
	if ok, _ := doublestar.Match(pattern, file); ok {
		return true
	}
	ok, _ := doublestar.Match(pattern+"/**", file)
	return ok
}
