package operation

import "fmt"

// Reason classifies refusals, for metrics and tests. The set is closed.
type Reason string

// Refusals before any request to the cluster.
const (
	UnknownVerb     Reason = "unknown_verb"
	ForbiddenVerb   Reason = "forbidden_verb"   // exec, port-forward and similar
	UnknownFlag     Reason = "unknown_flag"     // or a member that the verb does not take
	ForbiddenFlag   Reason = "forbidden_flag"   // another identity, another cluster, raw access
	ShellSyntax     Reason = "shell_syntax"     // would mean more to a shell
	InvalidArgument Reason = "invalid_argument" // out of range, malformed, contradictory
	MissingArgument Reason = "missing_argument"
	InvalidManifest Reason = "invalid_manifest"
	TooLarge        Reason = "too_large"
)

// Refusals by the cluster.
const (
	UnknownKind Reason = "unknown_kind"
	NotFound    Reason = "not_found"
	Forbidden   Reason = "forbidden" // to the assistant, not to the caller
	Conflict    Reason = "conflict"
	Rejected    Reason = "rejected" // by validation, admission, quota or a budget
	TimedOut    Reason = "timed_out"
	Unavailable Reason = "unavailable" // the server responds, but this part of it does not
)

// Fault explains why an operation is refused. Its text is a sentence for the caller; it quotes at most a short piece of
// the input.
type Fault struct {
	Reason   Reason
	Field    string // JSON member or flag; may be empty
	Sentence string
}

// Error returns the sentence.
func (f *Fault) Error() string { return f.Sentence }

// Refuse returns a fault.
func Refuse(r Reason, field, format string, a ...any) *Fault {
	return &Fault{r, field, fmt.Sprintf(format, a...)}
}

// Quote shortens foreign text for a sentence and makes invisible characters visible.
func Quote(s string) string {
	const most = 60
	runes := []rune(s)
	if len(runes) > most {
		return fmt.Sprintf("%q…", string(runes[:most]))
	}
	return fmt.Sprintf("%q", s)
}
