// Package samples holds every sample input of svc's commands: the files that `svc fixtures` writes, docs/svc.md shows
// and the commands' tests read. The files are the same bytes on every machine.
package samples

import (
	"embed"
	"io/fs"
	"path"
	"slices"
)

//go:embed all:files
var embedded embed.FS

// Files holds the samples, a folder an area.
var Files = sampleFS()

func sampleFS() fs.FS {
	f, err := fs.Sub(embedded, "files")
	if err != nil {
		panic(err) // the name is a constant
	}
	return f
}

// File returns one sample, named from its area on ("spine/run.json"); it panics on an unknown name.
func File(name string) []byte {
	data, err := fs.ReadFile(Files, name)
	if err != nil {
		panic(err)
	}
	return data
}

// List names all samples, sorted.
func List() []string {
	var names []string
	// Nothing here can fail: the tree is part of the program.
	_ = fs.WalkDir(Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path.Clean(name))
		}
		return err
	})
	slices.Sort(names)
	return names
}
