package logtext

import "strings"

const (
	// headWeighed and tailWeighed limit the parts of a line that are scored: the problem is near its start or at its end.
	headWeighed, tailWeighed = 512, 128
	// mostWeighed limits the bytes that one call matches against expressions, so that a crafted log cannot keep the
	// assistant busy.
	mostWeighed = 512 << 10
)

// scorer scores lines for one call. Lines that differ only in times and long numbers are scored once.
type scorer struct {
	scores    map[string]int
	templates map[string]string
	// scoring and grouping are the remaining bytes for expressions.
	scoring, grouping int
}

func newScorer() *scorer {
	return &scorer{map[string]int{}, map[string]string{}, mostWeighed, mostWeighed}
}

// ends cuts out the middle of a long line.
func ends(line string) string {
	if len(line) <= headWeighed+tailWeighed {
		return line
	}
	return line[:headWeighed] + " " + line[len(line)-tailWeighed:]
}

// line returns how strongly a line indicates a problem; 0: not at all.
func (s *scorer) line(line string) int {
	line = ends(line)
	key := alike(line)
	if score, ok := s.scores[key]; ok {
		return score
	}
	if s.scoring < len(line) {
		return scoreWords(line)
	}
	score, full := scoreLine(line)
	if full {
		s.scoring -= len(line)
		s.scores[key] = score
	}
	return score
}

// template returns the Template of a line's scored part. Past the byte limit it only masks the digits.
func (s *scorer) template(line string) string {
	line = ends(line)
	key := alike(line)
	if template, ok := s.templates[key]; ok {
		return template
	}
	if s.grouping < len(line) {
		return mask(line, 1)
	}
	s.grouping -= len(line)
	template := Template(line)
	s.templates[key] = template
	return template
}

// alike returns the same key for lines that differ only in a time at their start or in long numbers, which do not
// affect their meaning.
func alike(line string) string {
	at := 0
	for at < len(line) && at < 32 && (isDigit(line[at]) || strings.IndexByte("[(-/:.,TZ+ ", line[at]) >= 0) {
		at++
	}
	if at < len("10:00:00") {
		at = 0
	}
	for at > 0 && line[at-1] != ' ' { // a word that begins with digits belongs to the message
		at--
	}
	return mask(line[:at], 1) + mask(line[at:], 4)
}

// mask replaces runs of at least some digits by nines of a fixed length. A run after a letter stays: it may be the date
// of a Kubernetes component, or a code.
func mask(line string, least int) string {
	var b strings.Builder
	b.Grow(len(line))
	for i := 0; i < len(line); {
		end := i
		for end < len(line) && isDigit(line[end]) {
			end++
		}
		switch {
		case end == i:
			b.WriteByte(line[i])
			end++
		case end-i >= least && (least == 1 || i == 0 || !isWord(line[i-1])) && strings.Trim(line[i:end], "0") != "":
			b.WriteString("9999")
		default:
			b.WriteString(line[i:end])
		}
		i = end
	}
	return b.String()
}

// scoreWords scores by words alone, for lines beyond mostWeighed.
func scoreWords(line string) int {
	most, _ := hits(line)
	head := line[:min(len(line), 120)]
	at := unleveled
	switch {
	case most == 0:
		return 0
	case strings.Contains(head, "DEBUG"), strings.Contains(head, "debug"):
		at = debugLevel
	case strings.Contains(head, "INFO"), strings.Contains(head, "info"):
		at = infoLevel
	case strings.Contains(head, "WARN"), strings.Contains(head, "warn"):
		at = warnLevel
	}
	return base[at][most]
}
