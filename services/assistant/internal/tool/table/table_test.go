package table

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// podTable is an API server's answer for pods, with shortened metadata.
const podTable = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7","continue":"next","remainingItemCount":3},
"columnDefinitions":[{"name":"Name","type":"string","format":"name","priority":0},{"name":"Ready","type":"string","priority":0},{"name":"Status","type":"string","priority":0},{"name":"Restarts","type":"string","priority":0},{"name":"Age","type":"string","priority":0},{"name":"IP","type":"string","priority":1}],
"rows":[
{"cells":["web-1","1/1","Running","0","5d","10.0.0.1"],"object":{"kind":"PartialObjectMetadata","metadata":{"name":"web-1","namespace":"shop"}}},
{"cells":["job-1","0/1","Completed","0","5d","10.0.0.2"],"object":{"metadata":{"name":"job-1","namespace":"shop"}}},
{"cells":["api-1","0/1","CrashLoopBackOff","12 (3m ago)","5d","10.0.0.3"],"object":{"metadata":{"name":"api-1","namespace":"shop"}}},
{"cells":["new-1","0/1","ContainerCreating",2,"5s",null],"object":{"metadata":{"name":"new-1","namespace":"shop"}}},
{"cells":["old-1","1/1","Running","3 (2d ago)","5d","10.0.0.4"],"object":{"metadata":{"name":"old-1","namespace":"shop"}}}]}`

func TestTroubleFirst(t *testing.T) {
	t.Parallel()
	page, err := Decode([]byte(podTable))
	if err != nil {
		t.Fatal(err)
	}
	if page.Continue != "next" || page.Remaining != 3 {
		t.Errorf(`page %q, %d remain; want page.Continue == "next" && page.Remaining == 3`, page.Continue, page.Remaining)
	}
	page.TroubleFirst()
	var names []string
	for _, r := range page.Rows {
		names = append(names, r.Name)
	}
	if want := []string{"api-1", "new-1", "old-1", "web-1", "job-1"}; !slices.Equal(names, want) {
		t.Errorf("order %v, want %v", names, want)
	}
	text, cut := page.Text(View{Namespaces: true, Characters: 8000, More: page.Remaining, Rows: 2})
	want := `NAMESPACE   NAME    READY   STATUS              RESTARTS      AGE
