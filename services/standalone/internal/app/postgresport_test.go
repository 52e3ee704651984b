package app

import (
	"encoding/binary"
	"testing"
)

// authentication is a message of Postgres about a login.
func authentication(number uint32, rest string) string {
	m := binary.BigEndian.AppendUint32([]byte{'R'}, uint32(8+len(rest)))
	return string(binary.BigEndian.AppendUint32(m, number)) + rest
}

func TestSignedInIsWhatPostgresSays(t *testing.T) {
	t.Parallel()
	exchange := authentication(10, "SCRAM-SHA-256\x00\x00") + authentication(11, "r=abc") + authentication(12, "v=def")
	for name, c := range map[string]struct {
		text      string
		in, known bool
	}{
		"nothing yet":            {"", false, false},
		"no encryption":          {"N", false, false},
		"half a message":         {"NR\x00\x00", false, false},
		"in the exchange":        {"NN" + exchange, false, false},
		"in the first exchange":  {authentication(10, "SCRAM-SHA-256\x00\x00")[:12], false, false},
		"signed in":              {"N" + exchange + authentication(0, ""), true, true},
		"signed in, and more":    {exchange + authentication(0, "") + "S\x00\x00\x00\x19", true, true},
		"refused":                {"N" + exchange + "E\x00\x00\x00\x68SFATAL\x00", false, true},
		"refused at once":        {"E", false, true},
		"a length without bound": {"R\xff\xff\xff\xff\x00\x00\x00\x0a", false, true},
	} {
		if in, known := signedIn([]byte(c.text)); in != c.in || known != c.known {
			t.Errorf("%s: got %v, %v; want %v, %v", name, in, known, c.in, c.known)
		}
	}
}
