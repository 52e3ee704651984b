package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/mlp-platform/platform/libs/problem"
)

type notice struct {
	Model string `json:"model"`
	Rows  int    `json:"rows"`
	Power *float64
	Deep  struct {
		List []string `json:"list"`
		Flag bool     `json:"flag"`
	} `json:"deep"`
	Parts []struct {
		Size int `json:"size"`
	} `json:"parts"`
	Named map[string]*part `json:"named"`
	Free  json.RawMessage  `json:"free"`
	Any   any              `json:"any"`
	part
}

type part struct {
	Width int `json:"width,omitempty"`
}

// bodies maps a body to the place and message of its fault; an empty place is a pass.
var bodies = []struct {
	name, body, loc, msg string
}{
	{"good", `{"model":"JPCP","rows":1,"deep":{"list":["a"],"flag":true}}`, "", ""},
	{"space around", " \n{\"rows\":1}\t\n", "", ""},
	{"same key and value", `{"model":"rows","rows":1}`, "", ""},
	{"empty", ``, "body", "the body is empty; send a JSON object"},
	{"only space", "  \n", "body", "the body is empty; send a JSON object"},
	{"null", `null`, "body", "the body is null; send a JSON object"},
	{"cut off", `{"rows":1`, "body", "not valid JSON: it ends early"},
	{"not JSON", `{rows:1}`, "body", "not valid JSON at byte 2: invalid character 'r' looking for beginning of object key string"},
	{"single quotes", `{'rows':1}`, "body", "not valid JSON at byte 2: invalid character '\\'' looking for beginning of object key string"},
	{"a list", `[1]`, "body", "must be an object, not array"},
	{"a string", `"x"`, "body", "must be an object, not string"},
	{"text for a number", `{"rows":"1"}`, "body rows", "must be a whole number in range, not string"},
	{"fraction for an integer", `{"rows":1.5}`, "body rows", "must be a whole number in range, not number 1.5"},
	{"overflow", `{"rows":1e99}`, "body rows", "must be a whole number in range, not number 1e99"},
	{"number for text", `{"model":1}`, "body model", "must be a string, not number"},
	{"object for list", `{"deep":{"list":{}}}`, "body deep list", "must be a list, not object"},
	{"NaN", `{"Power":NaN}`, "body", "not valid JSON at byte 10: invalid character 'N' looking for beginning of value"},
	{"unknown field", `{"rows":1,"rowz":2}`, "body rowz", "unknown field"},
	{"odd unknown field", `{"a\"b\n":1}`, "body a\"b\n", "unknown field"},
	{"trailing value", `{"rows":1}{"rows":2}`, "body", "text follows the JSON value at byte 11"},
	{"trailing text", `{"rows":1} x`, "body", "text follows the JSON value at byte 11"},
	{"repeated key", `{"rows":1,"rows":2}`, "body rows", "is there twice"},
	{"repeated key, escaped", `{"rows":1,"\u0072ows":2}`, "body rows", "is there twice"},
	{"repeated after nesting", `{"deep":{"list":["{\"rows\":1"]},"rows":1,"deep":{}}`, "body deep", "is there twice"},
	{"nested repeat", `{"deep":{"flag":true,"flag":false}}`, "body deep flag", "is there twice"},
	{"repeat in a list", `{"parts":[{}, {"size":1,"size":1}]}`, "body parts 1 size", "is there twice"},
	{"repeat in a document kept raw", `{"free":[{"a":1,"\u0061":2}]}`, "body free 0 a", "is there twice"},
	{"repeat in anything", `{"any":{"x":{"a":{},"a":[]}}}`, "body any x a", "is there twice"},
	{"another case", `{"Rows":1}`, "body Rows", "unknown field"},
	{"another case beside the name", `{"rows":1,"ROWS":2}`, "body ROWS", "unknown field"},
	{"another case by Unicode folding", `{"row\u017f":1}`, "body row\u017f", "unknown field"},
	{"another case, nested", `{"deep":{"Flag":true}}`, "body deep Flag", "unknown field"},
	{"another case in a list", `{"parts":[{"size":1},{"Size":1}]}`, "body parts 1 Size", "unknown field"},
	{"another case in a map", `{"named":{"X":{"Width":1}}}`, "body named X Width", "unknown field"},
	{"another case, embedded", `{"Width":1}`, "body Width", "unknown field"},
	{"names in any case where none are given", ` { "named" : { "x" : { "width" : 1 } , "X" : null } , "free" : { "a" : [ ] , "A" : { } } , "any" : [ { "b" : -1.5e3 , "B" : "}" } ] , "width" : 1 } `, "", ""},
}

