package kubectl

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// IsCommand reports whether a message is a command line, to be read by Parse and not as a question.
func IsCommand(message string) bool {
	words := strings.Fields(message)
	return len(words) > 0 && words[0] == "kubectl"
}

// Parse parses a line into a normalized, valid operation. The error is an *operation.Fault.
func Parse(line string) (operation.Operation, error) {
	words, manifest, err := splitLine(line)
	if err != nil {
		return operation.Operation{}, err
	}
	if err := refuseForeign(words); err != nil {
		return operation.Operation{}, err
	}
	scope, words, err := takeLeadingNamespace(words)
	if err != nil {
		return operation.Operation{}, err
	}
	cmd, words, err := findCommand(words)
	if err != nil {
		return operation.Operation{}, err
	}
	o, err := cmd.read(words, scope, manifest)
	if err != nil {
		return operation.Operation{}, err
	}
	o = operation.Normalize(o)
	if err := o.Validate(); err != nil {
		return operation.Operation{}, err
	}
	return o, nil
}

// refuseForeign looks for forbidden flags at any position, so that the reason is the same in every command. After --
// there are no flags.
func refuseForeign(words []string) error {
	for _, w := range words {
		if w == "--" {
			return nil
		}
		name, _, _ := strings.Cut(w, "=")
		long, isLong := strings.CutPrefix(name, "--")
		if isLong && (slices.Contains(foreign, long) || strings.HasPrefix(long, "as-")) || !isLong && strings.HasPrefix(w, "-s") {
			return operation.Refuse(operation.ForbiddenFlag, name, "%s is refused: the assistant acts as itself, on its own cluster, through typed operations only.", operation.Quote(name))
		}
	}
	return nil
}

// takeLeadingNamespace parses a namespace before the verb.
func takeLeadingNamespace(words []string) (scope operation.Operation, rest []string, err error) {
	if len(words) == 0 || words[0] != "kubectl" {
		return scope, words, nil
	}
	fs := flagSet([]flag{namespace, allNamespaces}, &scope)
	fs.SetInterspersed(false)
	if err := fs.Parse(words[1:]); err != nil {
		return scope, nil, flagFault(err)
	}
	if fs.ArgsLenAtDash() >= 0 {
		return scope, nil, operation.Refuse(operation.UnknownVerb, "", "A command must follow kubectl.")
	}
	return scope, append([]string{"kubectl"}, fs.Args()...), nil
}

// findCommand looks the command up by its first words.
func findCommand(words []string) (*command, []string, error) {
	for i := range grammar {
		if n := len(grammar[i].words); len(words) >= n && slices.Equal(words[:n], grammar[i].words) {
			// create token must not be parsed as create with an argument.
			if why := forbiddenWhy(words); why != nil {
				return nil, nil, why
			}
			return &grammar[i], words[n:], nil
		}
	}
	if why := forbiddenWhy(words); why != nil {
		return nil, nil, why
	}
	if len(words) < 2 {
		return nil, nil, operation.Refuse(operation.UnknownVerb, "", "This is no kubectl command.")
	}
	return nil, nil, operation.Refuse(operation.UnknownVerb, "", "The command %s is not known here.", operation.Quote(strings.Join(words[:min(len(words), 3)], " ")))
}

func forbiddenWhy(words []string) error {
	for n := 2; n <= min(3, len(words)); n++ {
		name := strings.Join(words[1:n], " ")
		if why, ok := forbidden[name]; ok && words[0] == "kubectl" {
			return operation.Refuse(operation.ForbiddenVerb, "", "kubectl %s is refused: it %s.", name, why)
		}
	}
	return nil
}

func (c *command) read(words []string, scope operation.Operation, manifest string) (operation.Operation, error) {
	o := operation.Operation{Verb: c.verb}
	fs := flagSet(slices.Concat(c.flags, c.other), &o)
	if err := fs.Parse(words); err != nil {
		return o, flagFault(err)
	}
	if err := c.agree(fs, &o, scope); err != nil {
		return o, err
	}
	rest := fs.Args()
	for _, w := range rest {
		if strings.HasPrefix(w, "-") && c.args != expression {
			return o, operation.Refuse(operation.InvalidArgument, "names", "%s begins with a dash, and no name does.", operation.Quote(w))
		}
	}
	if err := c.positional(&o, rest, fs); err != nil {
		return o, err
	}
	reads := fs.Lookup("filename") != nil
	switch {
	case reads && fs.Changed("filename") && manifest != "":
		o.Manifest = manifest
	case reads:
		return o, operation.Refuse(operation.MissingArgument, "manifest", "%s needs -f - and the manifest below the line, after <<'EOF'.", strings.Join(c.words, " "))
	case manifest != "":
		return o, operation.Refuse(operation.InvalidArgument, "manifest", "%s reads no manifest.", strings.Join(c.words, " "))
	}
	return o, nil
}

// agree reconciles flags that occur in two places or have two spellings.
func (c *command) agree(fs *pflag.FlagSet, o *operation.Operation, scope operation.Operation) error {
	if scope.Namespace != "" && (fs.Changed("namespace") || fs.Lookup("namespace") == nil) ||
		scope.AllNamespaces && (fs.Changed("all-namespaces") || fs.Lookup("all-namespaces") == nil) {
		return operation.Refuse(operation.InvalidArgument, "namespace", "The namespace is given twice, or the command has none.")
	}
	if scope.Namespace != "" {
		o.Namespace = scope.Namespace
	}
	o.AllNamespaces = o.AllNamespaces || scope.AllNamespaces
	if fs.Changed("cpu") && fs.Changed("cpu-percent") {
		return operation.Refuse(operation.InvalidArgument, "cpu", "Give --cpu or --cpu-percent, not both.")
	}
	if c.verb == operation.List && len(fs.Args()) > 0 && (len(fs.Args()) > 1 || strings.Contains(fs.Arg(0), "/")) {
		o.Verb = operation.Get
	}
	return nil
}

func (c *command) positional(o *operation.Operation, words []string, fs *pflag.FlagSet) error {
	switch c.args {
	case refs:
		return readRefs(o, words)
	case pod:
		return readPod(o, words)
	case nodes:
		return readNodes(o, words)
	case nodesPairs:
		return readTaints(o, words)
	case pairs:
		return readPairs(o, words)
	case fieldPath:
		return useOneWord(words, "kind", func(w string) { o.Kind, o.Path, _ = strings.Cut(w, ".") })
	case right:
		return readRight(o, words, fs.Changed("list"))
	case jobName:
		if len(o.Names) == 0 {
			return operation.Refuse(operation.ForbiddenVerb, "from", "A job is made from a CronJob here: --from=cronjob/NAME.")
		}
		return useOneWord(words, "new_name", func(w string) { o.NewName = w })
	case expression:
		return useOneWord(words, "query", func(w string) {
			if c.verb == operation.QueryLoki {
				o.LogQL = w
			} else {
				o.PromQL = w
			}
		})
	case none:
		if len(words) > 0 {
			return operation.Refuse(operation.InvalidArgument, "", "%s takes no argument %s.", strings.Join(c.words, " "), operation.Quote(words[0]))
		}
	}
	return nil
}

func useOneWord(words []string, field string, use func(string)) error {
	if len(words) != 1 {
		return operation.Refuse(operation.MissingArgument, field, "Exactly one %s is needed.", field)
	}
	use(words[0])
	return nil
}
