package kubectl

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// MaxLine limits a line: the largest manifest, or the largest patch with every
// character quoted, fits.
const MaxLine = 2 << 20

// maxWords limits the words of a line: all names, values and flags of the largest
// operation fit.
const maxWords = 500

// isPlainRune reports whether a character needs no quotes in any POSIX shell.
func isPlainRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_@%+=:,./-", r)
}

// quoteWord quotes a word so that a POSIX shell, and splitLine, read it back unchanged, and so that all of it is
// visible.
func quoteWord(word string) string {
	if i := strings.IndexFunc(word, operation.Hidden); i >= 0 {
		var b strings.Builder
		for ; i >= 0; i = strings.IndexFunc(word, operation.Hidden) {
			if i > 0 {
				b.WriteString(quoteWord(word[:i]))
			}
			_, size := utf8.DecodeRuneInString(word[i:])
			b.WriteString("$'")
			for _, c := range []byte(word[i : i+size]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
			b.WriteString("'")
			word = word[i+size:]
		}
		if word != "" {
			b.WriteString(quoteWord(word))
		}
		return b.String()
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !isPlainRune(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'"'"'`) + "'"
}

// scanner reads the words of one command as a POSIX shell would, and stops at anything that means more than text to a
// shell.
type scanner struct {
	rest  string
	words []string
	word  strings.Builder
	open  bool // a word has begun, perhaps an empty one
}

// splitLine splits a line into words, and the body of a here-document if there is one.
func splitLine(line string) (words []string, body string, err error) {
	if len(line) > MaxLine {
		return nil, "", operation.Refuse(operation.TooLarge, "", "The command is over %d bytes.", MaxLine)
	}
	if !utf8.ValidString(line) || strings.ContainsRune(line, 0) {
		return nil, "", operation.Refuse(operation.ShellSyntax, "", "The command is not valid UTF-8.")
	}
	s := scanner{rest: strings.TrimSpace(strings.ReplaceAll(line, "\r\n", "\n"))}
	for s.rest != "" {
		if strings.HasPrefix(s.rest, "<<") {
			s.end()
			body, err = hereDocument(s.rest)
			return s.words, body, err
		}
		if err := s.step(); err != nil {
			return nil, "", err
		}
		if len(s.words) > maxWords {
			return nil, "", operation.Refuse(operation.TooLarge, "", "The command has over %d words.", maxWords)
		}
	}
	s.end()
	return s.words, "", nil
}

func (s *scanner) end() {
	if s.open {
		s.words = append(s.words, s.word.String())
	}
	s.word.Reset()
	s.open = false
}

func (s *scanner) step() error {
	r, size := utf8.DecodeRuneInString(s.rest)
	switch {
	case r == ' ' || r == '\t':
		s.end()
	case strings.HasPrefix(s.rest, "$'"):
		return s.octal()
	case r == '\'':
		return s.single()
	case r == '"':
		return s.double()
	case strings.HasPrefix(s.rest, "\\\n"): // a continued line
		size = 2
	case isPlainRune(r), r == '!' && s.open: // a lone ! is a reserved word of the shell
		s.word.WriteRune(r)
		s.open = true
	default:
		return operation.Refuse(operation.ShellSyntax, "", "%s means something to a shell; only one plain command is read. Quote it if it is part of a value.", operation.Quote(string(r)))
	}
	s.rest = s.rest[size:]
	return nil
}

func (s *scanner) single() error {
	text, after, ok := strings.Cut(s.rest[1:], "'")
	if !ok {
		return operation.Refuse(operation.ShellSyntax, "", "A single quote is not closed.")
	}
	s.word.WriteString(text)
	s.rest, s.open = after, true
	return nil
}

var octalExpr = regexp.MustCompile(`^\$'((?:\\[0-3][0-7][0-7])+)'`)

// octal reads characters that quoteWord writes as bytes.
func (s *scanner) octal() error {
	m := octalExpr.FindStringSubmatch(s.rest)
	if m == nil {
		return operation.Refuse(operation.ShellSyntax, "", "$'...' is read with bytes of three octal digits only, such as $'\\303\\251'. Use single quotes.")
	}
	var text []byte
	for code := range strings.SplitSeq(m[1][1:], `\`) {
		n, err := strconv.ParseUint(code, 8, 8)
		if err != nil { // cannot happen: the pattern guarantees it
			return operation.Refuse(operation.ShellSyntax, "", "A byte is no octal number.")
		}
		text = append(text, byte(n))
	}
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return operation.Refuse(operation.ShellSyntax, "", "The text in $'...' is not valid UTF-8.")
	}
	s.word.Write(text)
	s.rest, s.open = s.rest[len(m[0]):], true
	return nil
}

func (s *scanner) double() error {
	s.open = true
	for i := 1; i < len(s.rest); i++ {
		switch c := s.rest[i]; c {
		case '"':
			s.rest = s.rest[i+1:]
			return nil
		case '$', '`':
			return operation.Refuse(operation.ShellSyntax, "", "%q inside double quotes would be expanded by a shell; use single quotes.", string(c))
		case '\\':
			if i+1 < len(s.rest) && strings.IndexByte("\\\"$`\n", s.rest[i+1]) >= 0 {
				if i++; s.rest[i] != '\n' {
					s.word.WriteByte(s.rest[i])
				}
				continue
			}
			s.word.WriteByte(c)
		default:
			s.word.WriteByte(c)
		}
	}
	return operation.Refuse(operation.ShellSyntax, "", "A double quote is not closed.")
}

// hereMark matches the word that ends a here-document.
const hereMark = `([A-Za-z_][A-Za-z0-9_]*)`

var hereExpr = regexp.MustCompile(`^<<[ \t]*(?:'` + hereMark + `'|"` + hereMark + `"|` + hereMark + `)[ \t]*\n`)

// hereDocument reads the one redirection in the grammar, which holds a manifest.
func hereDocument(rest string) (string, error) {
	m := hereExpr.FindStringSubmatch(rest)
	if m == nil {
		return "", operation.Refuse(operation.ShellSyntax, "", "Write a manifest as <<'EOF' at the end of the line, the manifest below it, and EOF.")
	}
	mark := m[1] + m[2] + m[3]
	lines := strings.SplitAfter(rest[len(m[0]):], "\n")
	var body strings.Builder
	for i, line := range lines {
		if strings.TrimSuffix(line, "\n") != mark {
			body.WriteString(line)
			continue
		}
		if strings.TrimSpace(strings.Join(lines[i+1:], "")) != "" {
			return "", operation.Refuse(operation.ShellSyntax, "", "Something follows the manifest; only one command is read.")
		}
		if m[3] != "" && strings.ContainsAny(body.String(), "$`\\") {
			return "", operation.Refuse(operation.ShellSyntax, "", "The manifest holds what a shell would expand; write <<'%s' with quotes.", mark)
		}
		return body.String(), nil
	}
	return "", operation.Refuse(operation.ShellSyntax, "", "The line %s that ends the manifest is missing.", mark)
}

// writeHeredoc writes a manifest as a here-document whose end mark is not one of its lines.
func writeHeredoc(manifest string) string {
	mark := "EOF"
	for strings.Contains("\n"+manifest, "\n"+mark+"\n") {
		mark += "_"
	}
	return "<<'" + mark + "'\n" + manifest + mark
}
