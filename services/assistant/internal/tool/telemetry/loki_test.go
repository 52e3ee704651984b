package telemetry

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// streams is an answer of Loki 3: the newest line first, and structured metadata behind some lines.
const streams = `{"status":"success","data":{"resultType":"streams","result":[
{"stream":{"namespace":"shop","pod":"api-1","container":"app"},"values":[["1767355199000000000","second password=hunter2hunter2\n",{"trace":"1"}],["1767355197000000000","first"]]},
{"stream":{"job":"db"},"values":[["1767355198000000000","\u001b[31mbetween\u001b[0m"]]},
{"stream":{"namespace":"hush","pod":"x"},"values":[["1767355198000000000","not for you"]]}],"stats":{}}}`

func newTestLoki(t *testing.T, base string) *Loki {
	t.Helper()
	l, err := NewLoki(base, noonClock)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLines(t *testing.T) {
	t.Parallel()
	base, asked := startStore(t, "/loki/api/v1/query_range", 200, streams)
	out, err := newTestLoki(t, base).Query(t.Context(), `{namespace="shop"} |= "x"`, 0, 0, hush)
	if err != nil {
		t.Fatal(err)
	}
	want := "11:59:57 shop/api-1/app first\n11:59:58 {job=\"db\"} \uFFFD[31mbetween\uFFFD[0m\n11:59:59 shop/api-1/app second password="
	if !strings.HasPrefix(out.Text, want) || strings.Contains(out.Text, "hunter2") || out.Truncated || len(out.Untrusted) != 1 {
		t.Errorf(`%q; want strings.HasPrefix(out.Text, want) && !strings.Contains(out.Text, "hunter2") && !out.Truncated && len(out.Untrusted) == 1`, out.Text)
	}
	q := asked.Form
	if q.Get("query") != `{`+hush.matchers()+`,namespace="shop"} |= "x"` || q.Get("limit") != "100" || q.Get("direction") != "backward" || q.Get("end") != "1767355200000000000" || q.Get("start") != "1767351600000000000" {
		t.Errorf("asked %v; want q.Get(\"query\") == `{` + hush.matchers() + `,namespace=\"shop\"} |= \"x\"` && q.Get(\"limit\") == \"100\" && q.Get(\"direction\") == \"backward\" && …", q)
	}
	out, err = newTestLoki(t, base).Query(t.Context(), `{a="b"}`, 2, time.Minute, none)
	if err != nil || !out.Truncated || !strings.HasPrefix(out.Text, "[the newest 2 lines; there may be more]\n") {
		t.Errorf("%q, %v; want out.Truncated && strings.HasPrefix(out.Text, \"[the newest 2 lines; there may be more]\\n\")", out.Text, err)
	}
}

func TestLokiMetrics(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"pod":"a"},"values":[[1767355200,"3"]]}]}}`: `{pod="a"} last 3, min 3, max 3, mean 3: 12:00 3`,
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"pod":"a"},"value":[1767355200,"3"]}]}}`:    `{pod="a"} 3`,
		`{"status":"success","data":{"resultType":"streams","result":[]}}`:                                                  "No lines match.",
	} {
		base, _ := startStore(t, "/loki/api/v1/query_range", 200, body)
		if out, err := newTestLoki(t, base).Query(t.Context(), "x", 0, 0, none); err != nil || out.Text != want+"\n" {
			t.Errorf("%q, %v; want out.Text == want + \"\\n\"", out.Text, err)
		}
	}
}

func TestLokiFaults(t *testing.T) {
	t.Parallel()
	base, _ := startStore(t, "/loki/api/v1/query_range", 400, "parse error at line 1, col 5: syntax error: unexpected IDENTIFIER\n")
	var refused *operation.Fault
	if _, err := newTestLoki(t, base).Query(t.Context(), "x", 0, 0, none); !errors.As(err, &refused) || !strings.HasPrefix(refused.Sentence, "Loki refuses the query: parse error at line 1") {
		t.Errorf(`%v; want errors.As(err, &refused) && strings.HasPrefix(refused.Sentence, "Loki refuses the query: parse error at line 1")`, err)
	}
	for name, body := range map[string]string{
		"no JSON": "<html>", "no success": `{"status":"error"}`, "unknown": `{"status":"success","data":{"resultType":"?"}}`,
		"no time": `{"status":"success","data":{"resultType":"streams","result":[{"values":[["x","y"]]}]}}`,
		"short":   `{"status":"success","data":{"resultType":"streams","result":[{"values":[["1"]]}]}}`,
		"null":    `{"status":"success","data":{"resultType":"matrix","result":"x"}}`,
	} {
		base, _ := startStore(t, "/loki/api/v1/query_range", 200, body)
		var fail *turn.Fail
		if _, err := newTestLoki(t, base).Query(t.Context(), "x", 0, 0, none); !errors.As(err, &fail) || fail.Failure != fault.LogsUnavailable {
			t.Errorf("%s: %v; want errors.As(err, &fail) && fail.Failure == fault.LogsUnavailable", name, err)
		}
	}
	base, _ = startStore(t, "/loki/api/v1/query_range", 503, "starting")
	for _, base := range []string{base, "http://127.0.0.1:1"} {
		var fail *turn.Fail
		if _, err := newTestLoki(t, base).Query(t.Context(), "x", 0, 0, none); !errors.As(err, &fail) || fail.Failure != fault.LogsUnavailable {
			t.Errorf("%v; want errors.As(err, &fail) && fail.Failure == fault.LogsUnavailable", err)
		}
	}
	var missing *Loki
	if _, err := missing.Query(t.Context(), "x", 0, 0, none); err == nil || err.Error() != "No log store is configured; set LOKI_URL." {
		t.Errorf(`%v; want an error && err.Error() == "No log store is configured; set LOKI_URL."`, err)
	}
	if _, err := NewLoki("loki:3100", noonClock); err == nil {
		t.Error("an address without a scheme")
	}
}

// Whatever the store answers: text that can be shown, or an error.
func FuzzLogs(f *testing.F) {
	f.Add([]byte(streams), 100)
	f.Add([]byte(`{"status":"success","data":{"resultType":"matrix","result":[{"values":[[1,"NaN"],[2,"+Inf"]]}]}}`), 1)
	f.Add([]byte(`{"status":"success","data":{"resultType":"vector","result":[null]}}`), 1)
	f.Fuzz(func(t *testing.T, answer []byte, limit int) {
		limit = 1 + min(max(limit, 0), 499)
		text, _, err := writeLogs(answer, limit, none)
		if err != nil {
			return
		}
		if !json.Valid(answer) {
			t.Fatal("read what is no JSON")
		}
		if text == "" || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Fatalf("%q; want text != \"\" && utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return r != '\\n' && !unicode.IsPrint(r) })", text)
		}
	})
}
