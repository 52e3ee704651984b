package modelrepo

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Availability is the time at which the value of a column is known.
const (
	AtSubmit = "submit"
	AtEnd    = "end"
)

// Backends that data can be read from.
const (
	// BackendLocal reads files of the repository.
	BackendLocal         = "local"
	BackendPublicArchive = "public_archive"
	BackendObjectStore   = "object_store"
	BackendDataplane     = "dataplane"
)

// BackendNames are all of them.
var BackendNames = []string{BackendLocal, BackendPublicArchive, BackendObjectStore, BackendDataplane}

// Dataset is one datasets/<Name>.yaml.
type Dataset struct {
	// File is the one that it was read from.
	File SourceFile `yaml:"-"`
	Name string     `yaml:"name"`
	// Format of the files: csv, parquet or swf (Standard Workload Format). A set without files needs a generator.
	Format string `yaml:"format"`
	// Dialect of CSV files; the zero value is RFC 4180 in UTF-8.
	Dialect `yaml:",inline"`
	// Files are paths or globs relative to the repository.
	Files    []string `yaml:"files"`
	Backends Backends `yaml:"backends"`
	// Time names the columns, in seconds, between which a row's events lie; for SWF it is built in.
	Time      Span                  `yaml:"time"`
	Columns   map[string]ColumnSpec `yaml:"columns"`
	History   []History             `yaml:"history"`
	Generator *Generator            `yaml:"generator"`

	// Path of the file, relative to the repository.
	Path string `yaml:"-"`
}

// Generated reports whether the rows come from the generator alone; versions trained on them carry a tag for it.
func (d *Dataset) Generated() bool { return len(d.Files) == 0 && !d.Backends.remote() }

// Origin is the value of the tag data_origin.
func (d *Dataset) Origin() string {
	if d.Generated() {
		return "generated"
	}
	return "recorded"
}

// Backends are the places from which the files can be read.
type Backends struct {
	Local         *struct{}      `yaml:"local"`
	PublicArchive *PublicArchive `yaml:"public_archive"`
	ObjectStore   *ObjectStore   `yaml:"object_store"`
	Dataplane     *Dataplane     `yaml:"dataplane"`
}

// remote reports whether the rows can come from elsewhere than the repository.
func (b Backends) remote() bool {
	return b.PublicArchive != nil || b.ObjectStore != nil || b.Dataplane != nil
}

// PublicArchive is a file served over HTTPS.
type PublicArchive struct {
	URL    string `yaml:"url"`
	SHA256 string `yaml:"sha256"`
}

// ObjectStore is a bucket that speaks the S3 API.
type ObjectStore struct {
	Bucket string `yaml:"bucket"`
	Prefix string `yaml:"prefix"`
}

// Dataplane is a paged REST collection.
type Dataplane struct {
	Path string `yaml:"path"`
}

// Declared lists the names of the backends the data set has.
func (b Backends) Declared() []string {
	var out []string
	if b.Local != nil {
		out = append(out, BackendLocal)
	}
	if b.PublicArchive != nil {
		out = append(out, BackendPublicArchive)
	}
	if b.ObjectStore != nil {
		out = append(out, BackendObjectStore)
	}
	if b.Dataplane != nil {
		out = append(out, BackendDataplane)
	}
	return out
}

// Span names two columns that hold seconds since one origin.
type Span struct {
	Submit string `yaml:"submit"`
	End    string `yaml:"end"`
}

// ColumnSpec declares a column.
type ColumnSpec struct {
	Type   Kind `yaml:"type"`
	Length int  `yaml:"length"`
	// From is the column's name in the files; default its own name.
	From string `yaml:"from"`
	// Available is submit or end: when the value is known. It has no default, so that an omission cannot cause leakage.
	Available string `yaml:"available"`
}

// History derives columns from the rows of the same group that had ended when a row was submitted.
type History struct {
	// By lists the columns whose values make the group.
	By []string `yaml:"by"`
	// Of is the number that is summarised.
	Of string `yaml:"of"`
	// Stats are among HistoryStats.
	Stats []string `yaml:"stats"`
}

// HistoryStats are the last value, the median of the last five, the median of all, the largest, and the count. A group
// without an ended row has -1 for the first four and 0 rows counted as -1 too, so that "none" looks the same in every
// column.
var HistoryStats = []string{"last", "median5", "median", "max", "count"}

// Column is the name of the derived column: <of>_<stat>_by_<group columns>.
func (h History) Column(stat string) string {
	return fmt.Sprintf("%s_%s_by_%s", h.Of, stat, strings.Join(h.By, "_"))
}

