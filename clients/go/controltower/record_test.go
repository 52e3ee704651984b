package controltower_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mlp-platform/platform/libs/evidence/canon"
)

var update = flag.Bool("update", false, "rewrite the recorded exchanges")

// TestTheSuiteIsAsRecorded compares clients/exchanges with the output of this package's recipes for the product's own
// documents.
func TestTheSuiteIsAsRecorded(t *testing.T) {
	t.Parallel()
	for name, cases := range map[string][]recorded{
		"answers": answerExchanges(), "lists": listExchanges(), "errors": apiErrors(), "broken": brokenExchanges(),
		"transport": transportExchanges(), "stream": streamExchanges(), "stream-broken": brokenStreams(), "refused": refusedCalls(),
	} {
		seen := map[string]bool{}
		for i, c := range cases {
			if seen[c.Name] {
				t.Errorf("%s: two exchanges are named %q; want !seen[c.Name]", name, c.Name)
			}
			seen[c.Name] = true
			if c.Exchanges == nil {
				cases[i].Exchanges = []rawExchange{}
			}
		}
		recording := formatSuite(t, cases)
		file := filepath.Join(suiteFolder(t), name+".json")
		if *update {
			if err := os.WriteFile(file, recording, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, recording) {
			t.Errorf("%s is not what the recipes make (%v); run go test ./controltower -run TheSuiteIsAsRecorded -update, and read the difference", file, err)
		}
	}
}

// formatSuite writes the members of each case on a line of their own, and each piece of a response: short
// enough to read whole, and a change shows as the line it is.
func formatSuite(t testing.TB, cases []recorded) []byte {
	t.Helper()
	encode := func(v any) string {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(b.String())
	}
	var all []string
	for _, c := range cases {
		var exchanges []string
		for _, e := range c.Exchanges {
			var pieces []string
			for _, p := range e.Response {
				pieces = append(pieces, "\n    "+encode(p))
			}
			exchange := "\n  {\"request\": " + encode(e.Request) + ",\n   \"response\": [" + strings.Join(pieces, ",") + "]"
			if e.Then != "" {
				exchange += ", \"then\": " + encode(e.Then)
			}
			exchanges = append(exchanges, exchange+"}")
		}
		head := struct {
			Name   string          `json:"name"`
			Client clientSettings  `json:"client,omitzero"`
			Call   string          `json:"call"`
			Args   json.RawMessage `json:"args,omitempty"`
		}{c.Name, c.Client, c.Call, c.Args}
		all = append(all, strings.TrimSuffix(encode(head), "}")+",\n \"exchanges\": ["+strings.Join(exchanges, ",")+"],\n \"expect\": "+encode(c.Expect)+"}")
	}
	return []byte("[" + strings.Join(all, ",\n") + "]\n")
}

const requestID = "req_0123456789abcdef0123456789abcdef"

// reply is an answer in the making, to be broken on the way.
type reply struct {
	status int
	fields []string // name, value in turns
	body   []byte
}

// documentReply makes the answer the server gives with this document.
func documentReply(status int, doc any) *reply {
	v := canon.MustFrom(doc)
	body, err := canon.C1(v)
	if err != nil {
		panic(err)
	}
	return (&reply{status: status, body: body, fields: []string{
		"Cache-Control", "no-store",
		"X-Content-Type-Options", "nosniff",
		"Server", "svc-control-tower/0.1",
		"X-SVC-Service", "svc-control-tower",
		"X-SVC-Service-Version", "0.1.0",
		"X-SVC-API-Version", "v1",
		"X-SVC-Read-Only", "true",
		"X-Request-ID", requestID,
		"Content-Type", "application/json; charset=utf-8",
		"Vary", "Accept",
	}}).sealed().set("Connection", "close")
}

// sealed states digest and length of the body as it is now.
func (r *reply) sealed() *reply {
	d := canon.DigestBytes(r.body)
	if v, err := canon.Parse(r.body); err == nil {
		d = canon.Digest(v)
	}
	return r.set("X-SVC-Content-Digest", d).set("ETag", `"`+strings.TrimPrefix(d, "sha256:")+`"`).set("Content-Length", fmt.Sprint(len(r.body)))
}

func (r *reply) set(name, value string) *reply {
	for i := 0; i < len(r.fields); i += 2 {
		if r.fields[i] == name {
			r.fields[i+1] = value
			return r
		}
	}
	r.fields = append(r.fields, name, value)
	return r
}

func (r *reply) drop(name string) *reply {
	for i := 0; i < len(r.fields); i += 2 {
		if r.fields[i] == name {
			r.fields = append(r.fields[:i:i], r.fields[i+2:]...)
			return r
		}
	}
	panic("no field " + name)
}

// also adds a field beside those of its name.
func (r *reply) also(name, value string) *reply {
	r.fields = append(r.fields, name, value)
	return r
}

// swap changes the body and nothing else: neither digest nor length.
func (r *reply) swap(from, to string) *reply {
	if !bytes.Contains(r.body, []byte(from)) {
		panic("the body holds no " + from)
	}
	r.body = bytes.Replace(r.body, []byte(from), []byte(to), 1)
	return r
}

// write replaces the body and states its length.
func (r *reply) write(body string) *reply {
	r.body = []byte(body)
	return r.set("Content-Length", fmt.Sprint(len(body)))
}

func (r *reply) head() string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", r.status, http.StatusText(r.status))
	for i := 0; i < len(r.fields); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", r.fields[i], r.fields[i+1])
	}
	return b.String() + "\r\n"
}

