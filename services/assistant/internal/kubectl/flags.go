package kubectl

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// flag ties a flag to a member of an operation, for parsing and rendering.
type flag struct {
	name, short string
	field       func(*operation.Operation) any
}

// The types that field may return a pointer to, besides the plain ones.
type (
	dryRun   bool   // server or client; the server does the dry run either way
	percent  int32  // 80%
	stdin    string // always -; the text comes from the here-document
	object   struct{ o *operation.Operation }
	accepted struct{} // states the default behaviour
)

var (
	namespace     = flag{"namespace", "n", func(o *operation.Operation) any { return &o.Namespace }}
	allNamespaces = flag{"all-namespaces", "A", func(o *operation.Operation) any { return &o.AllNamespaces }}
	selector      = flag{"selector", "l", func(o *operation.Operation) any { return &o.LabelSelector }}
	fieldSelector = flag{"field-selector", "", func(o *operation.Operation) any { return &o.FieldSelector }}
	limit         = flag{"limit", "", func(o *operation.Operation) any { return &o.Limit }}
	output        = flag{"output", "o", func(o *operation.Operation) any { return &o.Output }}
	container     = flag{"container", "c", func(o *operation.Operation) any { return &o.Container }}
	containers    = flag{"containers", "c", func(o *operation.Operation) any { return &o.Container }}
	previous      = flag{"previous", "p", func(o *operation.Operation) any { return &o.Previous }}
	since         = flag{"since", "", func(o *operation.Operation) any { return &o.Since }}
	tail          = flag{"tail", "", func(o *operation.Operation) any { return &o.Tail }}
	contains      = flag{"contains", "", func(o *operation.Operation) any { return &o.Contains }}
	forObject     = flag{"for", "", func(o *operation.Operation) any { return &object{o} }}
	fromObject    = flag{"from", "", func(o *operation.Operation) any { return &object{o} }}
	revision      = flag{"revision", "", func(o *operation.Operation) any { return &o.Revision }}
	toRevision    = flag{"to-revision", "", func(o *operation.Operation) any { return &o.Revision }}
	subresource   = flag{"subresource", "", func(o *operation.Operation) any { return &o.Subresource }}
	apiVersion    = flag{"api-version", "", func(o *operation.Operation) any { return &o.APIVersion }}
	recursive     = flag{"recursive", "", func(o *operation.Operation) any { return &o.Recursive }}
	sortBy        = flag{"sort-by", "", func(o *operation.Operation) any { return &o.SortBy }}
	watch         = flag{"watch", "w", func(*operation.Operation) any { return &accepted{} }}
	rangeMinutes  = flag{"range-minutes", "", func(o *operation.Operation) any { return &o.RangeMinutes }}
	replicas      = flag{"replicas", "", func(o *operation.Operation) any { return &o.Replicas }}
	requests      = flag{"requests", "", func(o *operation.Operation) any { return &o.Requests }}
	limits        = flag{"limits", "", func(o *operation.Operation) any { return &o.Limits }}
	port          = flag{"port", "", func(o *operation.Operation) any { return &o.Port }}
	targetPort    = flag{"target-port", "", func(o *operation.Operation) any { return &o.TargetPort }}
	protocol      = flag{"protocol", "", func(o *operation.Operation) any { return &o.Protocol }}
	serviceType   = flag{"type", "", func(o *operation.Operation) any { return &o.ServiceType }}
	newName       = flag{"name", "", func(o *operation.Operation) any { return &o.NewName }}
	least         = flag{"min", "", func(o *operation.Operation) any { return &o.Min }}
	most          = flag{"max", "", func(o *operation.Operation) any { return &o.Max }}
	cpu           = flag{"cpu", "", func(o *operation.Operation) any { return (*percent)(&o.CPUPercent) }}
	cpuPercent    = flag{"cpu-percent", "", func(o *operation.Operation) any { return &o.CPUPercent }}
	overwrite     = flag{"overwrite", "", func(o *operation.Operation) any { return &o.Overwrite }}
	patchType     = flag{"type", "", func(o *operation.Operation) any { return &o.PatchType }}
	patch         = flag{"patch", "p", func(o *operation.Operation) any { return &o.Patch }}
	filename      = flag{"filename", "f", func(o *operation.Operation) any { return (*stdin)(&o.Manifest) }}
	serverSide    = flag{"server-side", "", func(*operation.Operation) any { return &accepted{} }}
	listRights    = flag{"list", "", func(*operation.Operation) any { return &accepted{} }}
	prune         = flag{"prune", "", func(o *operation.Operation) any { return &o.Prune }}
	all           = flag{"all", "", func(o *operation.Operation) any { return &o.All }}
	force         = flag{"force", "", func(o *operation.Operation) any { return &o.Force }}
	takeOver      = flag{"force-conflicts", "", func(o *operation.Operation) any { return &o.Force }}
	gracePeriod   = flag{"grace-period", "", func(o *operation.Operation) any { return &o.GracePeriod }}
	cascade       = flag{"cascade", "", func(o *operation.Operation) any { return &o.Cascade }}
	ignoreDaemons = flag{"ignore-daemonsets", "", func(o *operation.Operation) any { return &o.IgnoreDaemonSets }}
	deleteLocal   = flag{"delete-emptydir-data", "", func(o *operation.Operation) any { return &o.DeleteEmptyDirData }}
	podSelector   = flag{"pod-selector", "", func(o *operation.Operation) any { return &o.PodSelector }}
	rehearse      = flag{"dry-run", "", func(o *operation.Operation) any { return (*dryRun)(&o.DryRun) }}
)

