package modelrepo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// Repo is the content of a model repository, with the registry of one environment applied.
type Repo struct {
	// Dir is the folder it was read from.
	Dir string
	// Env is dev, staging, prod or "".
	Env string
	// Models by upper-case name; only sound ones.
	Models map[string]*Model
	// Datasets by name; only sound ones.
	Datasets map[string]*Dataset
	// Faults of all files, by file and line.
	Faults []Fault
}

// Open reads the repository in dir with registries/base.yaml and, if env is not empty, registries/<env>.yaml.
// Faulty files are skipped and listed in Faults; the error is for a folder that is no model repository at all.
func Open(dir, env string) (*Repo, error) {
	if env != "" && env != "base" && !slices.Contains(Environments, env) {
		return nil, fmt.Errorf("environment %q: want %s", env, strings.Join(Environments, ", "))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open model repository: %w", err)
	}
	defer root.Close()
	if st, err := root.Stat("models"); err != nil || !st.IsDir() {
		return nil, fmt.Errorf("%s is no model repository: it has no folder models", dir)
	}
	r := &Repo{Dir: dir, Env: env, Models: map[string]*Model{}, Datasets: map[string]*Dataset{}}
	r.readDatasets(root)
	regs, faults := loadRegistries(root, env)
	r.Faults = append(r.Faults, faults...)
	if env != "" && env != "base" {
		if _, err := root.Stat("registries/" + env + ".yaml"); err != nil {
			r.Faults = append(r.Faults, Fault{File: "registries/" + env + ".yaml", Msg: "the environment has no registry; base alone is in force"})
		}
	}
	r.readModels(root, regs)
	for _, reg := range regs {
		reg.unused()
		r.Faults = append(r.Faults, reg.doc.faults...)
	}
	slices.SortFunc(r.Faults, func(a, b Fault) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		return a.Line - b.Line
	})
	return r, nil
}

// maxEntries limits the files and folders of one folder: names are compared with each other.
const maxEntries = 1_000

// isIgnored are names kept for drafts and tools.
func isIgnored(name string) bool { return strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".") }

func (r *Repo) list(root *os.Root, dir string) []fs.DirEntry {
	entries, err := fs.ReadDir(root.FS(), dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Faults = append(r.Faults, Fault{File: dir, Msg: err.Error()})
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return isIgnored(e.Name()) })
	if len(entries) > maxEntries {
		r.Faults = append(r.Faults, Fault{File: dir, Msg: fmt.Sprintf("holds %d files and folders; only the first %d are read", len(entries), maxEntries)})
		entries = entries[:maxEntries]
	}
	return entries
}

func (r *Repo) readDatasets(root *os.Root) {
	for _, e := range r.list(root, "datasets") {
		if path.Ext(e.Name()) != ".yaml" {
			continue
		}
		doc, faults := loadDocument(root, "datasets/"+e.Name())
		if doc == nil {
			r.Faults = append(r.Faults, faults...)
			continue
		}
		if ds := loadDataset(doc); ds != nil && len(doc.faults) == 0 {
			ds.File = doc.source
			r.Datasets[ds.Name] = ds
		}
		r.Faults = append(r.Faults, doc.faults...)
	}
}

func (r *Repo) readModels(root *os.Root, regs []*registry) {
	for _, task := range r.list(root, "models") {
		if !task.IsDir() {
			continue
		}
		for _, e := range r.list(root, "models/"+task.Name()) {
			dir := path.Join("models", task.Name(), e.Name())
			if !e.IsDir() {
				continue
			}
			// Also of a model whose file is faulty: one fault is enough.
			for _, reg := range regs {
				reg.used[strings.ToUpper(e.Name())] = true
			}
			doc, faults := loadDocument(root, dir+"/model.yaml")
			if doc == nil {
				r.Faults = append(r.Faults, faults...)
				continue
			}
			m := r.model(doc, dir, regs)
			if m != nil && len(doc.faults) == 0 {
				r.Models[m.ID()] = m
			}
			r.Faults = append(r.Faults, doc.faults...)
		}
	}
}

