package mcpclient

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mlp-platform/platform/libs/service"
)

// Limits of the file.
const (
	maxFile    = 256 << 10 // bytes
	maxServers = 16
	maxName    = 32 // characters of a server's name: it is part of the names of its tools
	maxRules   = 200
	maxSecret  = 16 << 10 // bytes of a value from a file

	defaultTimeout = 20 * time.Second
	maxTimeout     = 2 * time.Minute
)

// Server is another server, with the tools that may be used.
type Server struct {
	Name string
	// URL is the endpoint of a server over streamable HTTP, and Headers are sent with each request.
	URL     string
	Headers map[string]service.Secret
	// Command is started and connected over stdin and stdout. Its environment is Env plus PATH, HOME and a few other
	// variables.
	Command string
	Args    []string
	Env     map[string]service.Secret
	// Tools are names or patterns of the tools that may be used; empty: all. Of those, Writes change something, and Reads
	// do not, whatever the server declares.
	Tools, Reads, Writes []string
	Timeout              time.Duration // of one call
}

// document is the configuration file.
type document struct {
	Servers []fileServer `yaml:"servers"`
}

// fileServer is a server in the file.
type fileServer struct {
	Name    string           `yaml:"name"`
	URL     string           `yaml:"url"`
	Headers map[string]value `yaml:"headers"`
	Command string           `yaml:"command"`
	Args    []string         `yaml:"args"`
	Env     map[string]value `yaml:"env"`
	Tools   []string         `yaml:"tools"`
	Reads   []string         `yaml:"reads"`
	Writes  []string         `yaml:"writes"`
	Timeout string           `yaml:"timeout"`
}

// value is a literal, or its source: an environment variable or a file, with a prefix before it.
type value struct {
	Value  string `yaml:"value"`
	Env    string `yaml:"env"`
	File   string `yaml:"file"`
	Prefix string `yaml:"prefix"`
}

// UnmarshalYAML treats a plain text as the literal.
func (v *value) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		return node.Decode(&v.Value)
	}
	members := []string{"value", "env", "file", "prefix"}
	for i := 0; node.Kind == yaml.MappingNode && i < len(node.Content); i += 2 {
		if key := node.Content[i]; !slices.Contains(members, key.Value) {
			return fmt.Errorf("line %d: a value has no member %q; it has %s", key.Line, key.Value, strings.Join(members, ", "))
		}
	}
	type plain value
	return node.Decode((*plain)(v))
}

// Load reads the configuration file. lookup reads the environment. The error lists every fault, each a sentence without
// a secret.
func Load(file string, lookup func(string) (string, bool)) ([]Server, error) {
	raw, err := readBounded(file, maxFile)
	if err != nil {
		return nil, err
	}
	var doc document
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %s", file, yamlSentence(err))
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: it must be one YAML document", file)
	}
	var faults []error
	if len(doc.Servers) == 0 || len(doc.Servers) > maxServers {
		faults = append(faults, fmt.Errorf("%s: servers must list 1 to %d servers", file, maxServers))
	}
	var servers []Server
	seen := map[string]bool{}
	for i, f := range doc.Servers[:min(len(doc.Servers), maxServers)] {
		s, found := f.check(lookup)
		if seen[f.Name] {
			found = append(found, errors.New("the name is used twice"))
		}
		seen[f.Name] = true
		for _, err := range found {
			faults = append(faults, fmt.Errorf("%s: server %d (%q): %w", file, i+1, f.Name, err))
		}
		servers = append(servers, s)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return servers, nil
}

func readBounded(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(raw)) > most {
		err = fmt.Errorf("%s is over %d bytes", file, most)
	}
	return raw, err
}

var unknownField = regexp.MustCompile(`field (\S+) not found in type \S+`)

// yamlSentence describes an error without the names of Go types.
func yamlSentence(err error) string {
	text := strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n", " "), "yaml: ")
	text = strings.TrimPrefix(text, "unmarshal errors:")
	return strings.TrimSpace(unknownField.ReplaceAllString(text, `there is no member "$1"`))
}