func TestDecodeJSON(t *testing.T) {
	t.Parallel()
	for _, tc := range bodies {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, chunked := range []bool{false, true} {
				resp := postBody(t, tc.body, chunked, "application/json", true)
				if tc.loc == "" {
					if resp.StatusCode != http.StatusOK {
						t.Errorf("%d %s; want resp.StatusCode == %v", resp.StatusCode, readBody(t, resp), http.StatusOK)
					}
					continue
				}
				p := problem.Decode(resp)
				want := []problem.Field{{Loc: strings.Split(tc.loc, " "), Msg: tc.msg}}
				if p.Status() != 422 || p.Kind.Code != "validation_error" || !reflect.DeepEqual(p.Errors, want) {
					t.Errorf("%d %s %+v, want %+v", p.Status(), p.Kind.Code, p.Errors, want)
				}
			}
		})
	}
}

func postBody(t *testing.T, text string, chunked bool, contentType string, strict bool) *http.Response {
	t.Helper()
	s := New(Options{Name: "t", BodyLimit: 1000})
	s.Echo.POST("/", func(c echo.Context) error {
		var n notice
		if err := DecodeJSON(c, &n, strict); err != nil {
			return err
		}
		return c.JSON(http.StatusOK, n)
	})
	var rd io.Reader = strings.NewReader(text)
	if chunked {
		rd = struct{ io.Reader }{rd} // of unknown length
	}
	r := httptest.NewRequest(http.MethodPost, "/", rd)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	return serveRequest(t, s, r)
}

func TestLenientRoutesIgnoreUnknownFields(t *testing.T) {
	t.Parallel()
	if resp := postBody(t, `{"rows":1,"rowz":2}`, false, "application/json", false); resp.StatusCode != 200 {
		t.Errorf("%d; want 200", resp.StatusCode)
	}
	if resp := postBody(t, `{"rows":1,"x":2,"x":3}`, false, "application/json", false); resp.StatusCode != 422 {
		t.Errorf("repeated: %d; want 422", resp.StatusCode)
	}
	if resp := postBody(t, `{"Rows":1,"x":{"y":1,"y":2}}`, false, "application/json", false); resp.StatusCode != 200 {
		t.Errorf("nested, another case: %d; want 200", resp.StatusCode)
	}
}

func TestContentTypes(t *testing.T) {
	t.Parallel()
	for contentType, want := range map[string]int{
		"application/json": 200, "application/json; charset=utf-8": 200, "Application/JSON": 200, "application/merge-patch+json": 200, "": 200,
		"application/x-www-form-urlencoded": 415, "text/plain": 415, "multipart/form-data; boundary=x": 415, ";": 415,
	} {
		if resp := postBody(t, `{}`, false, contentType, true); resp.StatusCode != want {
			t.Errorf("%q: %d, want %d", contentType, resp.StatusCode, want)
		}
	}
}

