package modelrepo

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Environments that a registry can describe; "base" alone means no environment.
var Environments = []string{"dev", "staging", "prod"}

// settings are the values that a registry may set for a model, or for all by its defaults.
type settings struct {
	// Name of the model; empty in the defaults.
	Name      string    `yaml:"name"`
	Enabled   bool      `yaml:"enabled"`
	Project   string    `yaml:"project"`
	Backend   string    `yaml:"backend"`
	Serving   Serving   `yaml:"serving"`
	Schedule  Schedule  `yaml:"schedule"`
	Resources Resources `yaml:"resources"`
}

func builtinSettings() settings {
	return settings{
		Enabled:   true,
		Project:   "default",
		Backend:   BackendLocal,
		Serving:   Serving{Aliases: slices.Clone(Aliases)},
		Schedule:  Schedule{Cron: "0 2 * * *", Timezone: "UTC", Enabled: true, ConcurrencyLimit: 1},
		Resources: Resources{Nodes: 1, CPUs: 4, Mem: "16G", Time: "2:00:00"},
	}
}

// registry is one file: a model.yaml overrides the registry's defaults, and the registry's models
// entry overrides model.yaml.
type registry struct {
	doc      *document
	defaults ast.Node
	models   map[string]ast.Node // by upper-case name
	used     map[string]bool
}

type registryFile struct {
	Version  int        `yaml:"version"`
	Defaults ast.Node   `yaml:"defaults"`
	Models   []ast.Node `yaml:"models"`
}

func loadRegistry(doc *document) *registry {
	var f registryFile
	if !doc.decode(&f) {
		return nil
	}
	if f.Version != 1 {
		doc.fault("version", "version is %d; this build reads version 1", f.Version)
	}
	r := &registry{doc: doc, models: map[string]ast.Node{}, used: map[string]bool{}}
	if f.Defaults != nil {
		if s := builtinSettings(); doc.decodeNode(f.Defaults, &s) {
			r.defaults = f.Defaults
			s.check(doc, "defaults.")
			if s.Name != "" {
				doc.fault("defaults.name", "defaults are for every model; put what is for %s under models", s.Name)
			}
		}
	}
	for _, n := range f.Models {
		entry := builtinSettings()
		if !doc.decodeNode(n, &entry) {
			continue
		}
		line := n.GetToken().Position.Line
		id := strings.ToUpper(entry.Name)
		if _, twice := r.models[id]; entry.Name == "" || twice {
			doc.faults = append(doc.faults, Fault{doc.name, line, "each entry of models needs a name, once"})
			continue
		}
		entry.check(doc, "")
		r.models[id] = n
	}
	return r
}

// unused reports entries for models that do not exist; they are most often misspelt.
func (r *registry) unused() {
	for _, id := range sortedKeys(r.models) {
		if !r.used[id] {
			r.doc.faults = append(r.doc.faults, Fault{r.doc.name, keyLine(r.models[id]), "names model " + id + ", which the repository does not have"})
		}
	}
}

// Registries lists the environments that the repository in dir has a registry for; base is not one.
func Registries(dir string) []string {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	return slices.DeleteFunc(slices.Clone(Environments), func(env string) bool {
		_, err := root.Stat("registries/" + env + ".yaml")
		return errors.Is(err, fs.ErrNotExist)
	})
}

// loadRegistries returns base and the environment's, those that exist.
func loadRegistries(root *os.Root, env string) (out []*registry, faults []Fault) {
	names := []string{"base"}
	if env != "" && env != "base" {
		names = append(names, env)
	}
	for _, n := range names {
		file := "registries/" + n + ".yaml"
		if _, err := root.Stat(file); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		doc, f := loadDocument(root, file)
		if doc == nil {
			faults = append(faults, f...)
			continue
		}
		if r := loadRegistry(doc); r != nil && len(doc.faults) == 0 {
			out = append(out, r)
		} else {
			faults = append(faults, doc.faults...)
		}
	}
	return out, faults
}