func (r *reply) text() string { return r.head() + string(r.body) }

// digest is the digest the answer states.
func (r *reply) digest() string {
	for i := 0; i < len(r.fields); i += 2 {
		if r.fields[i] == "X-SVC-Content-Digest" {
			return r.fields[i+1]
		}
	}
	return ""
}

func plainReply(status int, sentence string) *reply {
	return (&reply{status: status, fields: []string{"Content-Type", "text/plain; charset=utf-8", "X-Request-ID", requestID, "Connection", "close"}}).write(sentence + "\n")
}

func getRequest(target string, extra ...string) rawRequest {
	fields := map[string]string{"Accept": "application/json", "Connection": "close", "X-SVC-UI-Token": token}
	for i := 0; i < len(extra); i += 2 {
		fields[extra[i]] = extra[i+1]
	}
	return rawRequest{Line: "GET /api/v1" + target + " HTTP/1.1", Fields: fields}
}

func postRequest(target, body string) rawRequest {
	r := getRequest(target, "Content-Type", "application/json", "Content-Length", fmt.Sprint(len(body)))
	r.Line, r.Body = "POST"+strings.TrimPrefix(r.Line, "GET"), body
	return r
}

func encodeArgs(pairs ...any) json.RawMessage {
	o := &canon.Object{}
	for i := 0; i < len(pairs); i += 2 {
		o.Set(pairs[i].(string), canon.MustFrom(pairs[i+1]))
	}
	c1, err := canon.C1(o)
	if err != nil {
		panic(err)
	}
	return c1
}

// answeredCall is a call whose one request gets this answer.
func answeredCall(name, call string, a json.RawMessage, request rawRequest, r *reply, want expectation) recorded {
	return recorded{Name: name, Call: call, Args: a, Exchanges: []rawExchange{{Request: request, Response: []piece{pieceOf(r.text())}}}, Expect: want}
}

func pieceOf(text string) piece {
	if utf8.ValidString(text) {
		return piece{Text: text}
	}
	return piece{Hex: hex.EncodeToString([]byte(text))}
}

// expectDocument expects the document of the answer.
func expectDocument(r *reply) expectation {
	return expectation{RequestID: requestID, ContentDigest: r.digest()}
}

func pointerTo[T any](v T) *T { return &v }