// value makes a member a pflag.Value that can be set once.
type value struct {
	name  string
	field any
	set   bool
}

func (v *value) Type() string { return "value" }

// String implements pflag.Value, which needs a default to print; nothing is printed here.
func (v *value) String() string { return "" }

// Set parses one value. It refuses a repeated flag, whose meaning differs between programs.
func (v *value) Set(s string) error {
	bad := operation.Refuse(operation.InvalidArgument, v.name, "--%s cannot be %s.", v.name, operation.Quote(s))
	if v.set {
		return operation.Refuse(operation.InvalidArgument, v.name, "--%s is given twice.", v.name)
	}
	v.set = true
	if s == "" {
		return operation.Refuse(operation.InvalidArgument, v.name, "--%s is empty.", v.name)
	}
	var err error
	switch f := v.field.(type) {
	case *string:
		*f = s
	case *bool:
		*f, err = strconv.ParseBool(s)
	case *int:
		*f, err = strconv.Atoi(s)
	case *int32:
		err = setInt32(f, s)
	case **int32:
		*f = new(int32)
		err = setInt32(*f, s)
	case *int64:
		*f, err = strconv.ParseInt(s, 10, 64)
	case **int64:
		*f = new(int64)
		**f, err = strconv.ParseInt(s, 10, 64)
	case *percent:
		digits, ok := strings.CutSuffix(s, "%")
		if err = setInt32((*int32)(f), digits); !ok {
			return bad // kubectl parses a bare number as an amount of cores
		}
	case *map[string]string:
		*f, err = parseAssignments(strings.Split(s, ","))
	default:
		return v.setWord(s)
	}
	if err != nil {
		return bad
	}
	return nil
}

// setWord handles the flags whose value is one of a few words, or an object.
func (v *value) setWord(s string) error {
	switch f := v.field.(type) {
	case *dryRun:
		if s != "server" && s != "client" && s != "none" {
			return operation.Refuse(operation.InvalidArgument, v.name, "Write --dry-run=server.")
		}
		*f = s != "none"
	case *stdin:
		if s != "-" {
			return operation.Refuse(operation.ForbiddenFlag, v.name, "Files and URLs are not read. Write -f - and the manifest below the line, after <<'EOF'.")
		}
	case *object:
		kind, name, ok := strings.Cut(s, "/")
		if !ok || len(f.o.Names) > 0 {
			return operation.Refuse(operation.InvalidArgument, v.name, "--%s needs kind/name.", v.name)
		}
		f.o.Kind, f.o.Names = kind, []string{name}
	case *accepted:
		if s != "true" {
			return operation.Refuse(operation.InvalidArgument, v.name, "--%s cannot be turned off.", v.name)
		}
	}
	return nil
}

