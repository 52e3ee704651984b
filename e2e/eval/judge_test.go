//go:build e2e

package eval

import (
	"strings"
	"testing"
	"time"
)

func TestScenariosAreWellFormed(t *testing.T) {
	t.Parallel()
	list, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	heldOut := 0
	for _, s := range list {
		if s.HeldOut {
			heldOut++
		}
	}
	if share := float64(heldOut) / float64(len(list)); share < 0.25 || share > 0.37 {
		t.Errorf("%d of %d scenarios are held out, want 25 to 37 %%", heldOut, len(list))
	}
}

func TestFaultyScenarioIsRefused(t *testing.T) {
	t.Parallel()
	list, err := parse([]byte("id: a\nnamespace: a\ngroup: none\nask: {vague: x, symptom: x, typo: x}\nexpect: {object: ['(']}\n"))
	if err != nil {
		t.Fatal(err)
	}
	err = check(append(list, list...))
	for _, want := range []string{`group "none"`, "no question in the wording wrong_name", "no cause is expected", "missing closing )", "id a is that of a, too"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("check says %v, want %q in it", err, want)
		}
	}
	if _, err := parse([]byte("id: a\nnamespcae: a\n")); err == nil {
		t.Error("an unknown field is accepted, want an error")
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	broken := Expect{Object: []string{"cart"}, Cause: []string{"secret", "cart-db"}, Not: []string{"probe"}}
	healthy := Expect{Healthy: true}
	for name, c := range map[string]struct {
		expect Expect
		answer string
		want   Verdict
	}{
		"object and all of the cause":         {broken, "Deployment `cart`: the Secret `cart-db` does not exist. (Confidence: high.)", Found},
		"some of the cause":                   {broken, "Deployment `cart` lacks a Secret.", Partly},
		"the cause without the object":        {Expect{Object: []string{"cart"}, Cause: []string{"secret"}}, "A Secret does not exist.", Partly},
		"neither":                             {broken, "That is not something I can answer.", Missed},
		"another cause, certain":              {broken, "Deployment `cart`: its image is absent. (Confidence: high.)", Wrong},
		"another cause, not certain":          {broken, "Deployment `cart`: its image may be absent. (Confidence: low.)", Missed},
		"what no right answer says":           {broken, "`cart`: Secret `cart-db`, or its probe.", Wrong},
		"nothing wrong":                       {broken, "Nothing was found wrong in namespace `shop`.", AllClear},
		"all of them healthy":                 {broken, "How it is: 2 of 2 workloads are healthy.", AllClear},
		"some of them healthy":                {broken, "How it is: 1 of 2 workloads are healthy.", Missed},
		"not all is healthy":                  {broken, "No known cause, but not everything is healthy with `cart`.", Missed},
		"a healthy cluster, said so":          {healthy, "Nothing was found wrong in namespace `shop`.", Found},
		"a healthy cluster, a certain fault":  {healthy, "Deployment `cart`: out of memory. (Confidence: high.)", Wrong},
		"a healthy cluster, an alarm of logs": {healthy, "No object shows a fault in `cart`, but its logs do not look healthy:", Wrong},
		"a healthy cluster, not said so":      {healthy, "I did not understand `odd`.", Missed},
		"nothing wrong, after other words":    {broken, "I assumed `cart`.\n\nIt has 1 of 1 pods ready.\n\nNothing was found wrong with it.", AllClear},
		"nothing else wrong":                  {broken, "`cart` waits.\n\nNothing else is wrong.", Missed},
		"no fault in objects, logs unread":    {broken, "No object shows a fault in `cart`, but its logs were not read.", Missed},
		"a healthy cluster, logs unread":      {healthy, "No object shows a fault in `cart`, but its logs were not read.", Found},
	} {
		if got := judge(c.expect, c.answer); got != c.want {
			t.Errorf("%s: %q is judged %s, want %s", name, c.answer, got, c.want)
		}
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	var all []Result
	for i, v := range []Verdict{Found, Found, Partly, Missed, Wrong, AllClear, Failed} {
		all = append(all, Result{Scenario: "s", Class: "c", Group: "log", Wording: "vague", Verdict: v, HeldOut: i == 0, Took: time.Duration(i+1) * time.Second, Calls: 7})
	}
	r := newReport(all)
	want := Figures{Name: "all", Questions: 7, Found: 2, Partly: 1, Missed: 1, Wrong: 1, AllClear: 1, Failed: 1, Median: 4, P95: 7, Calls: 7}
	if got := r.Overall[2]; got != want {
		t.Errorf("figures %+v, want %+v", got, want)
	}
	if got := [2]int{r.Overall[0].Questions, r.Overall[1].Questions}; got != [2]int{6, 1} {
		t.Errorf("%v questions are open and held out, want 6 and 1", got)
	}
}

func TestLogLinesCarryTheirTime(t *testing.T) {
	t.Parallel()
	end := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	lines := writeLines("$t up $n\n$d down $g", 2, end)
	if len(lines) != 4 {
		t.Fatalf("%d lines, want 4", len(lines))
	}
	if got, want := lines[3].Text, "2026-11-23 12:00:00 down 211"; got != want || !lines[3].At.Equal(end) {
		t.Errorf("the last line is %q at %s, want %q at %s", got, lines[3].At, want, end)
	}
}