// A body of known length is refused by its length, a chunked one while it is read.
func TestBodyLimitOverHTTP(t *testing.T) {
	t.Parallel()
	s := New(Options{Name: "t", BodyLimit: 1000, BodyLimits: map[string]int64{"/big": 5000}})
	decode := func(c echo.Context) error {
		var v map[string]any
		if err := DecodeJSON(c, &v, false); err != nil {
			return err
		}
		return c.NoContent(http.StatusNoContent)
	}
	s.Echo.POST("/", decode)
	s.Echo.POST("/big", decode)
	s.Echo.POST("/unread", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
	url, _ := startServer(t, s)
	sized := func(n int) string { return `{"x":"` + strings.Repeat("y", n-8) + `"}` }
	for _, tc := range []struct {
		path    string
		size    int
		chunked bool
		want    int
	}{
		{"/", 1000, false, 204}, {"/", 1000, true, 204},
		{"/", 1001, false, 413}, {"/", 1001, true, 413},
		{"/", 4 << 20, false, 413}, {"/", 4 << 20, true, 413},
		{"/big", 5000, true, 204}, {"/big", 5001, true, 413}, {"/big", 5001, false, 413},
		{"/unread", 1001, false, 413},
	} {
		t.Run(fmt.Sprintf("%s %d %v", tc.path, tc.size, tc.chunked), func(t *testing.T) {
			t.Parallel()
			var rd io.Reader = strings.NewReader(sized(tc.size))
			if tc.chunked {
				rd = struct{ io.Reader }{rd}
			}
			resp, err := http.Post(url+tc.path, "application/json", rd)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != tc.want {
				t.Errorf("%d, want %d", resp.StatusCode, tc.want)
			}
			if tc.want == 413 && problem.Decode(resp).Kind.Code != "body_too_large" {
				t.Error("another code")
			}
		})
	}
}

func TestBodyThatEndsEarlyOrNeverComes(t *testing.T) {
	t.Parallel()
	s := New(Options{Name: "t"})
	got := make(chan error, 1)
	s.Echo.POST("/", func(c echo.Context) error {
		if c.QueryParam("slow") != "" {
			_ = http.NewResponseController(c.Response()).SetReadDeadline(time.Now().Add(time.Millisecond)) // the port's own is a minute away
		}
		_, err := ReadBody(c)
		got <- err
		return err
	})
	url, _ := startServer(t, s)
	send := func(path string) net.Conn {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	if err := send("/").Close(); err != nil {
		t.Fatal(err)
	}
	if err := receiveWithin(t, got, "the short body"); !problem.BadRequest.Has(err) {
		t.Errorf("short body: %v; want problem.BadRequest.Has(err)", err)
	}
	conn := send("/?slow=1")
	defer conn.Close()
	if err := receiveWithin(t, got, "the slow body"); !RequestTimeout.Has(err) {
		t.Errorf("slow body: %v; want RequestTimeout.Has(err)", err)
	}
}

func TestOptionalBody(t *testing.T) {
	t.Parallel()
	s := New(Options{Name: "t"})
	s.Echo.POST("/", func(c echo.Context) error {
		n := notice{Model: "default"}
		if err := DecodeOptionalJSON(c, &n, true); err != nil {
			return err
		}
		return c.String(http.StatusOK, n.Model)
	})
	for text, want := range map[string]string{"": "default", " ": "default", "{}": "default", `{"model":"x"}`: "x"} {
		if got := readBody(t, serveRequest(t, s, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(text)))); got != want {
			t.Errorf("%q: %q; want got == %v", text, got, want)
		}
	}
	if resp := serveRequest(t, s, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{"))); resp.StatusCode != 422 {
		t.Errorf("broken: %d; want 422", resp.StatusCode)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	type position struct {
		At string `json:"at"`
		ID int    `json:"id"`
	}
	e := echo.New()
	ask := func(query string) echo.Context {
		return e.NewContext(httptest.NewRequest(http.MethodGet, "/?"+query, nil), httptest.NewRecorder())
	}
	for query, want := range map[string]int{"": 50, "limit=1": 1, "limit=500": 500, "limit=0": 0, "limit=501": 0, "limit=-1": 0, "limit=x": 0, "limit=1.0": 0} {
		got, err := PageLimit(ask(query))
		if got != want || (want == 0) != problem.Validation.Has(err) {
			t.Errorf("%q: %d %v; want got == want && (want == 0) == problem.Validation.Has(err)", query, got, err)
		}
	}
	at := position{"2026-01-02", 7}
	var back position
	with := func(route, text string) (position, error) {
		c := ask("cursor=" + text)
		c.SetPath(route)
		var back position
		ok, err := Cursor(c, &back)
		if !ok {
			t.Errorf("%q: no cursor; want ok", text)
		}
		return back, err
	}
	if back, err := with("/a", EncodeCursor("/a", at)); err != nil || back != at {
		t.Errorf("%v %+v; want back == at", err, back)
	}
	if back, err := with("/a", EncodeCursor("/a", position{`\u0000`, 7})); err != nil || back.At != `\u0000` {
		t.Errorf("an escape as text: %v %+v; want back.At == `\\u0000`", err, back)
	}
	if ok, err := Cursor(ask(""), &back); ok || err != nil {
		t.Errorf("no cursor: %v %v; want !ok", ok, err)
	}
	for _, bad := range []string{
		"!", "eyJ4IjoxfQ", EncodeCursor("/a", "text"), EncodeCursor("/a", struct{}{}), EncodeCursor("/a", nil), EncodeCursor("/a", at) + "AAAA", strings.Repeat("A", 2000),
		EncodeCursor("/a", position{"a\x00", 1}), EncodeCursor("/a", position{"\\\x00", 1}), EncodeCursor("/b", at), EncodeCursor("", at),
	} {
		if _, err := with("/a", bad); !problem.Validation.Has(err) {
			t.Errorf("%q: %v; want problem.Validation.Has(err)", bad, err)
		}
	}
}

// ParseJSON answers any bytes with nil or a 422, and finds a repeated
// key exactly when a plain walk over the tokens does.
func FuzzParseJSON(f *testing.F) {
	for _, tc := range bodies {
		f.Add([]byte(tc.body))
	}
	f.Add([]byte(`{"a":1,"b":{"a":[{"c":"\\\""}]},"\u0061":2}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var v map[string]any
		err := ParseJSON(raw, &v, true)
		if err != nil && !problem.Validation.Has(err) {
			t.Fatalf("%v; want (err == nil || problem.Validation.Has(err))", err)
		}
		var plain any
		valid := json.Unmarshal(raw, &plain) == nil
		_, object := plain.(map[string]any)
		if !valid || !object {
			if err == nil {
				t.Fatalf("took %q; want an error", raw)
			}
			return
		}
		if got, want := err != nil, repeatsByTokens(t, raw); got != want {
			t.Fatalf("%q: repeated %v, tokens say %v (%v)", raw, got, want, err)
		}
	})
}

func repeatsByTokens(t *testing.T, raw []byte) bool {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	token := func() json.Token {
		v, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	repeated := false
	var value func()
	value = func() {
		open, nests := token().(json.Delim)
		if !nests {
			return
		}
		seen := map[string]bool{}
		for d.More() {
			if open == '{' {
				key := token().(string)
				repeated = repeated || seen[key]
				seen[key] = true
			}
			value()
		}
		token()
	}
	value()
	return repeated
}

func TestManyKeysAreNoQuadraticCost(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"k":0`)
	for i := range 100_000 {
		fmt.Fprintf(&b, `,"%d":0`, i)
	}
	var v map[string]int
	if err := ParseJSON([]byte(b.String()+"}"), &v, false); err != nil {
		t.Error(err)
	}
	if err := ParseJSON([]byte(b.String()+`,"99999":1}`), &v, false); !errors.Is(err, problem.Validation.New("")) {
		t.Errorf(`%v; want errors.Is(err, problem.Validation.New(""))`, err)
	}
}