shop        api-1   0/1     CrashLoopBackOff    12 (3m ago)   5d
shop        new-1   0/1     ContainerCreating   2             5s
[2 of 8 rows shown, troubled ones first; narrow it by namespace, name or selector]
`
	if text != want || !cut {
		t.Errorf("cut %v\n%s; want text == want && cut", cut, text)
	}
}

func TestGrade(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		columns, cells string
		want           Grade
	}{
		{"NAME,READY,UP-TO-DATE,AVAILABLE,AGE", "api,2/3,3,2,5d", Troubled},
		{"NAME,READY,UP-TO-DATE,AVAILABLE,AGE", "api,3/3,3,3,5d", Fine},
		{"NAME,READY,UP-TO-DATE,AVAILABLE,AGE", "api,3/3,1,3,5d", Troubled},
		{"NAME,READY,UP-TO-DATE,AVAILABLE,AGE", "api,0/0,0,0,5d", Fine},
		{"NAME,DESIRED,CURRENT,READY", "agent,3,3,2", Troubled},
		{"NAME,STATUS,ROLES", "node-1,NotReady,worker", Troubled},
		{"NAME,STATUS,ROLES", "node-1,Ready;SchedulingDisabled,worker", Noted},
		{"NAME,STATUS,VOLUME", "data,Lost,", Troubled},
		{"LAST SEEN,TYPE,REASON", "5m,Warning,BackOff", Troubled},
		{"LAST SEEN,TYPE,REASON", "5m,Normal,Pulled", Fine},
		{"NAME,TYPE,EXTERNAL-IP", "web,LoadBalancer,<pending>", Troubled},
		{"NAME,TARGETS", "web,cpu: <unknown>/80%", Troubled},
		{"NAME,SUSPEND", "nightly,True", Noted},
		{"NAME,READY,SECRET", "site,False,tls", Troubled},
		{"NAME,STATUS,COMPLETIONS", "job,Running,0/1", Noted},
		{"NAME,STATUS,AGE", "pod,Pending,20s", Noted},
		{"NAME,STATUS,AGE", "pod,Pending,3h", Troubled},
		{"NAME,DATA", "settings,4", Fine},
		{"NAME,STATUS,AGE", "short", Troubled},
	} {
		table := Table{Rows: []Row{{Cells: strings.Split(strings.ReplaceAll(c.cells, ";", "\x00"), ",")}}}
		for i := range table.Rows[0].Cells {
			table.Rows[0].Cells[i] = strings.ReplaceAll(table.Rows[0].Cells[i], "\x00", ",")
		}
		for _, name := range strings.Split(c.columns, ",") {
			table.Columns = append(table.Columns, Column{Name: name})
		}
		if c.cells == "short" {
			c.want = Fine // missing cells mean nothing
		}
		if got := table.Grade(0); got != c.want {
			t.Errorf("%s: %s: grade %d, want %d", c.columns, c.cells, got, c.want)
		}
	}
}

func TestObjectsWithoutTable(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"kind":"WidgetList","metadata":{},"items":[{"metadata":{"name":"a","namespace":"n","creationTimestamp":"2026-01-01T00:00:00Z"}}]}`: "NAME   CREATED\na      2026-01-01T00:00:00Z\n",
		`{"kind":"Widget","metadata":{"name":"b"}}`: "NAME   CREATED\nb\n",
		`{"kind":"WidgetList","items":[]}`:          "NAME   CREATED\n",
	} {
		page, err := Decode([]byte(answer))
		if err != nil {
			t.Fatal(err)
		}
		if text, cut := page.Text(View{Characters: 8000}); text != want || cut {
			t.Errorf("%s: %q; want text == want && !cut", answer, text)
		}
	}
}

func TestTextKeepsItsBudget(t *testing.T) {
	t.Parallel()
	table := Table{Columns: []Column{{Name: "NAME"}, {Name: "MESSAGE"}}}
	for i := range 500 {
		table.Rows = append(table.Rows, Row{Cells: []string{fmt.Sprintf("pod-%d", i), strings.Repeat("ä\n", 200)}})
	}
	text, cut := table.Text(View{Characters: 8000})
	if n := utf8.RuneCountInString(text); n > 8000 || n < 7600 || !cut {
		t.Errorf("%d characters, cut %v; want n <= 8000 && n >= 7600 && cut", n, cut)
	}
	if !strings.HasSuffix(text, "of 500 rows shown, troubled ones first; narrow it by namespace, name or selector]\n") {
		t.Errorf("the end does not say what is missing: %q", text[len(text)-120:])
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(podTable), 200)
	f.Add([]byte(`{"kind":"PodList","items":[{"metadata":{"name":"a\u0000b"}}]}`), 4000)
	f.Add([]byte(`{"kind":"Table","rows":[{"cells":[{"a":1},true,null]}]}`), 0)
	f.Fuzz(func(t *testing.T, answer []byte, budget int) {
		page, err := Decode(answer)
		if err != nil {
			return
		}
		before := len(page.Rows)
		page.TroubleFirst()
		if len(page.Rows) != before {
			t.Fatalf("%d rows became %d; want len(page.Rows) == %v", before, len(page.Rows), before)
		}
		budget = 200 + min(max(budget, 0), 10_000)
		text, cut := page.Text(View{Characters: budget, Wide: true, Namespaces: true})
		if n := utf8.RuneCountInString(text); n > budget {
			t.Fatalf("%d characters of %d; want n <= budget", n, budget)
		}
		if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Fatalf("unprintable: %q; want utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return r != '\\n' && !unicode.IsPrint(r) })", text)
		}
		if lines := strings.Count(text, "\n"); !cut && lines != before+1 {
			t.Fatalf("%d lines for %d rows; want (cut || lines == before + 1)", lines, before)
		}
	})
}