func (r *Repo) model(doc *document, dir string, regs []*registry) *Model {
	s := builtinSettings()
	for _, reg := range regs {
		if reg.defaults != nil {
			reg.doc.decodeNode(reg.defaults, &s)
		}
	}
	m := &Model{
		Dir:       dir,
		File:      doc.source,
		Estimator: Estimator{Seed: 42},
		Split:     Split{Fractions: []float64{0.6, 0.2, 0.2}, Seed: 42},
	}
	m.apply(s)
	if !doc.decode(m) {
		return nil
	}
	id := m.ID()
	for _, reg := range regs {
		if n, ok := reg.models[id]; ok {
			entry := m.settings()
			reg.doc.decodeNode(n, &entry)
			m.apply(entry)
		}
	}
	if m.Serving.ModelID == "" {
		m.Serving.ModelID = strings.ToLower(m.Name)
	}
	m.validate(doc)
	for i, md := range m.Datasets {
		ds, ok := r.Datasets[md.Name]
		if !ok {
			doc.fault(fmt.Sprintf("datasets[%d].name", i), "data set %q is not declared, or its file has faults; sound ones are: %s", md.Name, strings.Join(sortedKeys(r.Datasets), ", "))
			continue
		}
		m.against(doc, i, ds)
	}
	for _, other := range r.Models {
		if other.ID() == id {
			doc.fault("name", "%s declares the same name", other.Dir)
		}
		if other.Serving.ModelID == m.Serving.ModelID {
			doc.fault("serving.model_id", "%s has the same model_id %s", other.Dir, m.Serving.ModelID)
		}
		if m.BusUUID != "" && strings.EqualFold(other.BusUUID, m.BusUUID) {
			doc.fault("bus_uuid", "%s has the same bus_uuid", other.Dir)
		}
	}
	m.deriveSchemas()
	return m
}

func (m *Model) settings() settings {
	return settings{m.Name, m.Enabled, m.Project, m.Backend, m.Serving, m.Schedule, m.Resources}
}

func (m *Model) apply(s settings) {
	m.Enabled, m.Project, m.Backend, m.Serving, m.Schedule, m.Resources = s.Enabled, s.Project, s.Backend, s.Serving, s.Schedule, s.Resources
}

// ID is the model's name on the platform: upper-case.
func (m *Model) ID() string { return strings.ToUpper(m.Name) }

// TrackerName is the model's name in the tracker: lower-case.
func (m *Model) TrackerName() string { return m.Serving.ModelID }

// Dataset returns the data set of that name as the model uses it; "" is the default, the first.
func (m *Model) Dataset(name string) (*ModelDataset, bool) {
	for i := range m.Datasets {
		if name == "" || strings.EqualFold(m.Datasets[i].Name, name) {
			return &m.Datasets[i], true
		}
	}
	return nil, false
}

// DatasetNames lists the data sets of the model, the default first.
func (m *Model) DatasetNames() []string {
	out := make([]string, len(m.Datasets))
	for i, d := range m.Datasets {
		out[i] = d.Name
	}
	return out
}

// Model finds a model by name in any case.
func (r *Repo) Model(name string) (*Model, bool) {
	m, ok := r.Models[strings.ToUpper(name)]
	return m, ok
}

// Names lists the models by upper-case name, sorted.
func (r *Repo) Names() []string { return sortedKeys(r.Models) }

// deriveSchemas writes the JSON schemas that the author left out, for the default data set.
func (m *Model) deriveSchemas() {
	if len(m.Datasets) == 0 {
		return
	}
	d := m.Datasets[0]
	if m.Inference.InputSchema == nil {
		props := map[string]any{}
		required := make([]any, 0, len(d.Features))
		for _, f := range d.Features {
			required = append(required, f.Column)
			switch f.Kind {
			case Vector:
				props[f.Column] = map[string]any{"type": "array", "items": map[string]any{"type": "number"}, "minItems": f.Length, "maxItems": f.Length}
			case Category:
				props[f.Column] = map[string]any{"type": "string"}
			default:
				props[f.Column] = map[string]any{"type": "number"}
			}
		}
		m.Inference.InputSchema = map[string]any{"type": "object", "properties": props, "required": required, "additionalProperties": false}
	}
	if m.Inference.OutputSchema == nil {
		out := map[string]any{"type": "number"}
		if m.Type != Regression {
			out = map[string]any{"type": "string"}
			if len(d.Target.Labels) > 0 {
				out["enum"] = d.Target.Labels
			}
		}
		if d.Target.Unit != "" {
			out["x-unit"] = d.Target.Unit
		}
		m.Inference.OutputSchema = out
	}
}
