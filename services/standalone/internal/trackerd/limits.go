package trackerd

import (
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/store"
)

// Bounds that the interface sets, in characters, and two of this server's own.
const (
	maxName        = 500
	maxKey         = 250
	maxParam       = 6000
	maxTag         = 8000 // of a run or logged model; longer ones are cut
	maxVersionTag  = 100_000
	maxAlias       = 255
	maxExperiment  = 20_000 // of an experiment's tag; longer ones are refused
	maxDigest      = 36     // of a dataset, as the next three
	maxSource      = 65_535
	maxSchema      = 1_048_575
	maxProfile     = 16_777_215
	maxModelName   = 1000     // own
	maxDescription = 100_000  // own
	maxTable       = 16 << 20 // own: bytes of all tags or parameters of one thing
)

// word is Python's \w on text, by which the interface defines its names: letters and numbers of every script and the
// underscore. Go's \w is ASCII.
const word = `\p{L}\p{N}_`

var keyPattern = regexp.MustCompile(`^[` + word + `.\-:/ ]+$`)

func checkLength(what, s string, most int) error {
	if utf8.RuneCountInString(s) > most {
		return invalidParameter("'%s' exceeds the maximum length of %d characters", what, most)
	}
	return nil
}

// checkKey checks the key of a metric, parameter or tag, from the parameter param; what names the kind in the error for
// a long key.
func checkKey(what, param, key string) error {
	if key == "" {
		return missingParameter(param)
	}
	if !keyPattern.MatchString(key) {
		return invalidValue(param, key, "Names may only contain alphanumerics, underscores (_), dashes (-), periods (.), spaces ( ), colon(:) and slashes (/).")
	}
	if err := checkResolved(param, key); err != nil {
		return err
	}
	return checkLength(what, key, maxKey)
}

// checkResolved refuses a name that would be another one, were it a file's.
func checkResolved(param, name string) error {
	if clean := path.Clean(name); clean != name || path.IsAbs(name) || name == "." || strings.HasPrefix(name, "..") {
		return invalidValue(param, name, "Names may be treated as files in certain cases, and must not resolve to other names when treated as such. This name would resolve to '%s'", clipValue(clean))
	}
	return nil
}

// checkLengths checks pairs of a parameter's name and value against one bound.
func checkLengths(most int, nameValue ...string) error {
	for i := 0; i < len(nameValue); i += 2 {
		if err := checkLength(nameValue[i], nameValue[i+1], most); err != nil {
			return err
		}
	}
	return nil
}

// truncateRunes shortens s to so many characters.
func truncateRunes(s string, most int) string {
	if len(s) <= most {
		return s
	}
	n := 0
	for i := range s {
		if n == most {
			return s[:i]
		}
		n++
	}
	return s
}

// mergeTags adds tags to m, the later of one key winning.
func mergeTags(m store.Tags, tags []pair, check func(pair) (pair, error)) (store.Tags, error) {
	if m == nil {
		m = store.Tags{}
	}
	for _, t := range tags {
		t, err := check(t)
		if err != nil {
			return nil, err
		}
		m[t.Key] = t.Value
	}
	return m, checkTable(m)
}

func checkTable(m store.Tags) error {
	n := 0
	for k, v := range m {
		n += len(k) + len(v)
	}
	if n > maxTable {
		return invalidParameter("All tags or parameters of one thing together must not exceed %d bytes.", maxTable)
	}
	return nil
}

// experimentTag checks a tag of an experiment.
func experimentTag(t pair) (pair, error) {
	if err := checkKey("key", "key", t.Key); err != nil {
		return t, err
	}
	return t, checkLength("value", t.Value, maxExperiment)
}

// runTag checks a tag of a run or logged model.
func runTag(t pair) (pair, error) {
	if err := checkKey("key", "key", t.Key); err != nil {
		return t, err
	}
	t.Value = truncateRunes(t.Value, maxTag)
	return t, nil
}

// registryTag checks a tag of a registered model or version.
func registryTag(t pair) (pair, error) {
	if err := checkKey("key", "key", t.Key); err != nil {
		return t, err
	}
	return t, checkLength("value", t.Value, maxVersionTag)
}

func checkParam(p pair) (pair, error) {
	if err := checkKey("Param key", "key", p.Key); err != nil {
		return p, err
	}
	p.Value = truncateRunes(p.Value, maxParam)
	return p, nil
}

var aliasPattern = regexp.MustCompile(`^[` + word + `\-]+$`)
var versionAlias = regexp.MustCompile(`^[vV]\p{Nd}+$`)

func checkAlias(alias string) error {
	switch {
	case alias == "":
		return missingParameter("alias")
	case !aliasPattern.MatchString(alias):
		return invalidParameter("Invalid alias name: '%s'. Names may only contain alphanumerics, underscores (_), and dashes (-).", clipValue(alias))
	case strings.EqualFold(alias, "latest"):
		return invalidParameter("'latest' alias name (case insensitive) is reserved.")
	case versionAlias.MatchString(alias):
		return invalidParameter("Version alias name '%s' is reserved.", alias)
	}
	return checkLength("Registered model alias name", alias, maxAlias)
}

func checkModelName(name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return missingParameter("name")
	case strings.ContainsAny(name, "/:"):
		return invalidParameter("Invalid model name '%s'. Names cannot contain '/' or ':'.", clipValue(name))
	}
	if err := checkResolved("name", name); err != nil {
		return err
	}
	return checkLength("name", name, maxModelName)
}
