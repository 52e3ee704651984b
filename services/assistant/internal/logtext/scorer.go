package logtext

import "strings"

const (
	// headWeighed and tailWeighed are the parts of a line by which it is weighed: what is wrong stands near
	// its start or at its end.
	headWeighed, tailWeighed = 512, 128
	// mostWeighed limits the bytes that one call weighs by expressions. Whoever writes a log must not be able
	// to keep the assistant busy with it.
	mostWeighed = 512 << 10
)

// scorer weighs lines for one call. It weighs lines that differ in times and long numbers only once.
type scorer struct {
	scores    map[string]int
	templates map[string]string
	// scoring and grouping are the bytes that may still be weighed by expressions.
	scoring, grouping int
}

func newScorer() *scorer {
	return &scorer{map[string]int{}, map[string]string{}, mostWeighed, mostWeighed}
}

// ends is a line without the middle of a long one.
func ends(line string) string {
	if len(line) <= headWeighed+tailWeighed {
		return line
	}
	return line[:headWeighed] + " " + line[len(line)-tailWeighed:]
}

// line is how much a line tells of trouble; 0: not at all.
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

// template is Template of what is weighed of a line. When much was read, lines are alike by their digits.
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

// alike is the same for lines that only a time at their start or long numbers tell apart: neither changes
// what they tell.
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

// mask writes rows of at least some digits as one length of nines. A row after a letter stays: it may be
// the date of a Kubernetes component, or a code.
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

// scoreWords is a score by words alone, for what exceeds mostWeighed.
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