func setInt32(f *int32, s string) error {
	n, err := strconv.ParseInt(s, 10, 32)
	*f = int32(n)
	return err
}

// parseAssignments parses name=value words; a duplicate name is an error.
func parseAssignments(words []string) (map[string]string, error) {
	m := make(map[string]string, len(words))
	for _, w := range words {
		name, val, ok := strings.Cut(w, "=")
		if _, twice := m[name]; !ok || twice || name == "" {
			return nil, operation.Refuse(operation.InvalidArgument, "set", "%s is no name=value, or comes twice.", operation.Quote(w))
		}
		m[name] = val
	}
	return m, nil
}

// write returns the words of the flag, none if the member is zero.
func (f flag) write(o *operation.Operation) []string {
	var text string
	switch p := f.field(o).(type) {
	case *bool:
		if *p {
			text = "true"
		}
	case *string:
		text = *p
	case *int:
		text = formatNonZero(int64(*p))
	case *int32:
		text = formatNonZero(int64(*p))
	case *int64:
		text = formatNonZero(*p)
	case **int32:
		if *p != nil {
			text = strconv.Itoa(int(**p))
		}
	case **int64:
		if *p != nil {
			text = strconv.FormatInt(**p, 10)
		}
	case *percent:
		if *p != 0 {
			text = formatNonZero(int64(*p)) + "%"
		}
	case *map[string]string:
		text = strings.Join(formatAssignments(*p), ",")
	case *dryRun:
		if *p {
			text = "server"
		}
	case *stdin:
		text = "-"
	case *object:
		if len(o.Names) > 0 {
			text = o.Kind + "/" + o.Names[0]
		}
	}
	switch _, boolean := f.field(o).(*bool); {
	case text == "":
		return nil
	case boolean && f.short != "":
		return []string{"-" + f.short}
	case boolean:
		return []string{"--" + f.name}
	case f.short != "":
		return []string{"-" + f.short, quoteWord(text)}
	}
	return []string{quoteWord("--" + f.name + "=" + text)}
}

// formatNonZero omits zero, which always means absence.
func formatNonZero(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// formatAssignments returns name=value words, sorted by name.
func formatAssignments(m map[string]string) []string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		words = append(words, name+"="+m[name])
	}
	return words
}

// flagSet parses flags into an operation.
func flagSet(flags []flag, o *operation.Operation) *pflag.FlagSet {
	fs := pflag.NewFlagSet("kubectl", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	for _, f := range flags {
		v := &value{name: f.name, field: f.field(o)}
		defined := fs.VarPF(v, f.name, f.short, "")
		switch v.field.(type) {
		case *bool, *accepted:
			defined.NoOptDefVal = "true"
		}
	}
	return fs
}

// flagFault rewords an error of pflag; a fault of this package is returned unchanged.
func flagFault(err error) error {
	var fault *operation.Fault
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	switch {
	case errors.As(err, &fault):
		return fault
	case errors.As(err, &unknown):
		return operation.Refuse(operation.UnknownFlag, unknown.GetSpecifiedName(), "The flag %s is not known here.", operation.Quote(unknown.GetSpecifiedName()))
	}
	if errors.As(err, &bare) {
		return operation.Refuse(operation.MissingArgument, bare.GetSpecifiedName(), "The flag %s needs a value.", operation.Quote(bare.GetSpecifiedName()))
	}
	return operation.Refuse(operation.UnknownFlag, "", "The flags cannot be read: %s.", operation.Quote(err.Error()))
}
