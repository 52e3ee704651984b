package udiff

import (
	"strconv"
	"strings"
)

// hunks reads one hunk or more, in the order of the file.
func (p *parser) hunks(f *File) error {
	var oldEnd, newEnd int // the lines of either side that came before
	for last := false; strings.HasPrefix(p.peek(), "@@ "); f.Hunks++ {
		if last {
			return p.fail("no hunk can follow one that reaches the end of the file")
		}
		h, ok := parseHeader(p.peek())
		if !ok {
			return p.fail("a hunk starts with @@ -LINE[,COUNT] +LINE[,COUNT] @@")
		}
		oldBefore, newBefore := h.old.before(), h.new.before()
		switch {
		case oldBefore < oldEnd || newBefore < newEnd:
			return p.fail("the hunk overlaps the one before it")
		case oldBefore-oldEnd != newBefore-newEnd:
			return p.fail("the lines between this hunk and the one before it are not as many on both sides")
		case f.New && h.old != (span{}), f.Gone && h.new != (span{}):
			return p.fail("the side of a file that does not exist must be 0,0")
		case h.old.count+h.new.count == 0:
			return p.fail("the hunk is empty")
		}
		p.next++
		var err error
		if last, err = p.body(f, h); err != nil {
			return err
		}
		oldEnd, newEnd = oldBefore+h.old.count, newBefore+h.new.count
	}
	switch {
	case f.Hunks == 0:
		return p.fail("expected a hunk: %s", describeUnsupported(p.peek()))
	case (f.New || f.Gone) && f.Hunks > 1:
		return p.fail("a file that is made or removed has one hunk")
	}
	return nil
}

// span is one side of a hunk: its first line, counted from 1, and its number of lines.
type span struct{ start, count int }

// before returns the number of lines of the side before the hunk. An empty span names the
// line that it comes after.
func (s span) before() int {
	if s.count == 0 {
		return s.start
	}
	return s.start - 1
}

type hunk struct{ old, new span }

// parseHeader reads "@@ -1,2 +1,3 @@", which a blank and any text may follow.
func parseHeader(line string) (h hunk, ok bool) {
	rest, ok := strings.CutPrefix(line, "@@ -")
	if !ok {
		return h, false
	}
	old, rest, ok := strings.Cut(rest, " +")
	if !ok {
		return h, false
	}
	now, rest, ok := strings.Cut(rest, " @@")
	if !ok || rest != "" && rest[0] != ' ' {
		return h, false
	}
	if h.old, ok = readSpan(old); !ok {
		return h, false
	}
	h.new, ok = readSpan(now)
	return h, ok
}

func readSpan(s string) (span, bool) {
	first, second, both := strings.Cut(s, ",")
	start, ok := parseDecimal(first)
	count := 1
	if both {
		var counted bool
		count, counted = parseDecimal(second)
		ok = ok && counted
	}
	return span{start, count}, ok && (start > 0 || count == 0)
}

// parseDecimal parses plain digits without a leading zero; more than nine cannot be a
// line of a readable patch.
func parseDecimal(s string) (int, bool) {
	if s == "" || len(s) > 9 || len(s) > 1 && s[0] == '0' || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

const noNewline = `\ No newline at end of file`

// body reads the lines of a hunk and reports whether the hunk reaches the end of the file
// on a side, which only a line without an end shows.
func (p *parser) body(f *File, h hunk) (last bool, err error) {
	old, now := h.old.count, h.new.count
	var oldDone, newDone, changed bool // the side's last line has come: it had no end
	for old > 0 || now > 0 {
		line := p.peek()
		if line == "" {
			return false, p.fail("the hunk ends before its counts are reached")
		}
		takesOld, takesNew := line[0] == ' ' || line[0] == '-', line[0] == ' ' || line[0] == '+'
		switch {
		case !takesOld && !takesNew:
			return false, p.fail("a line of a hunk starts with a blank, + or -")
		case takesOld && (old == 0 || oldDone), takesNew && (now == 0 || newDone):
			return false, p.fail("the hunk has more lines than its counts say")
		}
		if takesOld {
			old--
		}
		if takesNew {
			now--
		}
		switch {
		case !takesNew:
			f.Removed, changed = append(f.Removed, line[1:]), true
		case !takesOld:
			f.Added, changed = append(f.Added, line[1:]), true
		}
		p.next++
		if p.peek() == noNewline {
			if takesOld && old > 0 || takesNew && now > 0 {
				return false, p.fail("only the last line of a side can have no end")
			}
			oldDone, newDone = oldDone || takesOld, newDone || takesNew
			p.next++
		}
	}
	if !changed {
		return false, p.fail("the hunk changes nothing")
	}
	return oldDone || newDone, nil
}
