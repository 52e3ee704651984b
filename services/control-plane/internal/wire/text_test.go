package wire

import (
	"testing"
	"unicode/utf8"
)

func FuzzCut(f *testing.F) {
	f.Add("plain", 3)
	f.Add("\xff\x00é", 4)
	f.Add("日本語", 4)
	f.Fuzz(func(t *testing.T, s string, most int) {
		most = max(0, most%64)
		got := TruncateText(s, most)
		switch {
		case len(got) > most, !Storable(got):
			t.Errorf("Cut(%q, %d) is %q", s, most, got)
		case Storable(s) && len(s) <= most && got != s:
			t.Errorf("Cut(%q, %d) changed it to %q", s, most, got)
		case len(CleanText(s)) > most && most-len(got) >= utf8.UTFMax:
			t.Errorf("Cut(%q, %d) keeps only %q", s, most, got)
		}
	})
}
