package redact

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// seen holds the values of all Secrets that this process has read, of any cluster and tenant: none may be shown to any
// user, so one set serves all texts.
var seen = newKnown()

const (
	// leastKnown is the minimum length of a value to search for. Shorter ones occur within ordinary words.
	leastKnown = 6
	// mostKnown limits the values of a generation.
	mostKnown = 1 << 15
	// mostKnownLength limits a piece. A longer value is searched for in pieces, mostPieces of them.
	mostKnownLength = 4 << 10
	mostPieces      = 64
	// mostParts limits the parts of one value, so that one Secret cannot evict the values of others.
	mostParts = 64
	// mostLengths limits the lengths of values with the same first bytes: each costs a hash at every occurrence of these.
	mostLengths = 32
	bucketBits  = 16
)

// known is a set of values, stored only as hashes under a key that lives as long as the process. A value is found at
// any position: the first bytes select a bucket, and the hash of as many bytes as a value of the bucket has decides. A
// full generation becomes the previous one, which is still searched; Secrets that still exist are read again with later
// questions, and so enter the new one.
type known struct {
	key  [32]byte
	mult uint64
	seed maphash.Seed

	mu        sync.RWMutex // guards the fields below
	now, then *generation
}

type generation struct {
	lengths map[uint16][]int             // of the values of a bucket, the longest first
	present [1 << bucketBits / 64]uint64 // which buckets have values
	quick   map[uint64]bool              // cheap hashes of values, to reject most candidates
	values  map[[16]byte]bool            // hash to whether it matches only as a whole word
	read    map[[16]byte]bool            // whole values, as given
}

func newGeneration() *generation {
	return &generation{lengths: map[uint16][]int{}, quick: map[uint64]bool{}, values: map[[16]byte]bool{}, read: map[[16]byte]bool{}}
}

func newKnown() *known {
	k := &known{now: newGeneration(), then: newGeneration(), seed: maphash.MakeSeed()}
	_, _ = rand.Read(k.key[:]) // never fails
	k.mult = binary.LittleEndian.Uint64(k.key[:8]) | 1
	return k
}

// addSecret adds the value of a Secret under its name, as the API returns it: in base64, or plain.
func (k *known) addSecret(name, value string, encoded bool) {
	if parts := splitName(name); len(parts) > 0 && parts[len(parts)-1] == "crt" {
		return // certificates are public
	}
	if k.wasRead(value) {
		return
	}
	if encoded {
		plain, err := base64.StdEncoding.DecodeString(value)
		if err == nil {
			k.add(name, value)
			value = string(plain)
		}
	}
	k.addParts(value)
	k.add(name, value)
}

// addParts adds the secrets that Text finds in a value, such as the password in an address, and for a file also its
// long words of mixed letters and digits. It runs before the value itself is added, which would be found as a whole.
func (k *known) addParts(value string) {
	value = value[:min(len(value), mostEncoded)]
	left := mostParts
	for _, sp := range findSecrets(value, 0, nil) {
		if left--; left < 0 {
			return
		}
		k.add("password", value[sp.from:sp.to])
	}
	if !strings.Contains(strings.TrimSpace(value), "\n") {
		return
	}
	for _, word := range strings.FieldsFunc(value, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"',;{}[]()<>`, r) }) {
		if len(word) >= 20 && strings.ContainsAny(word, "0123456789") && entropy(word) > 3.5 {
			if left--; left < 0 {
				return
			}
			k.add("", word)
		}
	}
}

// Names under which Secrets hold public values that occur in every text.
var publicNames = wordSet("namespace host hostname port user username database dbname db name region zone bucket type")

// publicExpr matches values that are public in any Secret: an address without a password, an image, a flag.
var publicExpr = regexp.MustCompile(`^(?:[a-z][a-z0-9+.-]*://[^@?\s]+|[a-z0-9.-]+(?::[0-9]+)?(?:/[a-z0-9._-]+)+(?::[\w.-]+)?|-.*)$`)

// isWorthFinding reports whether a value may be redacted wherever it occurs. Names of objects and plain words may not,
// unless the name of the value marks it as secret: without them no answer could be given.
func isWorthFinding(name, value string) bool {
	if len(value) < leastKnown || isPlainValue(value) || strings.Trim(value, "0123456789.:") == "" {
		return false
	}
	if tellingVariable(name) {
		return true
	}
	parts := splitName(name)
	if len(parts) > 0 && publicNames[parts[len(parts)-1]] {
		return false
	}
	return !isNameLike(value) && !publicExpr.MatchString(value)
}