// Generator makes rows of the data set's schema without any file: for dummy runs, and as the data of sample sets.
type Generator struct {
	// Kind is embedding_families, jobs or table.
	Kind string `yaml:"kind"`
	Seed int64  `yaml:"seed"`
	// Rows of a full run, when the data set has no files.
	Rows int `yaml:"rows"`
	// Families (embedding_families) of jobs, each with its own centroid, mean power and class.
	Families int `yaml:"families"`
	// EmbeddingNoise is the standard deviation of each coordinate around the unit centroid.
	EmbeddingNoise float64 `yaml:"embedding_noise"`
	// PowerWatts is the range of the families' mean power; PowerNoise the deviation within a family, in watts.
	PowerWatts []float64 `yaml:"power_watts"`
	PowerNoise float64   `yaml:"power_noise"`
	// ClassNoise is the share of rows whose class is the other one.
	ClassNoise float64 `yaml:"class_noise"`
}

// Generators of this build.
var Generators = []string{"embedding_families", "jobs", "table"}

// Formats of this build.
var Formats = []string{"csv", "parquet", "swf"}

// SWFColumns are the fields of a Standard Workload Format record in their order, by our names.
var SWFColumns = []string{
	"job", "submit", "wait", "run", "procs", "cpu_avg", "mem", "req_procs", "req_time", "req_mem", "status",
	"user", "group", "app", "queue", "partition", "prev", "think",
}

// swfDerived are columns the SWF reader adds: hour 0..23 and weekday (Monday 0) of the submit time in the log's
// zone, and end = submit + wait + run.
var swfDerived = []string{"hour", "weekday", "end"}

// swfAtEnd are the fields that are unknown when a job is submitted.
var swfAtEnd = []string{"wait", "run", "cpu_avg", "mem", "status", "end"}

// Column returns a column that models can use: declared or derived from history.
func (d *Dataset) Column(name string) (ColumnSpec, bool) {
	if c, ok := d.Columns[name]; ok {
		return c, true
	}
	for _, h := range d.History {
		for _, s := range h.Stats {
			if h.Column(s) == name {
				return ColumnSpec{Type: Number, Available: AtSubmit}, true
			}
		}
	}
	return ColumnSpec{}, false
}

func loadDataset(doc *document) *Dataset {
	ds := &Dataset{Path: doc.name}
	if !doc.decode(ds) {
		return nil
	}
	if want := strings.TrimSuffix(path.Base(doc.name), ".yaml"); ds.Name != want {
		doc.fault("name", "name is %q; it must be the file's name, %q", ds.Name, want)
	}
	ds.checkSource(doc)
	ds.checkColumns(doc)
	ds.checkHistory(doc)
	ds.checkGenerator(doc)
	return ds
}

func (d *Dataset) checkSource(doc *document) {
	fetched := d.Backends.PublicArchive != nil || d.Backends.ObjectStore != nil
	if len(d.Files) == 0 && !fetched {
		if d.Generator == nil && !d.Backends.remote() {
			doc.fault("files", "the data set has neither files nor a generator; name one")
		}
		if d.Format != "" {
			doc.fault("format", "format %q describes files, but the data set has none", d.Format)
		}
	} else if !slices.Contains(Formats, d.Format) {
		doc.fault("format", "format %q is not read by this build; it reads %s", d.Format, strings.Join(Formats, " and "))
	}
	d.Dialect.check(doc, d.Format)
	if d.Backends.Local != nil && len(d.Files) == 0 && d.Generator == nil {
		doc.fault("backends.local", "backend local reads files or a generator's rows, and the data set has neither")
	}
	d.Backends.check(doc)
	for i, f := range d.Files {
		if err := checkPath(f); err != nil {
			doc.fault(fmt.Sprintf("files[%d]", i), "%v", err)
		}
	}
	if len(d.Backends.Declared()) == 0 {
		doc.fault("backends", "no backend; add \"local: {}\" if the files lie in the repository")
	}
	if d.Format == "swf" && d.Time == (Span{}) {
		d.Time = Span{Submit: "submit", End: "end"}
	}
	for _, c := range []struct{ key, name string }{{"submit", d.Time.Submit}, {"end", d.Time.End}} {
		if c.name == "" {
			continue
		}
		if spec, ok := d.Columns[c.name]; !ok || spec.Type != Number {
			doc.fault("time."+c.key, "time.%s names %q, which is no number column of the data set", c.key, c.name)
		}
	}
}

// check reports faults in the backends.
func (b Backends) check(doc *document) {
	if a := b.PublicArchive; a != nil {
		u, err := url.Parse(a.URL)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
			doc.fault("backends.public_archive", "url must be an https address without a credential")
		}
		if !sha256Digest().MatchString(a.SHA256) {
			doc.fault("backends.public_archive", "sha256 must be the 64 hex digits of the file's digest")
		}
	}
	if o := b.ObjectStore; o != nil && !bucketName().MatchString(o.Bucket) {
		doc.fault("backends.object_store", "bucket %q must be 3 to 63 lower-case letters, digits, dots and hyphens", o.Bucket)
	}
	if d := b.Dataplane; d != nil {
		u, err := url.Parse(d.Path)
		if err != nil || u.Scheme != "" || u.Host != "" || u.RawQuery != "" || u.Fragment != "" || !strings.HasPrefix(d.Path, "/") || slices.Contains(strings.Split(u.Path, "/"), "..") {
			doc.fault("backends.dataplane", "path %q must begin with a slash and have no host, query or \"..\"", d.Path)
		}
	}
}

