package telemetry

import (
	"strings"
	"testing"
)

// M is replaced by the matchers in the tests.
func closedQuery(t *testing.T, query string, metrics bool) string {
	t.Helper()
	h := Hidden{"crm", "vault"}
	got, err := h.close(query, metrics)
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(got, h.matchers(), "M")
}

func TestMatchers(t *testing.T) {
	t.Parallel()
	got := Hidden{"crm", "vault"}.matchers()
	if !strings.HasPrefix(got, `namespace!~"crm|vault",exported_namespace!~"crm|vault",`) || !strings.HasSuffix(got, `kube_namespace!~"crm|vault"`) {
		t.Error(got, "want strings.HasPrefix(got, `namespace!~\"crm|vault\",exported_namespace!~\"crm|vault\",`) && strings.HasSuffix(got, `kube_namespace!~\"crm|vault\"`)")
	}
	if got, err := none.close(`{a="b"}`, true); got != `{a="b"}` || err != nil {
		t.Errorf("nothing hidden: %q, %v; want got == `{a=\"b\"}`", got, err)
	}
}

func TestCloseMetrics(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		`up`:                          `up{M}`,
		`up{}`:                        `up{M}`,
		`up{a="b"}`:                   `up{M,a="b"}`,
		`{__name__=~".+"}`:            `{M,__name__=~".+"}`,
		`{"with.dots", a="}"}`:        `{M,"with.dots", a="}"}`,
		`sum(up)`:                     `sum(up{M})`,
		`sum by (namespace) (up)`:     `sum by (namespace) (up{M})`,
		`sum(up) by (namespace, pod)`: `sum(up{M}) by (namespace, pod)`,
		`SUM WITHOUT(pod)(up)`:        `SUM WITHOUT(pod)(up{M})`,
		`label_replace(up{namespace="crm"}, "namespace", "x", "", "")`: `label_replace(up{M,namespace="crm"}, "namespace", "x", "", "")`,
		`rate(http_requests_total[5m:1m] offset 1h)`:                   `rate(http_requests_total{M}[5m:1m] offset 1h)`,
		`rate(a{x='y'}[5m] offset -1h) > bool 0`:                       `rate(a{M,x='y'}[5m] offset -1h) > bool 0`,
		`a == bool b`:                                                  `a{M} == bool b{M}`,
		`a > bool`:                                                     `a{M} > bool{M}`,
		`a * on(pod) group_left(node) b`:                               `a{M} * on(pod) group_left(node) b{M}`,
		`a and ignoring (pod) b or c unless d`:                         `a{M} and ignoring (pod) b{M} or c{M} unless d{M}`,
		`topk(3, a) / scalar(b) + 1.5e3 + .5`:                          `topk(3, a{M}) / scalar(b{M}) + 1.5e3 + .5`,
		`sum(count)`:                                                   `sum(count{M})`,
		`by + sum`:                                                     `by{M} + sum{M}`,
		`inf > NaN`:                                                    `inf > NaN`,
		`a:b:c @ 1700000000`:                                           `a:b:c{M} @ 1700000000`,
		`a @ start()`:                                                  `a{M} @ start()`,
		"up # {namespace=\"crm\"}\n{a=\"b\"}":                          "up # {namespace=\"crm\"}\n{M,a=\"b\"}",
		"sum # by (\n(up)":                                             "sum # by (\n(up{M})",
		`count_values("namespace", a)`:                                 `count_values("namespace", a{M})`,
		`quantile(0.9, a) # end`:                                       `quantile(0.9, a{M}) # end`,
		"absent({a=`\\`, b=\"\\\"}\"})":                                "absent({M,a=`\\`, b=\"\\\"}\"})",
		`{a="b" or namespace="crm"}`:                                   `A selector with alternatives cannot be asked here: some namespaces are closed. Write one selector for each.`,
		`{or="b"}`:                                                     `{M,or="b"}`,
		`up{a="b`:                                                      `A selector is not closed.`,
		`up[5m`:                                                        `A range is not closed.`,
		`sum by (a`:                                                    `A list of labels is not closed.`,
		"sum by (\"a)\") ({b=\"c\"})":                                  "sum by (\"a)\") ({M,b=\"c\"})",
		"x[5m # ]\"\n] + sum({b=\"c\"})":                               "x{M}[5m # ]\"\n] + sum({M,b=\"c\"})",
		"{a=\"b\" # }\n, c=\"d\"}":                                     "{M,a=\"b\" # }\n, c=\"d\"}",
		`WITH (x = up) x`:                                              `WITH (x{M} = up{M}) x`,
		"1 +\n-up":                                                     "1 +\n-up{M}",
		`histogram_quantile(0.9, sum by(le)(x))`:                       `histogram_quantile(0.9, sum by(le)(x{M}))`,
	} {
		if got := closedQuery(t, query, true); got != want {
			t.Errorf("%s\n got %s\nwant %s", query, got, want)
		}
	}
}

