// Package schemas holds the JSON Schemas (draft 2020-12) of the product's documents.
// A released schema is never changed so that it refuses documents it accepted.
package schemas

import (
	"embed"
	"slices"
	"strings"
)

//go:embed *.schema.json
var files embed.FS

const suffix = ".schema.json"

// Names lists the schemas, sorted.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil { // the directory is in the binary
		panic(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), suffix))
	}
	slices.Sort(out)
	return out
}

// Get returns the text of a schema, and whether there is one of this name.
func Get(name string) ([]byte, bool) {
	if strings.ContainsAny(name, "/\\") {
		return nil, false
	}
	data, err := files.ReadFile(name + suffix)
	return data, err == nil
}

// ID is the $id of the schema with this name. References between schemas use it.
func ID(name string) string { return "urn:svc:schema:" + name + ":0.1" }

// IDs maps every name to its $id, as the status document shows them.
func IDs() map[string]string {
	out := map[string]string{}
	for _, name := range Names() {
		out[name] = ID(name)
	}
	return out
}
