package ground

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// numberExpr matches a separate number with the unit after it. A number after letters is part of a name. A word after a
// blank is a unit only if it is one of units.
var numberExpr = regexp.MustCompile(`(\d+(?:,\d{3})*(?:\.\d+)?)( ?%|(?: ?[A-Za-zµ]+)?)`)

// dimension is the quantity that a unit measures.
type dimension int

const (
	plainCount dimension = iota
	bytesSize
	cpuShare
	duration
	percent
)

// unit has one or two readings: M is 10^6 or 2^20 bytes, m is a thousandth of a core or a minute.
type unit struct {
	of    dimension
	scale float64
}

var units = map[string][]unit{
	"": {{plainCount, 1}}, "%": {{percent, 1}}, "percent": {{percent, 1}},
	"ms": {{duration, 1e-3}}, "millisecond": {{duration, 1e-3}}, "s": {{duration, 1}}, "sec": {{duration, 1}}, "second": {{duration, 1}},
	"min": {{duration, 60}}, "minute": {{duration, 60}}, "h": {{duration, 3600}}, "hour": {{duration, 3600}}, "d": {{duration, 86400}},
	"day": {{duration, 86400}}, "week": {{duration, 7 * 86400}}, "y": {{duration, 365 * 86400}}, "year": {{duration, 365 * 86400}},
	"m": {{cpuShare, 1e-3}, {duration, 60}}, "millicore": {{cpuShare, 1e-3}}, "core": {{cpuShare, 1}}, "cpu": {{cpuShare, 1}},
	"b": {{bytesSize, 1}}, "byte": {{bytesSize, 1}},
	"k": sizes(1), "kb": sizes(1), "ki": sizes(1), "kib": sizes(1), "mb": sizes(2), "mi": sizes(2), "mib": sizes(2),
	"g": sizes(3), "gb": sizes(3), "gi": sizes(3), "gib": sizes(3), "t": sizes(4), "tb": sizes(4), "ti": sizes(4), "tib": sizes(4),
}

// sizes returns both readings of a size: people write MB for the cluster's Mi.
func sizes(power float64) []unit {
	return []unit{{bytesSize, math.Pow(1024, power)}, {bytesSize, math.Pow(1000, power)}}
}

// number is a number in a text.
type number struct {
	start, end int // with its unit
	value      float64
	units      []unit
}

// measured reports whether the number has a unit.
func (n number) measured() bool { return n.units[0].of != plainCount }