func TestCloseLogs(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		`{namespace="crm"} | label_format namespace="x"`: `{M,namespace="crm"} | label_format namespace="x"`,
		`{app="a"} |= "{x}" | json | status > 3`:         `{M,app="a"} |= "{x}" | json | status > 3`,
		"{app=\"a\"} | line_format `{{.msg}}`":           "{M,app=\"a\"} | line_format `{{.msg}}`",
		`sum(rate({app="a"}[5m])) / sum(rate({ }[1m]))`:  `sum(rate({M,app="a"}[5m])) / sum(rate({M }[1m]))`,
		"# {a\n{app=\"a\"}":                              "# {a\n{M,app=\"a\"}",
		`{app="a"`:                                       `A selector is not closed.`,
	} {
		if got := closedQuery(t, query, false); got != want {
			t.Errorf("%s\n got %s\nwant %s", query, got, want)
		}
	}
}

// TestClosedOnTheWire: the store never sees a selector without the matchers.
func TestClosedOnTheWire(t *testing.T) {
	t.Parallel()
	base, asked := startStore(t, "/api/v1/query", 200, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
	if _, err := newTestPrometheus(t, base).Query(t.Context(), `label_replace(up, "namespace", "x", "", "")`, 0, hush); err != nil {
		t.Fatal(err)
	}
	if q := asked.Form.Get("query"); !strings.HasPrefix(q, `label_replace(up{namespace!~"hush",`) {
		t.Errorf("asked %s; want strings.HasPrefix(q, `label_replace(up{namespace!~\"hush\",`)", q)
	}
	base, asked = startStore(t, "/loki/api/v1/query_range", 200, streams)
	if _, err := newTestLoki(t, base).Query(t.Context(), `{namespace="hush"} | label_format namespace="x"`, 0, 0, hush); err != nil {
		t.Fatal(err)
	}
	if q := asked.Form.Get("query"); !strings.HasPrefix(q, `{namespace!~"hush",`) {
		t.Errorf("asked %s; want strings.HasPrefix(q, `{namespace!~\"hush\",`)", q)
	}
}

// FuzzClose: whatever is asked, each brace outside of strings and comments opens with
// the matchers, and nothing but matchers, their braces and commas is put in.
func FuzzClose(f *testing.F) {
	for _, q := range []string{`sum by (a) (up{b="}"}[5m:])`, "{a=`{`} |= \"x\" # {", `a > bool b offset 1h`, `{a="b" or c="d"}`, `"\`} {
		f.Add(q, true)
		f.Add(q, false)
	}
	f.Fuzz(func(t *testing.T, query string, metrics bool) {
		h := Hidden{"crm"}
		got, err := h.close(query, metrics)
		if err != nil {
			return
		}
		m := h.matchers()
		for i := 0; i < len(got); {
			n := tokenLength(got[i:])
			if got[i] == '{' && !strings.HasPrefix(got[i+1:], m) {
				t.Fatalf("%q became %q; want (got[i] != '{' || strings.HasPrefix(got[i+1:], m))", query, got)
			}
			i += n
		}
		bare := strings.NewReplacer("{", "", "}", "")
		strip := func(s string) string {
			return bare.Replace(strings.ReplaceAll(strings.ReplaceAll(s, m+",", ""), m, ""))
		}
		if strip(got) != strip(query) {
			t.Fatalf("%q became %q; want strip(got) == strip(query)", query, got)
		}
	})
}