// isNameLike reports whether a value has only the characters of names of objects, places and modes.
func isNameLike(value string) bool {
	return strings.Trim(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._/-") == ""
}

func (k *known) add(name, value string) {
	value = strings.TrimSpace(value)
	if !isWorthFinding(name, value) {
		return
	}
	word := isNameLike(value) || isWord(value)
	for range mostPieces {
		piece := value[:min(len(value), mostKnownLength)]
		if value = value[len(piece):]; len(piece) < leastKnown {
			return
		}
		k.addPiece(piece, word)
	}
}

func (k *known) addPiece(value string, word bool) {
	b, whole := k.bucket(value), k.hash(value)
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.now.values[whole]; ok {
		return
	}
	if len(k.now.values) >= mostKnown {
		k.then, k.now = k.now, newGeneration()
	}
	g := k.now
	g.present[b/64] |= 1 << (b % 64)
	n := g.lengthFor(b, len(value))
	if n < len(value) {
		whole = k.hash(value[:n])
	}
	g.quick[maphash.String(k.seed, value[:n])] = true
	g.values[whole] = word
}

// lengthFor returns the length of the prefix to search for of a value of n bytes, and records it. If many values have
// the same first bytes, it is one of a few, and at least three quarters of n.
func (g *generation) lengthFor(b uint16, n int) int {
	if !slices.Contains(g.lengths[b], n) && len(g.lengths[b]) >= mostLengths {
		step := leastKnown
		for next := step; next <= n; next = max(step+1, step*5/4) {
			step = next
		}
		n = step
	}
	if !slices.Contains(g.lengths[b], n) {
		g.lengths[b] = append(g.lengths[b], n)
		slices.SortFunc(g.lengths[b], func(a, c int) int { return c - a })
	}
	return n
}

// wasRead reports whether a value was added before, and records it.
func (k *known) wasRead(value string) bool {
	h := k.hash(value)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.now.read[h] {
		return true
	}
	if len(k.now.read) >= mostKnown {
		k.now.read = map[[16]byte]bool{}
	}
	k.now.read[h] = true
	return false
}

func (k *known) hash(value string) (h [16]byte) {
	mac := hmac.New(sha256.New, k.key[:])
	mac.Write([]byte(value))
	copy(h[:], mac.Sum(nil))
	return h
}

// bucket hashes the first bytes of a value. It keeps too few bits to reveal them.
func (k *known) bucket(s string) uint16 {
	head := uint64(binary.LittleEndian.Uint32([]byte(s[:4]))) | uint64(s[4])<<32 | uint64(s[5])<<40
	hi, lo := bits.Mul64(head^k.mult>>16, k.mult)
	return uint16((hi ^ lo) >> 48)
}

// find appends the positions of values in s. A nil set finds nothing.
func (k *known) find(s string, spans []span) []span {
	if k == nil {
		return spans
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, g := range []*generation{k.now, k.then} {
		for i := 0; len(g.values) > 0 && i+leastKnown <= len(s); i++ {
			b := k.bucket(s[i : i+leastKnown])
			if g.present[b/64]&(1<<(b%64)) == 0 {
				continue
			}
			for _, n := range g.lengths[b] {
				if i+n > len(s) || !g.quick[maphash.String(k.seed, s[i:i+n])] {
					continue
				}
				if word, ok := g.values[k.hash(s[i:i+n])]; ok && (!word || standsAlone(s, i, i+n)) {
					spans = append(spans, span{from: i, to: i + n})
					i += n - 1
					break
				}
			}
		}
	}
	return spans
}

func isWord(s string) bool {
	for _, r := range s {
		if !unicode.IsLetter(r) {
			return false
		}
	}
	return true
}

// standsAlone reports whether s[from:to] is a whole word, and not part of a host, an image, a path or an address: a
// password that is a plain word must not remove the names of things from every answer.
func standsAlone(s string, from, to int) bool {
	if from > 0 && (isNameByte(s[from-1]) || strings.IndexByte("./@", s[from-1]) >= 0) {
		return false
	}
	switch {
	case to == len(s):
		return true
	case s[to] == '.' || s[to] == ':': // also the end of a sentence
		return to+1 == len(s) || !isNameByte(s[to+1])
	}
	return s[to] != '/' && s[to] != '@' && !isNameByte(s[to])
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c >= 0x80
}
