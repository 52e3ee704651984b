// Package config resolves where mlp's services are and which credentials it sends: environment, then
// the named context, then the base of the file, then the built-in default.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/textfile"
)

// Key describes one setting that config set, show and unset know.
type Key struct {
	Name    string // as in `mlp config set <name>`
	Env     string // environment variable that wins over the file
	Default string
	Secret  bool   // shown as ***, prompted for without echo
	section string // urls or auth
	field   string // key inside the section
	Doc     string
}

// Keys lists every setting, in the order in which they are shown.
var Keys = []Key{
	{Name: "control_plane", Env: "CONTROL_PLANE_URL", Default: "http://localhost:18002", section: "urls", field: "control_plane", Doc: "control plane address"},
	{Name: "serving", Env: "SERVING_URL", Default: "http://localhost:18001", section: "urls", field: "serving", Doc: "inference address"},
	{Name: "tracker", Env: "TRACKING_URI", Default: "http://localhost:15000", section: "urls", field: "tracker", Doc: "experiment tracker address"},
	{Name: "orchestrator", Env: "ORCHESTRATOR_API_URL", Default: "http://localhost:14200/api", section: "urls", field: "orchestrator", Doc: "workflow orchestrator API address"},
	{Name: "dashboard", Env: "DASHBOARD_URL", Default: "http://localhost:8099", section: "urls", field: "dashboard", Doc: "dashboard address"},
	{Name: "bus", Env: "BUS_BRIDGE_URL", Default: "http://localhost:18003", section: "urls", field: "bus", Doc: "bus bridge address"},
	{Name: "assistant", Env: "ASSISTANT_URL", Default: "http://localhost:18004", section: "urls", field: "assistant", Doc: "cluster assistant address"},
	{Name: "control_plane_token", Env: "CONTROL_PLANE_TOKEN", Secret: true, section: "auth", field: "control_plane_token", Doc: "bearer token for the control plane"},
	{Name: "dashboard_token", Env: "DASHBOARD_TOKEN", Secret: true, section: "auth", field: "dashboard_token", Doc: "bearer token for the dashboard"},
	{Name: "tracker_token", Env: "MLFLOW_TRACKING_TOKEN", Secret: true, section: "auth", field: "tracker_token", Doc: "bearer token for the experiment tracker"},
	{Name: "orchestrator_token", Env: "PREFECT_API_KEY", Secret: true, section: "auth", field: "orchestrator_token", Doc: "bearer token for the workflow orchestrator"},
	{Name: "inference_token", Env: "SERVING_TOKEN", Secret: true, section: "auth", field: "inference_token", Doc: "bearer token for inference"},
	{Name: "assistant_key", Env: "ASSISTANT_KEY", Secret: true, section: "auth", field: "assistant_key", Doc: "key for the cluster assistant"},
}

// Find returns the key of that name, or a usage fault that lists the known ones.
func Find(name string) (Key, error) {
	for _, k := range Keys {
		if k.Name == name {
			return k, nil
		}
	}
	names := make([]string, len(Keys))
	for i, k := range Keys {
		names[i] = k.Name
	}
	return Key{}, fault.Usage("unknown config key %q; known: %s", name, strings.Join(names, ", "))
}

// Sections are the two tables of the file, at its top and in each context.
type Sections struct {
	URLs map[string]string `toml:"urls,omitempty"`
	Auth map[string]string `toml:"auth,omitempty"`
	// Session is how the dashboard token is renewed, if single sign-on gave it.
	Session *Session `toml:"session,omitempty"`
}

func (s *Sections) table(k Key) *map[string]string {
	if k.section == "urls" {
		return &s.URLs
	}
	return &s.Auth
}

// layout is the schema of the file for strict decoding: decoding into the maps of File would accept any key.
type layout struct {
	ActiveContext string `toml:"active_context"`
	layoutSections
	Contexts map[string]layoutSections `toml:"contexts"`
}

type layoutSections struct {
	URLs struct {
		ControlPlane string `toml:"control_plane"`
		Serving      string `toml:"serving"`
		Tracker      string `toml:"tracker"`
		Orchestrator string `toml:"orchestrator"`
		Dashboard    string `toml:"dashboard"`
		Assistant    string `toml:"assistant"`
		Bus          string `toml:"bus"`
	} `toml:"urls"`
	Auth struct {
		ControlPlaneToken string `toml:"control_plane_token"`
		DashboardToken    string `toml:"dashboard_token"`
		TrackerToken      string `toml:"tracker_token"`
		OrchestratorToken string `toml:"orchestrator_token"`
		InferenceToken    string `toml:"inference_token"`
		AssistantKey      string `toml:"assistant_key"`
	} `toml:"auth"`
	Session Session `toml:"session"`
}