// checkPath keeps files inside the repository; os.Root does so too when they are opened, but later.
func checkPath(p string) error {
	if p == "" || strings.HasPrefix(p, "/") || strings.Contains(p, "\\") || slices.Contains(strings.Split(p, "/"), "..") {
		return fmt.Errorf("path %q must be relative to the repository, with forward slashes and no \"..\"", p)
	}
	if _, err := path.Match(p, ""); err != nil {
		return fmt.Errorf("path %q is a broken pattern: %w", p, err)
	}
	return nil
}

func (d *Dataset) checkColumns(doc *document) {
	if len(d.Columns) == 0 {
		doc.fault("columns", "no columns; name at least one feature and the target")
	}
	for _, name := range sortedKeys(d.Columns) {
		c, at := d.Columns[name], "columns."+name
		if !columnName().MatchString(name) {
			doc.fault(at, "column name %q must be letters, digits and underscores, starting with a letter", name)
		}
		checkKind(doc, at, c.Type, c.Length)
		if c.Available != AtSubmit && c.Available != AtEnd {
			doc.fault(at, "column %s: available is %q; say submit or end: when is the value known?", name, c.Available)
		}
		if d.Format != "swf" {
			continue
		}
		src := c.From
		if src == "" {
			src = name
		}
		switch known := slices.Concat(SWFColumns, swfDerived); {
		case !slices.Contains(known, src):
			doc.fault(at, "column %s comes from %q, which the format does not have; it has %s", name, src, strings.Join(known, ", "))
		case c.Type == Vector:
			doc.fault(at, "column %s cannot be a vector: the format holds numbers", name)
		case c.Available == AtSubmit && slices.Contains(swfAtEnd, src):
			doc.fault(at, "column %s comes from %q, which is known only at end", name, src)
		}
	}
}

func checkKind(doc *document, at string, k Kind, length int) {
	switch {
	case k != Number && k != Category && k != Vector:
		doc.fault(at, "kind %q; want number, category or vector", k)
	case k == Vector && (length < 1 || length > 65536):
		doc.fault(at, "a vector needs a length of 1 to 65536")
	case k != Vector && length != 0:
		doc.fault(at, "length is for vectors only")
	}
}

func (d *Dataset) checkHistory(doc *document) {
	if len(d.History) > 0 && (d.Time.Submit == "" || d.Time.End == "") {
		doc.fault("history", "history needs time: {submit: <column>, end: <column>}, to know what had ended when")
	}
	for i, h := range d.History {
		at := fmt.Sprintf("history[%d]", i)
		if len(h.By) == 0 || len(h.Stats) == 0 {
			doc.fault(at, "history needs by and stats")
		}
		for _, b := range h.By {
			if c, ok := d.Columns[b]; !ok || c.Type == Vector || c.Available != AtSubmit {
				doc.fault(at, "history groups by %q, which is no number or category column known at submit", b)
			}
		}
		if c, ok := d.Columns[h.Of]; !ok || c.Type != Number {
			doc.fault(at, "history is of %q, which is no number column", h.Of)
		}
		for _, s := range h.Stats {
			if !slices.Contains(HistoryStats, s) {
				doc.fault(at, "unknown statistic %q; known are %s", s, strings.Join(HistoryStats, ", "))
			}
			if _, taken := d.Columns[h.Column(s)]; taken {
				doc.fault(at, "column %s is declared, and history makes it too", h.Column(s))
			}
		}
	}
}

func (d *Dataset) checkGenerator(doc *document) {
	g := d.Generator
	if g == nil {
		return
	}
	if !slices.Contains(Generators, g.Kind) {
		doc.fault("generator.kind", "unknown generator %q; known are %s", g.Kind, strings.Join(Generators, ", "))
	}
	if g.Rows < 0 || g.Rows > 1_000_000 || (d.Generated() && g.Rows < 10) {
		doc.fault("generator.rows", "rows is %d; a set without files needs 10 to 1,000,000", g.Rows)
	}
	switch g.Kind {
	case "embedding_families":
		if g.Families < 2 || g.Families > 1000 {
			doc.fault("generator.families", "families is %d; want 2 to 1000", g.Families)
		}
		if len(g.PowerWatts) != 2 || g.PowerWatts[0] > g.PowerWatts[1] {
			doc.fault("generator.power_watts", "power_watts must be [lowest, highest]")
		}
		if g.EmbeddingNoise < 0 || g.PowerNoise < 0 || g.ClassNoise < 0 || g.ClassNoise > 1 {
			doc.fault("generator", "noises must not be negative, class_noise at most 1")
		}
		for name, kind := range map[string]Kind{"embedding": Vector, "power_per_node_watts": Number, "pclass": Number} {
			if d.Columns[name].Type != kind {
				doc.fault("columns", "generator embedding_families makes the %s column %s, which is not declared so", kind, name)
			}
		}
	case "jobs":
		if d.Format != "swf" {
			doc.fault("generator.kind", "generator jobs makes job records; it needs format swf")
		}
	}
}
