package kubectl

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Filter is one step after a read, such as grep: it takes lines and returns lines.
type Filter func(lines []string) []string

// maxFilters limits the steps of one line.
const maxFilters = 5

// ParsePipeline parses a line that may pipe the result of a read through grep, head, tail, sort, uniq and wc. No shell
// is involved: the steps are parsed here and run on the text of the result. Anything else after a bar is refused, and
// so is a bar after a write.
func ParsePipeline(line string) (operation.Operation, []Filter, error) {
	parts := splitPipes(quotePaths(line))
	if len(parts) == 1 {
		o, err := Parse(parts[0])
		return o, nil, err
	}
	o, err := Parse(parts[0])
	if err != nil {
		return operation.Operation{}, nil, err
	}
	if o.Verb.Writes() {
		return operation.Operation{}, nil, operation.Refuse(operation.ShellSyntax, "", "Only the result of a read can be filtered; %s changes the cluster.", o.Verb)
	}
	if len(parts)-1 > maxFilters {
		return operation.Operation{}, nil, operation.Refuse(operation.TooLarge, "", "At most %d filters are read.", maxFilters)
	}
	var filters []Filter
	for _, part := range parts[1:] {
		words, body, err := splitLine(part)
		if err == nil && (body != "" || len(words) == 0) {
			err = operation.Refuse(operation.ShellSyntax, "", "A filter must follow each bar.")
		}
		if err != nil {
			return operation.Operation{}, nil, err
		}
		f, err := parseFilter(words)
		if err != nil {
			return operation.Operation{}, nil, err
		}
		filters = append(filters, f)
	}
	return o, filters, nil
}

// barePathExpr matches an unquoted field path. It contains nothing by which a shell would do more than expand file
// names.
var barePathExpr = regexp.MustCompile("(\\s(?:-o ?|-o=|--output[= ])(?:jsonpath|custom-columns)=|\\s--sort-by=)([^\\s'\"|;&<>$`\\\\]+)")

// quotePaths quotes field paths in a line that reads: most shells give braces and brackets in them no meaning, and
// people omit the quotes.
func quotePaths(line string) string {
	if !strings.HasPrefix(line, "kubectl get ") {
		return line
	}
	return barePathExpr.ReplaceAllString(line, "$1'$2'")
}

// splitPipes splits a line at each bar outside quotes. It never splits a line with a manifest, nor one with two
// adjacent bars, which mean something else to a shell.
func splitPipes(line string) []string {
	if strings.Contains(line, "<<") || strings.Contains(line, "||") || strings.Contains(line, "|&") || strings.ContainsAny(line, "\n\r") {
		return []string{line}
	}
	var parts []string
	quote, from := rune(0), 0
	escaped := false
	for i, r := range line {
		switch {
		case escaped:
			escaped = false
		case r == '\\' && quote != '\'':
			escaped = true
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r == '|':
			parts = append(parts, strings.TrimSpace(line[from:i]))
			from = i + 1
		}
	}
	return append(parts, strings.TrimSpace(line[from:]))
}

func parseFilter(words []string) (Filter, error) {
	name, words := words[0], words[1:]
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	fs.Usage = func() {}
	switch name {
	case "grep", "egrep", "fgrep":
		return parseGrep(fs, name, words)
	case "head", "tail":
		return parseEnds(fs, name, words)
	case "wc":
		fs.BoolP("lines", "l", false, "")
		if err := fs.Parse(words); err != nil || fs.NArg() > 0 || !fs.Changed("lines") {
			return nil, refuseFilter("wc takes -l alone")
		}
		return func(lines []string) []string { return []string{strconv.Itoa(len(lines))} }, nil
	case "sort":
		return parseSort(fs, words)
	case "uniq":
		count := fs.BoolP("count", "c", false, "")
		if err := fs.Parse(words); err != nil || fs.NArg() > 0 {
			return nil, refuseFilter("uniq takes -c alone")
		}
		return func(lines []string) []string { return uniqLines(lines, *count) }, nil
	}
	return nil, operation.Refuse(operation.UnknownVerb, "", "%s is not run behind a bar: grep, head, tail, sort, uniq and wc -l are, and nothing else.", operation.Quote(name))
}

func refuseFilter(why string) error {
	return operation.Refuse(operation.UnknownFlag, "", "This filter is not read: %s.", why)
}

