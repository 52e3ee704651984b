package question

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// Named reports whether the cluster has something with a name, in lower case.
type Named func(name string) bool

// MaxSentence limits the part of a message that is parsed, in bytes.
const MaxSentence = 8 << 10

// word is one word of a sentence: as written, and in the form for comparison.
type word struct {
	text, low string
	known     bool // the cluster has something with this name
	quoted    bool // in backticks or quotes, so meant literally
	spoken    bool // one of several in quotes, so perhaps a quotation
}

// sentence is a message split into words.
type sentence struct {
	words []word
	asks  bool // it ends with a question mark
	named Named
	noun  bool   // an article before it made a noun of its verb
	low   string // the words for comparison, separated by blanks
	// masked maps words of low in which a name was masked to that name.
	masked map[string]string
}

// shortened are short forms of several words, also as people type them in a hurry.
var shortened = map[string]string{
	"what's": "what is", "whats": "what is", "why's": "why is", "whys": "why is", "where's": "where is", "who's": "who is",
	"how's": "how is", "hows": "how is", "it's": "it is", "that's": "that is", "thats": "that is", "there's": "there is", "let's": "let us", "lets": "let us",
	"isn't": "is not", "isnt": "is not", "aren't": "are not", "arent": "are not", "wasn't": "was not", "don't": "do not", "dont": "do not",
	"doesn't": "does not", "doesnt": "does not", "didn't": "did not", "didnt": "did not", "won't": "will not", "wont": "will not",
	"can't": "can not", "cant": "can not", "cannot": "can not", "couldn't": "could not", "shouldn't": "should not", "wouldn't": "would not",
	"hasn't": "has not", "haven't": "have not", "i'd": "i would", "i'm": "i am", "i've": "i have", "we're": "we are", "i'll": "i will",
	"wat": "what", "wot": "what", "wut": "what", "pls": "please", "plz": "please", "u": "you", "thx": "thanks", "y": "why", "k8s": "cluster", "kubernetes": "cluster",
	"dosent": "does not", "doesent": "does not", "dosnt": "does not", "dosn't": "does not", "doenst": "does not", "didint": "did not", "didn": "did not", "wasnt": "was not",
	"werent": "were not", "weren't": "were not", "couldnt": "could not", "shouldnt": "should not", "wouldnt": "would not", "hasnt": "has not", "havent": "have not", "hadnt": "had not",
	"hadn't": "had not", "cnat": "can not", "ain't": "is not", "aint": "is not", "wich": "which", "whcih": "which", "teh": "the", "hte": "the", "adn": "and", "hwo": "how",
	"nto": "not", "wehn": "when", "waht": "what", "whta": "what", "hwat": "what", "wtf's": "what is", "whos": "who is", "wheres": "where is", "theres": "there is",
	"rollback": "roll back", "wanna": "want to", "gonna": "going to", "gotta": "have to",
	"sth": "something", "smth": "something", "sthg": "something", "w/": "with", "w/o": "without", "b/c": "because", "cuz": "because",
	"ded": "dead", "borked": "broken", "b0rked": "broken", "fubar": "broken", "fucked": "broken",
}

var quotedExpr = regexp.MustCompile("`[^`\n]{1,512}`|\"[^\"\n]{1,512}\"|“[^”\n]{1,512}”|'[^'\n]{1,512}'")

// readSentence splits a message.
func readSentence(message string, named Named) sentence {
	if len(message) > MaxSentence {
		message = strings.ToValidUTF8(message[:MaxSentence], "")
	}
	message = strings.TrimSpace(strings.ReplaceAll(message, "’", "'"))
	s := sentence{named: named, asks: strings.HasSuffix(strings.TrimRight(message, "!. \n\t\"'`)"), "?")}
	for message != "" {
		at := findQuotation(message)
		if at == nil {
			s.plain(message)
			break
		}
		s.plain(message[:at[0]])
		inner := strings.TrimFunc(message[at[0]:at[1]], func(r rune) bool { return strings.ContainsRune("`\"“”'", r) })
		if fields := strings.Fields(inner); len(fields) == 1 {
			s.words = append(s.words, word{text: fields[0], low: strings.ToLower(fields[0]), quoted: true})
		} else {
			from := len(s.words)
			s.plain(inner)
			for i := range s.words[from:] {
				s.words[from+i].spoken = message[at[0]] != '`' // a copied command is in those
			}
		}
		message = message[at[1]:]
	}
	return s.from(0)
}

// findQuotation returns the position of the first quotation; an apostrophe inside a word opens none.
func findQuotation(message string) []int {
	from := 0
	for {
		at := quotedExpr.FindStringIndex(message[from:])
		if at == nil {
			return nil
		}
		start, end := from+at[0], from+at[1]
		if start == 0 || unicode.IsSpace(rune(message[start-1])) || strings.ContainsRune("(,:=", rune(message[start-1])) {
			return []int{start, end}
		}
		from = start + 1
	}
}

const (
	before = "([{<*_\"'`“"
	after  = ")]}>*,;:.!?\"'`”…"
)

func (s *sentence) plain(text string) {
	for field := range strings.FieldsSeq(text) {
		field = strings.TrimLeft(field, before)
		field = strings.TrimRight(field, after)
		for part := range strings.SplitSeq(field, "…") {
			s.one(part)
		}
	}
}

func (s *sentence) one(field string) {
	low := strings.ToLower(field)
	if long, ok := shortened[low]; ok {
		for part := range strings.FieldsSeq(long) {
			s.words = append(s.words, word{text: part, low: part})
		}
		return
	}
	if name, ok := strings.CutSuffix(low, "'s"); ok { // api's pods
		field, low = field[:len(field)-len("'s")], name // the rest may be longer in lower case
	}
	if field != "" && field != "-" && field != "—" && field != "–" {
		s.words = append(s.words, word{text: field, low: low, known: s.knows(low)})
	}
}

// knows reports whether the cluster has something with a name. Words that only hold a sentence together are no names.
func (s *sentence) knows(low string) bool {
	return s.named != nil && !functionWords[low] && !restricting[low] && kindOf(low) == "" && operation.ValidName(low) && s.named(low)
}

// from returns the sentence without its first n words.
func (s sentence) from(n int) sentence {
	s.words = s.words[n:]
	low := make([]string, len(s.words))
	for i, w := range s.words {
		low[i] = w.low
	}
	s.low = strings.Join(low, " ")
	return s
}

// starts reports whether the sentence begins with these words.
func (s sentence) starts(with string) bool {
	return s.low == with || strings.HasPrefix(s.low, with+" ")
}
