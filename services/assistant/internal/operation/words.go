package operation

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// NamePattern is the pattern of object names, also in the tools' schemas. No name can be taken for a flag, a path or a
// shell word.
const NamePattern = `^[a-z0-9]([a-z0-9.:-]*[a-z0-9])?$`

const kindPattern = `^[A-Za-z][A-Za-z0-9.-]*$`

var (
	nameExpr   = regexp.MustCompile(NamePattern)
	kindExpr   = regexp.MustCompile(kindPattern)
	pathExpr   = regexp.MustCompile(`^[A-Za-z$][A-Za-z0-9$_-]*(\.[A-Za-z$][A-Za-z0-9$_-]*)*$`)
	actionExpr = regexp.MustCompile(`^([a-z]+|\*)$`)
	sinceExpr  = regexp.MustCompile(`^([0-9]+h)?([0-9]+m)?([0-9]+s)?$`)
)

// Kinds that the rules refer to by name; all others are resolved by discovery.
var (
	podKinds  = []string{"pod", "pods", "po"}
	nodeKinds = []string{"node", "nodes", "no"}
	jobKinds  = []string{"cronjob", "cronjobs", "cj", "cronjobs.batch", "cronjob.batch", "job", "jobs", "jobs.batch", "job.batch"}
)

func oneOf(kind string, known []string) bool {
	return slices.Contains(known, strings.ToLower(kind))
}

// ValidName reports whether s can be the name of an object.
func ValidName(s string) bool { return len(s) <= 253 && nameExpr.MatchString(s) }

func validKind(s string) bool {
	return len(s) <= 253 && kindExpr.MatchString(s) && !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "-")
}

// validLabel checks namespaces, containers and other DNS labels.
func validLabel(s string) bool { return len(validation.IsDNS1123Label(s)) == 0 }

// validText refuses text that would not survive the JSON form or a command line: invalid UTF-8, and control characters
// other than tab and line feed.
func validText(field, s string) error {
	if len(s) > MaxText {
		return Refuse(TooLarge, field, "%s is over %d bytes.", field, MaxText)
	}
	if !cleanText(s) {
		return Refuse(InvalidArgument, field, "%s holds control characters or is not UTF-8.", field)
	}
	return nil
}

func cleanText(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r < ' ' && r != '\t' && r != '\n' || r >= 0x7f && r < 0xa0
	})
}

func validLabelSelector(field, s string) error {
	if s == "" {
		return nil
	}
	if err := validText(field, s); err != nil {
		return err
	}
	sel, err := labels.Parse(s)
	if err != nil {
		return Refuse(InvalidArgument, field, "%s is no label selector.", Quote(s))
	}
	if sel.Empty() {
		return Refuse(InvalidArgument, field, "The label selector is empty and would choose everything.")
	}
	return nil
}

func validFieldSelector(s string) error {
	if s == "" {
		return nil
	}
	if err := validText("field_selector", s); err != nil {
		return err
	}
	sel, err := fields.ParseSelector(s)
	if err != nil {
		return Refuse(InvalidArgument, "field_selector", "%s is no field selector.", Quote(s))
	}
	if sel.Empty() {
		return Refuse(InvalidArgument, "field_selector", "The field selector is empty and would choose everything.")
	}
	return nil
}

func validSince(s string) error {
	if s == "" {
		return nil
	}
	d, err := time.ParseDuration(s)
	if !sinceExpr.MatchString(s) || err != nil || d < time.Second || d > 24*time.Hour {
		return Refuse(InvalidArgument, "since", "since must be from 1s to 24h, such as 15m.")
	}
	return nil
}

// imageExpr is deliberately loose, since registries differ; it only excludes anything but a single word.
var imageExpr = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$`)

func validImage(s string) bool { return len(s) <= 1024 && imageExpr.MatchString(s) }

func validQuantity(s string) bool {
	q, err := resource.ParseQuantity(s)
	return len(s) <= 32 && err == nil && q.Sign() >= 0
}

// validQualifiedName checks label and annotation keys and resource names.
func validQualifiedName(s string) bool { return len(validation.IsQualifiedName(s)) == 0 }

func validLabelValue(s string) bool { return len(validation.IsValidLabelValue(s)) == 0 }

// envExpr matches the names that assignments in a kubectl line can have; the API allows more.
var envExpr = regexp.MustCompile(`^[A-Za-z_.][A-Za-z0-9_.-]*$`)

func validEnvName(s string) bool { return len(s) <= 253 && envExpr.MatchString(s) }

// ParsedTaint is a parsed key[=value][:Effect].
type ParsedTaint struct{ Key, Value, Effect string }

// ParseTaint parses a taint in an Operation. For a removal the effect may be absent, which removes every taint of the
// key.
func ParseTaint(s string, removal bool) (ParsedTaint, error) {
	bad := Refuse(InvalidArgument, "taints", "%s is no taint; write key=value:NoSchedule, PreferNoSchedule or NoExecute.", Quote(s))
	left, effect, hasEffect := strings.Cut(s, ":")
	key, value, hasValue := strings.Cut(left, "=")
	switch {
	case !validQualifiedName(key) || !validLabelValue(value):
		return ParsedTaint{}, bad
	case hasEffect && effect != "NoSchedule" && effect != "PreferNoSchedule" && effect != "NoExecute":
		return ParsedTaint{}, bad
	case !hasEffect && (!removal || hasValue), hasValue && value == "":
		return ParsedTaint{}, bad
	}
	return ParsedTaint{key, value, effect}, nil
}