func parseGrep(fs *pflag.FlagSet, name string, words []string) (Filter, error) {
	fold, invert, count := fs.BoolP("ignore-case", "i", false, ""), fs.BoolP("invert-match", "v", false, ""), fs.BoolP("count", "c", false, "")
	extended, fixed := fs.BoolP("extended-regexp", "E", name == "egrep", ""), fs.BoolP("fixed-strings", "F", name == "fgrep", "")
	whole, pattern := fs.BoolP("word-regexp", "w", false, ""), fs.StringP("regexp", "e", "", "")
	if err := fs.Parse(words); err != nil {
		return nil, refuseFilter("grep takes -i, -v, -c, -w, -E, -F and one pattern")
	}
	rest := fs.Args()
	if !fs.Changed("regexp") && len(rest) > 0 {
		*pattern, rest = rest[0], rest[1:]
	}
	if len(rest) > 0 || *pattern == "" || len(*pattern) > 1024 {
		return nil, refuseFilter("grep takes one pattern and no file")
	}
	text := *pattern
	switch {
	case *fixed:
		text = regexp.QuoteMeta(text)
	case !*extended:
		text = extendPattern(text)
	}
	if *whole {
		text = `\b(?:` + text + `)\b`
	}
	if *fold {
		text = "(?i)" + text
	}
	expr, err := regexp.Compile(text)
	if err != nil {
		return nil, refuseFilter("the pattern is no regular expression")
	}
	return func(lines []string) []string {
		found := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return expr.MatchString(l) == *invert })
		if *count {
			return []string{strconv.Itoa(len(found))}
		}
		return found
	}, nil
}

// extendPattern converts a basic regular expression, in which a bar, braces and other such characters are literal
// unless escaped, to an extended one.
func extendPattern(basic string) string {
	var b strings.Builder
	for i := 0; i < len(basic); i++ {
		c := basic[i]
		switch {
		case c == '\\' && i+1 < len(basic) && strings.IndexByte("+?(){}|", basic[i+1]) >= 0:
			i++
			b.WriteByte(basic[i])
		case c == '\\' && i+1 < len(basic):
			b.WriteByte(c)
			i++
			b.WriteByte(basic[i])
		case strings.IndexByte("+?(){}|", c) >= 0:
			b.WriteString(`\` + string(c))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

var shortCountExpr = regexp.MustCompile(`^-(\d{1,6})$`)

func parseEnds(fs *pflag.FlagSet, name string, words []string) (Filter, error) {
	n := fs.IntP("lines", "n", 10, "")
	if len(words) == 1 {
		if m := shortCountExpr.FindStringSubmatch(words[0]); m != nil {
			words = []string{"-n", m[1]}
		}
	}
	if err := fs.Parse(words); err != nil || fs.NArg() > 0 || *n < 0 {
		return nil, refuseFilter(name + " takes -n and a number")
	}
	return func(lines []string) []string {
		k := min(*n, len(lines))
		if name == "head" {
			return lines[:k]
		}
		return lines[len(lines)-k:]
	}, nil
}

func parseSort(fs *pflag.FlagSet, words []string) (Filter, error) {
	reverse, numeric, unique := fs.BoolP("reverse", "r", false, ""), fs.BoolP("numeric-sort", "n", false, ""), fs.BoolP("unique", "u", false, "")
	key := fs.IntP("key", "k", 0, "")
	if err := fs.Parse(words); err != nil || fs.NArg() > 0 || *key < 0 {
		return nil, refuseFilter("sort takes -r, -n, -u and -k with one number")
	}
	column := func(line string) string {
		fields := strings.Fields(line)
		if *key == 0 {
			return line
		}
		if *key > len(fields) {
			return ""
		}
		return strings.Join(fields[*key-1:], " ")
	}
	return func(lines []string) []string {
		sorted := slices.Clone(lines)
		slices.SortStableFunc(sorted, func(a, b string) int {
			a, b = column(a), column(b)
			order := strings.Compare(a, b)
			if *numeric {
				if x, y := leadingNumber(a), leadingNumber(b); x != y {
					order = map[bool]int{true: -1, false: 1}[x < y]
				}
			}
			if *reverse {
				order = -order
			}
			return order
		})
		if *unique {
			sorted = slices.Compact(sorted)
		}
		return sorted
	}, nil
}

var leadingNumberExpr = regexp.MustCompile(`^\s*-?\d+(\.\d+)?`)

// leadingNumber returns the number at the start of a text, or 0, as sort -n does.
func leadingNumber(s string) float64 {
	n, err := strconv.ParseFloat(strings.TrimSpace(leadingNumberExpr.FindString(s)), 64)
	if err != nil {
		return 0
	}
	return n
}

func uniqLines(lines []string, count bool) []string {
	var out []string
	for i := 0; i < len(lines); {
		n := 1
		for i+n < len(lines) && lines[i+n] == lines[i] {
			n++
		}
		if count {
			out = append(out, strconv.Itoa(n)+" "+lines[i])
		} else {
			out = append(out, lines[i])
		}
		i += n
	}
	return out
}

// SplitWords splits one plain line into words as a shell would; ok is false for anything else.
func SplitWords(line string) (words []string, ok bool) {
	words, body, err := splitLine(line)
	return words, err == nil && body == ""
}
