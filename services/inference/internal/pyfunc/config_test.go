package pyfunc

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestParseEndpoints(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ raw, want string }{
		{``, ""},
		{`{"forest": "http://127.0.0.1:5001/", "Forest/3": "https://scoring.example/forest/invocations"}`, ""},
		{`["http://127.0.0.1"]`, "JSON object"},
		{`{"forest": "ftp://127.0.0.1"}`, "FOREST: this is no http or https URL"},
		{`{"forest": "http://"}`, "no http or https URL"},
		{`{"forest": "http://user:secret@host"}`, "no user, query or fragment"},
		{`{"forest": "http://host/?key=secret"}`, "no user, query or fragment"},
		{`{"forest": "http://169.254.169.254/latest"}`, "link-local"},
		{`{"forest": "http://[fe80::1]/"}`, "link-local"},
		{`{"forest": "http://[::ffff:169.254.169.254]/"}`, "link-local"},
		{`{"forest": "http://0.0.0.0:80/"}`, "no address of one host"},
		{`{"forest": "http://a", "FOREST": "http://b"}`, "twice"},
		{`{"": "http://a"}`, "no name"},
	} {
		_, err := ParseEndpoints(c.raw)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %q and no secret", c.raw, err, c.want)
		}
	}
	got, err := ParseEndpoints(`{"forest/3": "https://scoring.example/forest/invocations/"}`)
	if err != nil || got["FOREST/3"].String() != "https://scoring.example/forest" {
		t.Errorf("got %v, %v, want https://scoring.example/forest under FOREST/3", got, err)
	}
}

func TestParseCommand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		raw, want string
		words     int
	}{
		{"", "", 0},
		{"mlflow models serve --env-manager local -h 127.0.0.1 -m {model} -p {port}", "", 11},
		{`["/opt/my python/bin/mlflow", "serve", "{model}", "--port={port}"]`, "", 4},
		{`["mlflow"`, "JSON list", 0},
		{"mlflow serve -m {model}", "{port}", 0},
		{"mlflow serve -p {port}", "{model}", 0},
	} {
		words, err := ParseCommand(c.raw)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) || len(words) != c.words {
			t.Errorf("%s: got %q, %v, want %d words, %q", c.raw, words, err, c.words, c.want)
		}
	}
}

// A name that resolves to loopback, which the operator has not written, is refused when it is dialled.
func TestDialRefusesAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		address string
		refused bool
	}{
		{"127.0.0.1", false}, {"::1", false}, {"10.1.2.3", false}, {"192.168.0.9", false},
		{"169.254.169.254", true}, {"fe80::1", true}, {"fd00:ec2::254", true}, {"0.0.0.0", true}, {"224.0.0.1", true}, {"::ffff:169.254.1.1", true},
	} {
		if why := forbiddenHost(c.address); (why != "") != c.refused {
			t.Errorf("%s: got %q, want refused: %v", c.address, why, c.refused)
		}
	}
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	if conn, err := dialChecked(context.Background(), "tcp", "localhost:"+port); err != nil {
		t.Errorf("got %v, want a connection to loopback by its name", err)
	} else {
		_ = conn.Close()
	}
	if namesLoopback("localhost.example") || namesLoopback("127.0.0.1.example") || !namesLoopback("Localhost.") {
		t.Errorf("got localhost.example %v, 127.0.0.1.example %v, Localhost. %v; want false, false, true",
			namesLoopback("localhost.example"), namesLoopback("127.0.0.1.example"), namesLoopback("Localhost."))
	}
}

func TestPredictionsOfEachForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ raw, answer, want string }{
		{`{"predictions": [1, 2.5]}`, "number", "[1 2.5]"},
		{`{"predictions": [[1.5], [2]]}`, "number", "[1.5 2]"},
		{`{"predictions": [{"y": 1.5}, {"y": 2}]}`, "number", "[1.5 2]"},
		{`{"predictions": [true, false]}`, "class", "[1 0]"},
		{`{"predictions": ["low", "high"], "other": 1}`, "text", "[low high]"},
		{`{"predictions": [1.5, 2]}`, "class", "no whole number"},
		{`{"predictions": [1e400, 2]}`, "number", "no finite number"},
		{`{"predictions": [1, 2, 3]}`, "number", "3 predictions for 2 rows"},
		{`{"predictions": [{"a": 1, "b": 2}, {}]}`, "number", "no single value"},
		{`{"predictions": [[[1]], [2]]}`, "number", "no single value"},
		{`{"predictions": [null, "x"]}`, "text", "no text"},
		{`[1, 2]`, "number", "no JSON object"},
	} {
		got, err := readAnswers([]byte(c.raw), 2, answers[answerOf(c.answer)])
		text := describe(got)
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, c.want) {
			t.Errorf("%s as %s: got %s, want %s", c.raw, c.answer, text, c.want)
		}
	}
}

func FuzzReadAnswers(f *testing.F) {
	f.Add([]byte(`{"predictions": [1, [2], {"y": "z"}]}`), 3)
	f.Fuzz(func(t *testing.T, raw []byte, rows int) {
		for _, info := range answers {
			got, err := readAnswers(raw, rows, info)
			if n := max(len(got.Doubles), len(got.Int64s), len(got.Strings)); err == nil && n != rows {
				t.Errorf("%q: got %d values, want %d", raw, n, rows)
			}
		}
	})
}