// findNumbers returns the numbers of a text, without those that are parts of names.
func findNumbers(text string) (all []number) {
	for _, m := range numberExpr.FindAllStringSubmatchIndex(text, -1) {
		n := number{start: m[0], end: m[3]}
		value, err := strconv.ParseFloat(strings.ReplaceAll(text[m[2]:m[3]], ",", ""), 64)
		if err != nil || !standsAlone(text, m[2]) {
			continue
		}
		n.value = value
		word := text[m[4]:m[5]]
		if u := unitOf(strings.TrimPrefix(word, " "), strings.HasPrefix(word, " ")); u != nil {
			n.units, n.end = u, m[5]
		} else if word != "" && !strings.HasPrefix(word, " ") {
			continue // such as 5xx, 2nd, or the 7d9f8 of a pod's name
		} else {
			n.units = units[""]
		}
		if n.end < len(text) && (text[n.end] == '-' || text[n.end] == '_') && n.end+1 < len(text) && isAlphanumeric(text[n.end+1]) && !isDigit(text[n.end+1]) && word == "" {
			if rest := text[n.end+1:]; unitOf(firstWord(rest), true) == nil { // as in 30-second
				continue
			}
		}
		all = append(all, n)
	}
	return all
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func firstWord(s string) string {
	for i := range len(s) {
		if !isAlphanumeric(s[i]) {
			return s[:i]
		}
	}
	return s
}

// unitOf parses a unit; after a blank it must be spelt out or be a size.
func unitOf(word string, apart bool) []unit {
	low := strings.ToLower(word)
	if low == "" {
		return nil
	}
	u, ok := units[low]
	if !ok && len(low) > 3 {
		u, ok = units[strings.TrimSuffix(low, "s")]
	}
	if !ok || apart && len(low) < 2 {
		return nil
	}
	if word == "M" { // not a minute
		return sizes(2)
	}
	return u
}

// standsAlone reports whether the number here is not part of a name, version or address.
func standsAlone(text string, at int) bool {
	if at == 0 {
		return true
	}
	before := text[at-1]
	if isAlphanumeric(before) || before == '.' || before == '_' {
		// Compound durations such as 5m30s and 2d3h contain further numbers.
		return at > 1 && strings.IndexByte("smhd", before) >= 0 && isDigit(text[at-2])
	}
	if before == '-' || before == '/' || before == '@' {
		return at == 1 || !isAlphanumeric(text[at-2]) || isDigit(text[at-2])
	}
	return true
}

// numbers holds the numbers that were seen.
type numbers struct {
	values  map[float64]bool               // whatever the unit
	bare    map[float64]bool               // without one
	by      map[dimension]map[float64]bool // in the base unit
	derived map[float64]bool               // counts of lines and sums of columns
}

func (n *numbers) init() {
	if n.values == nil {
		n.values, n.bare, n.derived, n.by = map[float64]bool{}, map[float64]bool{}, map[float64]bool{}, map[dimension]map[float64]bool{}
		for d := range percent + 1 {
			n.by[d] = map[float64]bool{}
		}
	}
}

func (n *numbers) add(text string) {
	n.init()
	for _, m := range anyNumber.FindAllString(text, -1) { // an answer may quote any part of a name
		if v, err := strconv.ParseFloat(m, 64); err == nil {
			n.values[v] = true
		}
	}
	for _, f := range findNumbers(text) {
		n.values[f.value] = true
		if !f.measured() {
			n.bare[f.value] = true
		}
		for _, u := range f.units {
			n.by[u.of][round(f.value*u.scale)] = true
		}
	}
	for _, d := range compoundExpr.FindAllString(text, -1) { // 5m30s is a duration, too
		total := 0.0
		for _, part := range findNumbers(d) {
			for _, u := range part.units {
				if u.of == duration {
					total += part.value * u.scale
				}
			}
		}
		n.by[duration][round(total)] = true
	}
}

var (
	compoundExpr = regexp.MustCompile(`\b(?:\d+[dhms]){2,}`)
	anyNumber    = regexp.MustCompile(`\d+(?:\.\d+)?`)
)

// round removes differences due to floating-point arithmetic.
func round(v float64) float64 { return math.Round(v*1e6) / 1e6 }

// Limits of the numbers derived from one result.
const (
	maxTableLines = 2000
	maxTableWords = 5000
)

var columnExpr = regexp.MustCompile(`\s{2,}|\t|\s*\|\s*`)

// addTable adds the numbers that a reader may derive from a table: the number of lines, the numbers of lines with and
// without a word, and the sum of each column, over all lines and over those with a word.
func (n *numbers) addTable(text string) {
	n.init()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > maxTableLines {
		return
	}
	counts, sums := map[string]int{}, map[columnSum]float64{}
	for _, line := range lines {
		words := []string{""}
		for w := range strings.FieldsFuncSeq(line, func(c rune) bool { return c == ' ' || c == '\t' || c == '/' || c == '=' || c == ',' || c == '|' }) {
			words = append(words, w)
			for range 2 { // a pod's name begins with that of its workload
				if w = w[:max(0, strings.LastIndexByte(w, '-'))]; w != "" {
					words = append(words, w)
				}
			}
		}
		slices.Sort(words)
		words = slices.Compact(words)
		cells := map[columnSum]float64{}
		for i, cell := range columnExpr.Split(strings.TrimSpace(line), -1) {
			if found := findNumbers(cell); len(found) > 0 && found[0].start == 0 {
				cells[columnSum{"", i, found[0].units[0]}] = found[0].value
			}
		}
		for _, w := range words {
			if counts[w] == 0 && len(counts) >= maxTableWords {
				continue
			}
			counts[w]++
			for at, value := range cells {
				at.word = w
				sums[at] += value
			}
		}
	}
	total := len(lines)
	n.derived[float64(total-1)] = true
	for _, c := range counts {
		n.derived[float64(c)], n.derived[float64(total-c)], n.derived[float64(total-1-c)] = true, true, true
	}
	for at, sum := range sums {
		if at.unit.of == plainCount {
			n.derived[round(sum)] = true
		}
		n.by[at.unit.of][round(sum*at.unit.scale)] = true
	}
}

// columnSum is the sum of a column over the lines that contain a word.
type columnSum struct {
	word   string
	column int
	unit   unit
}

// has reports whether a number was seen. A number with a unit also counts as seen if a field's name or a table's header
// has the unit; the same number with another unit does not.
func (n *numbers) has(f number, tolerance float64) bool {
	n.init()
	if !f.measured() {
		return n.values[f.value] || n.derived[f.value] || tolerance > 0 && within(n.values, f.value, tolerance)
	}
	if n.bare[f.value] {
		return true
	}
	for _, u := range f.units {
		if v := round(f.value * u.scale); n.by[u.of][v] || n.by[plainCount][v] || within(n.by[u.of], v, max(tolerance, sloppiness[u.of])) {
			return true
		}
	}
	return false
}

// sloppiness is the relative error allowed for rounded values, by dimension.
var sloppiness = map[dimension]float64{bytesSize: 0.01, percent: 0.01, duration: 0.05}

func within(set map[float64]bool, v, tolerance float64) bool {
	if tolerance == 0 {
		return false
	}
	for have := range set {
		if math.Abs(have-v) <= tolerance*math.Abs(have) {
			return true
		}
	}
	return false
}

// computed reports whether a number follows from others of the answer: the sum of consecutive ones, or the difference,
// product or ratio of two.
func computed(f number, from []number) bool {
	is := func(v float64) bool { return math.Abs(v-f.value) <= 0.005*math.Abs(f.value)+1e-9 }
	for i := range from {
		sum := from[i].value
		for _, b := range from[i+1:] {
			if sum += b.value; is(sum) {
				return true
			}
		}
		for j := range from {
			a, b := from[i].value, from[j].value
			if i == j || b == 0 {
				continue
			}
			if share := a / b * 100; is(a-b) || is(a*b) || f.units[0].of == percent && (math.Abs(share-f.value) <= 1 || math.Abs(100-share-f.value) <= 1) || !f.measured() && is(a/b) {
				return true
			}
		}
	}
	return false
}
