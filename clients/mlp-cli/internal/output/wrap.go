package output

import (
	"strings"
	"unicode/utf8"
)

// Wrap breaks lines that are longer than width between words; 0 leaves them whole. A terminal would break them inside words.
// A command of mlp stays whole, so that it can be copied: if it is longer than a line, the terminal breaks it.
func Wrap(text string, width int) string {
	if width <= 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if utf8.RuneCountInString(line) > width {
			indent := len(line) - len(strings.TrimLeft(line, " "))
			lines[i] = wrapUnits(keepCommandsWhole(strings.Fields(line)), indent, indent, width)
		}
	}
	return strings.Join(lines, "\n")
}

// keepCommandsWhole joins the words of each command of mlp. It ends with its line, or at a semicolon or comma.
func keepCommandsWhole(words []string) (units []string) {
	inCommand := false
	for _, word := range words {
		if inCommand {
			units[len(units)-1] += " " + word
		} else {
			units = append(units, word)
		}
		inCommand = (inCommand || word == "mlp") && !strings.HasSuffix(word, ";") && !strings.HasSuffix(word, ",")
	}
	return units
}

// WrapWords indents the first line by first and the others by hang. A word longer than a line stands alone on it.
func WrapWords(text string, first, hang, width int) string {
	return wrapUnits(strings.Fields(text), first, hang, width)
}

func wrapUnits(units []string, first, hang, width int) string {
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", first))
	column, fresh := first, true
	for _, unit := range units {
		length := utf8.RuneCountInString(unit)
		switch {
		case fresh:
		case column+1+length > width:
			b.WriteString("\n" + strings.Repeat(" ", hang))
			column = hang
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(unit)
		column, fresh = column+length, false
	}
	return b.String()
}