// File is the configuration file.
type File struct {
	ActiveContext string `toml:"active_context,omitempty"`
	Sections
	Contexts map[string]*Sections `toml:"contexts,omitempty"`

	path string
}

// Path returns the configuration file: PLATFORM_CONFIG, else ~/.config/platform/config.toml. Without a home directory
// it is empty, and reading gives an empty configuration.
func Path(getenv func(string) string) string {
	if p := getenv("PLATFORM_CONFIG"); p != "" {
		return p
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".config", "platform", "config.toml")
	}
	return ""
}

// Load reads the file at path; a missing one is empty, a broken one a fault naming the line.
func Load(path string) (*File, error) {
	f := &File{path: path}
	if path == "" {
		return f, nil
	}
	data, err := readLimited(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, nil
	case err != nil:
		return nil, fault.New("config_unreadable", "cannot read the configuration file: %v", err)
	}
	if data, err = textfile.Clean(data); err == nil {
		err = toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&layout{})
	}
	if err == nil {
		err = toml.Unmarshal(data, f)
	}
	if err != nil {
		where, what := path, err.Error()
		var syntax *toml.DecodeError
		var strict *toml.StrictMissingError
		switch {
		case errors.As(err, &strict) && len(strict.Errors) > 0:
			row, _ := strict.Errors[0].Position()
			where, what = fmt.Sprintf("%s:%d", path, row), "unknown key "+strings.Join(strict.Errors[0].Key(), ".")
		case errors.As(err, &syntax):
			row, _ := syntax.Position()
			where, what = fmt.Sprintf("%s:%d", path, row), describeDecodeError(syntax)
		}
		return nil, fault.New("config_broken", "the configuration file is broken at %s: %.500s", where, what).
			WithHint("mend that line, or move the file away and run: mlp config init")
	}
	return f, nil
}

// maxFile limits the file, in bytes. The largest sensible one has some dozen contexts; a file that PLATFORM_CONFIG names by
// mistake may have gigabytes or no end.
const maxFile = 256 << 10

func readLimited(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read from
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	return data, err
}

// describeDecodeError names the key of a value of the wrong type. The library names the Go type it was decoded into.
func describeDecodeError(err *toml.DecodeError) string {
	text := strings.TrimPrefix(err.Error(), "toml: ")
	found, mismatch := strings.CutPrefix(text, "cannot decode TOML ")
	if mismatch {
		found, _, _ = strings.Cut(found, " into ")
	} else if found, mismatch = strings.CutPrefix(text, "cannot store "); mismatch {
		found, _, _ = strings.Cut(found, " in ")
		found = strings.TrimPrefix(strings.TrimPrefix(found, "an "), "a ")
	}
	if !mismatch || len(err.Key()) == 0 {
		return text
	}
	wanted := "a string"
	if isTableKey(err.Key()) {
		wanted = "a table"
	}
	return fmt.Sprintf("%s must be %s; it has the type %s", strings.Join(err.Key(), "."), wanted, found)
}

// isTableKey reports whether the file has a table, not a setting, under this key.
func isTableKey(key toml.Key) bool {
	if len(key) > 0 && key[0] == "contexts" {
		if len(key) <= 2 {
			return true
		}
		key = key[2:]
	}
	return len(key) == 1 && (key[0] == "urls" || key[0] == "auth")
}

// Save replaces the file in one rename, readable by its owner alone.
func (f *File) Save() error {
	if f.path == "" {
		return fault.New("config_no_home", "there is no home directory to keep a configuration file in").
			WithHint("set PLATFORM_CONFIG to a file path")
	}
	data, err := toml.Marshal(f)
	if err != nil {
		return fmt.Errorf("encode configuration: %w", err)
	}
	dir := filepath.Dir(f.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fault.New("config_unwritable", "cannot make the configuration folder: %v", err)
	}
	tmp, err := os.CreateTemp(dir, ".config-*.toml") // 0600 by definition
	if err != nil {
		return fault.New("config_unwritable", "cannot write the configuration file: %v", err)
	}
	defer os.Remove(tmp.Name()) // a no-op once renamed
	_, err = tmp.Write(data)
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return fault.New("config_unwritable", "cannot write the configuration file: %v", err)
	}
	if err := os.Rename(tmp.Name(), f.path); err != nil {
		return fault.New("config_unwritable", "cannot replace the configuration file: %v", err)
	}
	return nil
}