// check converts an entry of the file to a server.
func (f fileServer) check(lookup func(string) (string, bool)) (s Server, faults []error) {
	fault := func(format string, a ...any) { faults = append(faults, fmt.Errorf(format, a...)) }
	s = Server{Name: f.Name, URL: f.URL, Command: f.Command, Args: f.Args, Tools: f.Tools, Reads: f.Reads, Writes: f.Writes, Timeout: defaultTimeout}
	if len(f.Name) > maxName || len(validation.IsDNS1123Label(f.Name)) > 0 {
		fault("the name must be 1 to %d small letters, digits and dashes", maxName)
	}
	if (f.URL == "") == (f.Command == "") {
		fault("give either url or command")
	}
	if f.URL != "" {
		if u, err := url.Parse(f.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
			fault("url must be an http or https address without a user; credentials belong in headers")
		}
		if len(f.Args) > 0 || len(f.Env) > 0 {
			fault("args and env are for servers with a command")
		}
	} else if len(f.Headers) > 0 {
		fault("headers are for servers with a url")
	}
	if f.Timeout != "" {
		var err error
		if s.Timeout, err = time.ParseDuration(f.Timeout); err != nil || s.Timeout < time.Second || s.Timeout > maxTimeout {
			fault("timeout must be a time of 1s to %s", maxTimeout)
		}
	}
	for member, list := range map[string][]string{"tools": f.Tools, "reads": f.Reads, "writes": f.Writes} {
		if len(list) > maxRules {
			fault("%s has over %d entries", member, maxRules)
		}
		for _, pattern := range list {
			if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
				fault("%s: %q is no name of a tool and no pattern such as get_*", member, pattern)
			}
		}
	}
	for _, both := range f.Reads {
		if slices.Contains(f.Writes, both) {
			fault("%q is in reads and in writes", both)
		}
	}
	s.Headers = resolve("headers", f.Headers, lookup, fault, headerFault, http.CanonicalHeaderKey)
	s.Env = resolve("env", f.Env, lookup, fault, envFault, func(name string) string { return name })
	return s, faults
}

// resolve resolves the values of headers or of an environment.
func resolve(member string, given map[string]value, lookup func(string) (string, bool), fault func(string, ...any), wrong func(name, text string) string, form func(string) string) map[string]service.Secret {
	values := map[string]service.Secret{}
	for name, v := range given {
		text, err := v.read(lookup)
		if err == nil {
			if why := wrong(name, text); why != "" {
				err = errors.New(why)
			}
		}
		if err != nil {
			fault("%s: %s: %w", member, name, err)
			continue
		}
		values[form(name)] = service.Secret(text)
	}
	return values
}

// read returns the resolved value.
func (v value) read(lookup func(string) (string, bool)) (string, error) {
	given := 0
	for _, s := range []string{v.Value, v.Env, v.File} {
		if s != "" {
			given++
		}
	}
	if given != 1 {
		return "", errors.New("give one of value, env and file")
	}
	switch {
	case v.Env != "":
		text, ok := lookup(v.Env)
		if !ok || text == "" {
			return "", fmt.Errorf("the environment variable %s is not set", v.Env)
		}
		return v.Prefix + text, nil
	case v.File != "":
		raw, err := readBounded(v.File, maxSecret)
		if err != nil {
			return "", err
		}
		text := strings.TrimRight(string(raw), "\r\n")
		if text == "" {
			return "", fmt.Errorf("%s is empty", v.File)
		}
		return v.Prefix + text, nil
	}
	return v.Prefix + v.Value, nil
}

// ownHeaders are the headers that the protocol sets itself.
var ownHeaders = []string{"Accept", "Accept-Encoding", "Connection", "Content-Length", "Content-Type", "Host", "Last-Event-Id", "Trailer", "Transfer-Encoding", "Upgrade"}

var headerExpr = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

func headerFault(name, text string) string {
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	switch {
	case !headerExpr.MatchString(name):
		return "it is no name of a header"
	case slices.Contains(ownHeaders, canonical) || strings.HasPrefix(canonical, "Mcp-"):
		return "the protocol sets this header itself"
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return "its value cannot be sent in a header"
	}
	return ""
}

func envFault(name, text string) string {
	if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(text, "\x00") {
		return "it cannot be an environment variable"
	}
	return ""
}
