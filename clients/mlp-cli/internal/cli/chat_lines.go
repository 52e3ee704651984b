package cli

import "io"

// lineBreaker passes text on as it comes, and can end a line that has begun. Where the answer and remarks go to one
// file or pipe, a remark would otherwise follow the answer's last word.
type lineBreaker struct {
	out    io.Writer
	begun  bool // the line has text
	broken bool // breakLine ended the line, so a newline that follows adds none
}

func (l *lineBreaker) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	text := p
	if l.broken && text[0] == '\n' {
		text = text[1:]
	}
	l.begun, l.broken = p[len(p)-1] != '\n', false
	if _, err := l.out.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (l *lineBreaker) breakLine() {
	if l.begun {
		_, _ = l.out.Write([]byte{'\n'}) // a closed pipe is reported by the writes before or after
		l.begun, l.broken = false, true
	}
}