// Location returns the file's path, for messages.
func (f *File) Location() string { return f.path }

// ContextNames lists the named contexts, sorted.
func (f *File) ContextNames() []string {
	names := make([]string, 0, len(f.Contexts))
	for n := range f.Contexts {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// Set stores value under key, in the named context or, when that is empty, at the base.
func (f *File) Set(key Key, context, value string) error {
	if key.section == "urls" {
		if err := CheckURL(key.Name, value); err != nil {
			return err
		}
	}
	s := &f.Sections
	if context != "" {
		if f.Contexts == nil {
			f.Contexts = map[string]*Sections{}
		}
		if f.Contexts[context] == nil {
			f.Contexts[context] = &Sections{}
		}
		s = f.Contexts[context]
	}
	t := s.table(key)
	if *t == nil {
		*t = map[string]string{}
	}
	(*t)[key.field] = value
	if key.Name == dashboardToken {
		s.Session = nil // it renews another token
	}
	return nil
}

// Unset removes key and reports whether it was there.
func (f *File) Unset(key Key, context string) bool {
	s := &f.Sections
	if context != "" {
		if s = f.Contexts[context]; s == nil {
			return false
		}
	}
	t := s.table(key)
	_, ok := (*t)[key.field]
	delete(*t, key.field)
	if key.Name == dashboardToken {
		s.Session = nil
	}
	return ok
}

// Value is one resolved setting and where it came from: environment, context:<name>, file or default.
type Value struct {
	Key    Key
	Value  string
	Source string
}

// Resolved is the configuration in force.
type Resolved struct {
	Context string
	// Overriding are the environment variables that are set to something else than the named context says.
	Overriding []string
	values     map[string]Value
	session    *Session
	place      string // the context that holds the session; empty for the base
}

// Resolve joins environment, context and file. The context is the asked one, else PLATFORM_CONTEXT, else
// the file's active one; an unknown one is a usage fault.
func Resolve(f *File, asked string, getenv func(string) string) (*Resolved, error) {
	context := asked
	for _, c := range []string{getenv("PLATFORM_CONTEXT"), f.ActiveContext} {
		if context == "" {
			context = c
		}
	}
	var named *Sections
	if context != "" {
		if named = f.Contexts[context]; named == nil {
			known := f.ContextNames()
			if len(known) == 0 {
				return nil, fault.Usage("unknown context %q; the configuration file has none", context)
			}
			return nil, fault.Usage("unknown context %q; known: %s", context, strings.Join(known, ", "))
		}
	}
	r := &Resolved{Context: context, values: map[string]Value{}}
	for _, k := range Keys {
		v := Value{Key: k, Value: k.Default, Source: "default"}
		if s, ok := (*f.table(k))[k.field]; ok {
			v.Value, v.Source = s, "file"
			if k.Name == dashboardToken {
				r.session = f.Session
			}
		}
		if named != nil {
			if s, ok := (*named.table(k))[k.field]; ok {
				v.Value, v.Source = s, "context:"+context
				if k.Name == dashboardToken {
					r.session, r.place = named.Session, context
				}
			}
		}
		if s := getenv(k.Env); s != "" {
			if v.Source == "context:"+context && strings.TrimRight(s, "/") != strings.TrimRight(v.Value, "/") {
				r.Overriding = append(r.Overriding, k.Env)
			}
			v.Value, v.Source = s, "environment"
			if k.Name == dashboardToken {
				r.session = nil
			}
		}
		if k.section == "urls" {
			if err := CheckURL(k.Name, v.Value); err != nil {
				return nil, fault.From(err).WithHint("it comes from %s; set %s or run: mlp config set %s <url>", v.Source, k.Env, k.Name)
			}
			v.Value = strings.TrimRight(v.Value, "/")
		}
		r.values[k.Name] = v
	}
	return r, nil
}

// Get returns the value of a key by name.
func (r *Resolved) Get(name string) string { return r.values[name].Value }

// All returns the values in the order of Keys.
func (r *Resolved) All() []Value {
	out := make([]Value, 0, len(Keys))
	for _, k := range Keys {
		out = append(out, r.values[k.Name])
	}
	return out
}

// CheckURL refuses anything but an absolute http(s) address.
func CheckURL(name, value string) error {
	u, err := url.Parse(value)
	if err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.Host == "" {
		return fault.New("bad_url", "%s must be an http or https address, not %q", name, value)
	}
	if u.User != nil {
		return fault.New("bad_url", "%s must not carry a user name or password", name)
	}
	return nil
}
