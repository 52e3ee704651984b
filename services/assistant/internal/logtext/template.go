package logtext

import (
	"regexp"
	"strings"
	"time"
)

// variable are the parts that differ between lines of one template.
var variable = []struct {
	expr *regexp.Regexp
	as   string
	may  func(line string) bool // a cheap check; false: the expression matches nothing
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?`), "TIME", hasColon},
	{regexp.MustCompile(`\d\d:\d\d:\d\d(?:[.,]\d+)?`), "TIME", hasColon},
	{regexp.MustCompile(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F-]{22}\b`), "ID", hasDashes},
	{regexp.MustCompile(`\b(?:0x)?[0-9a-f]*\d[0-9a-f]*[a-f][0-9a-f]{6,}\b|\b0x[0-9a-fA-F]+\b`), "ID", hasHex},
	{regexp.MustCompile(`\d+(?:\.\d+)?`), "N", func(string) bool { return true }},
}

// Template returns a line without the parts that vary between lines of its kind.
func Template(line string) string {
	if !strings.ContainsAny(line, "0123456789") {
		return line
	}
	for _, v := range variable {
		if !v.may(line) {
			continue
		}
		line = v.expr.ReplaceAllString(line, v.as)
	}
	return line
}

func hasColon(line string) bool { return strings.Contains(line, ":") }

func hasDashes(line string) bool { return strings.Count(line, "-") >= 4 }

// hasHex reports whether a line has eight consecutive hexadecimal digits, or a number with a hexadecimal prefix.
func hasHex(line string) bool {
	row := 0
	for i := range len(line) {
		if c := line[i]; isDigit(c) || c >= 'a' && c <= 'f' {
			if row++; row == 8 {
				return true
			}
			continue
		}
		row = 0
	}
	return strings.Contains(line, "0x")
}

var timeExpr = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?`)

// timeOf returns the time in a line, or zero. Times without a zone are taken for UTC.
func timeOf(line string) time.Time {
	text := strings.Replace(timeExpr.FindString(line), " ", "T", 1)
	if text == "" {
		return time.Time{}
	}
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at
	}
	at, err := time.Parse("2006-01-02T15:04:05", text)
	if err != nil {
		return time.Time{}
	}
	return at
}
