package redact

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math/bits"
	"strings"
	"sync"
	"unicode"
)

// seen holds the values of all Secrets that this process has read, of whatever cluster and tenant: none of them is for
// anybody's eyes, so one set serves all texts.
var seen = newKnown()

const (
	// leastKnown is the shortest value that is looked for. Shorter ones are parts of words everywhere.
	leastKnown = 6
	// mostKnown limits the set. A full one begins anew: Secrets that are still there are read again with the next question.
	mostKnown = 1 << 16
	// mostKnownLength limits a value; of a longer one its beginning is looked for.
	mostKnownLength = 4 << 10
	bucketBits      = 16
)

// known is a set of values of which it keeps only hashes under a key that lives as long as the process. A value is found
// wherever it begins: the first bytes select a bucket, and the hash of as many bytes as the value has decides.
type known struct {
	key  [32]byte
	mult uint64

	mu      sync.RWMutex // guards what follows
	buckets map[uint16][]knownValue
	present [1 << bucketBits / 64]uint64 // which buckets have values
	hashes  map[[16]byte]bool            // of values
}

type knownValue struct {
	length int
	word   bool // only letters: found only as a whole word
	hash   [16]byte
}

func newKnown() *known {
	k := &known{buckets: map[uint16][]knownValue{}, hashes: map[[16]byte]bool{}}
	_, _ = rand.Read(k.key[:]) // never fails
	k.mult = binary.LittleEndian.Uint64(k.key[:8]) | 1
	return k
}

// addSecret adds the value of a Secret under its name, as the API gives it: in base64, or plain.
func (k *known) addSecret(name, value string, encoded bool) {
	if parts := splitName(name); len(parts) > 0 && parts[len(parts)-1] == "crt" {
		return // certificates are public
	}
	if k.has(value) {
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

// addParts adds what Text takes out of a file, and its long words of mixed letters and digits. It comes before the file itself
// is added, which would be found as a whole.
func (k *known) addParts(value string) {
	if !strings.Contains(strings.TrimSpace(value), "\n") {
		return
	}
	value = value[:min(len(value), mostEncoded)]
	for _, sp := range findSecrets(value, 0) {
		k.add("password", value[sp.from:sp.to])
	}
	for _, word := range strings.FieldsFunc(value, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"',;{}[]()<>`, r) }) {
		if len(word) >= 20 && strings.ContainsAny(word, "0123456789") && entropy(word) > 3.5 {
			k.add("", word)
		}
	}
}

// Names under which Secrets hold what is no secret, and what every text is full of.
var publicNames = wordSet("namespace host hostname port user username database dbname db name region zone bucket type")

// isWorthFinding reports whether a value may be taken out wherever it stands. The names of things and plain words are not,
// unless the name of the value tells: without them no answer could be given.
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
	return strings.Trim(value, "abcdefghijklmnopqrstuvwxyz.-") != "" // more than a name of an object has
}

func (k *known) add(name, value string) {
	value = strings.TrimSpace(value)
	if !isWorthFinding(name, value) {
		return
	}
	value = value[:min(len(value), mostKnownLength)]
	v := knownValue{length: len(value), word: isWord(value), hash: k.hash(value)}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.hashes[v.hash] {
		return
	}
	if len(k.hashes) >= mostKnown {
		k.buckets, k.hashes = map[uint16][]knownValue{}, map[[16]byte]bool{}
		k.present = [len(k.present)]uint64{}
	}
	b := k.bucket(value)
	k.buckets[b] = append(k.buckets[b], v)
	k.present[b/64] |= 1 << (b % 64)
	k.hashes[v.hash] = true
}

func (k *known) has(value string) bool {
	h := k.hash(value[:min(len(value), mostKnownLength)])
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.hashes[h]
}

func (k *known) hash(value string) (h [16]byte) {
	mac := hmac.New(sha256.New, k.key[:])
	mac.Write([]byte(value))
	copy(h[:], mac.Sum(nil))
	return h
}

// bucket goes by the first bytes of a value. It keeps too few bits to tell them.
func (k *known) bucket(s string) uint16 {
	head := uint64(binary.LittleEndian.Uint32([]byte(s[:4]))) | uint64(s[4])<<32 | uint64(s[5])<<40
	hi, lo := bits.Mul64(head^k.mult>>16, k.mult)
	return uint16((hi ^ lo) >> 48)
}

// find appends where values stand in s.
func (k *known) find(s string, spans []span) []span {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if len(k.hashes) == 0 {
		return spans
	}
	for i := 0; i+leastKnown <= len(s); i++ {
		b := k.bucket(s[i : i+leastKnown])
		if k.present[b/64]&(1<<(b%64)) == 0 {
			continue
		}
		longest := 0
		for _, v := range k.buckets[b] {
			if v.length <= longest || i+v.length > len(s) || v.word && !standsAlone(s, i, i+v.length) {
				continue
			}
			if k.hash(s[i:i+v.length]) == v.hash {
				longest = v.length
			}
		}
		if longest > 0 {
			spans = append(spans, span{from: i, to: i + longest})
			i += longest - 1
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

func standsAlone(s string, from, to int) bool {
	return (from == 0 || !isNameByte(s[from-1])) && (to == len(s) || !isNameByte(s[to]))
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c >= 0x80
}
