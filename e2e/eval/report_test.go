//go:build e2e

package eval

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"
)

// Result is one question, its answer and the answer's score.
type Result struct {
	Scenario string        `json:"scenario"`
	Class    string        `json:"class"`
	Group    string        `json:"group"`
	Wording  string        `json:"wording"`
	HeldOut  bool          `json:"held_out"`
	Healthy  bool          `json:"healthy"`
	Question string        `json:"question"`
	Answer   string        `json:"answer"`
	Verdict  Verdict       `json:"verdict"`
	Lacks    []string      `json:"lacks,omitempty"` // expected terms that the answer lacks
	Took     time.Duration `json:"-"`
	Seconds  float64       `json:"seconds"`
	Calls    int64         `json:"api_calls"`
	Error    string        `json:"error,omitempty"`
}

// Figures sum up results.
type Figures struct {
	Name      string  `json:"name"`
	Questions int     `json:"questions"`
	Found     int     `json:"found"`
	Partly    int     `json:"partly"`
	Missed    int     `json:"missed"`
	Wrong     int     `json:"wrong"`
	AllClear  int     `json:"false_all_clear"`
	Failed    int     `json:"failed"`
	Median    float64 `json:"median_seconds"`
	P95       float64 `json:"p95_seconds"`
	Calls     float64 `json:"api_calls_per_question"`
}

// sum sums up the results for which belongs is true.
func sum(name string, all []Result, belongs func(Result) bool) Figures {
	f := Figures{Name: name}
	var took []time.Duration
	var calls int64
	for _, r := range all {
		if !belongs(r) {
			continue
		}
		f.Questions++
		took = append(took, r.Took)
		calls += r.Calls
		switch r.Verdict {
		case Found:
			f.Found++
		case Partly:
			f.Partly++
		case Missed:
			f.Missed++
		case Wrong:
			f.Wrong++
		case AllClear:
			f.AllClear++
		case Failed:
			f.Failed++
		}
	}
	if f.Questions > 0 {
		slices.Sort(took)
		f.Median, f.P95 = took[len(took)/2].Seconds(), took[(len(took)*95-1)/100].Seconds()
		f.Calls = float64(calls) / float64(f.Questions)
	}
	return f
}

// Report is the outcome of a run.
type Report struct {
	Engine    string    `json:"engine"`
	Scenarios int       `json:"scenarios"`
	Began     time.Time `json:"began"`
	Seconds   float64   `json:"seconds"`
	Overall   []Figures `json:"overall"`
	Groups    []Figures `json:"groups"`
	Wordings  []Figures `json:"wordings"`
	Classes   []Figures `json:"classes"`
	NotAsked  []string  `json:"not_asked,omitempty"` // scenarios that could not be set up, or that ran out of time
	Results   []Result  `json:"results"`
}

// newReport sums up results.
func newReport(all []Result) Report {
	r := Report{Results: all}
	scenarios := map[string]bool{}
	for _, x := range all {
		scenarios[x.Scenario] = true
	}
	r.Scenarios = len(scenarios)
	held := func(out bool) func(Result) bool { return func(x Result) bool { return x.HeldOut == out } }
	r.Overall = []Figures{sum("open", all, held(false)), sum("held out", all, held(true)), sum("all", all, func(Result) bool { return true })}
	by := func(key func(Result) string) (list []Figures) {
		names := map[string]bool{}
		for _, x := range all {
			names[key(x)] = true
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			list = append(list, sum(name, all, func(x Result) bool { return key(x) == name }))
		}
		return list
	}
	r.Groups = by(func(x Result) string { return x.Group })
	r.Wordings = by(func(x Result) string { return x.Wording })
	r.Classes = by(func(x Result) string { return x.Class })
	return r
}

// Print writes the tables for a reader.
func (r Report) Print(to io.Writer) {
	tw := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(to, "%d scenarios, %d questions, engine %s, %.0f s\n\n", r.Scenarios, len(r.Results), r.Engine, r.Seconds)
	for _, part := range []struct {
		name string
		list []Figures
	}{{"", r.Overall}, {"by group", r.Groups}, {"by wording", r.Wordings}, {"by class", r.Classes}} {
		fmt.Fprintf(tw, "%s\tquestions\tfound\t%%\tpartly\tmissed\twrong\tfalse all-clear\tfailed\tmedian s\tp95 s\tAPI calls\t\n", part.name)
		for _, f := range part.list {
			percent := 0.0
			if f.Questions > 0 {
				percent = 100 * float64(f.Found) / float64(f.Questions)
			}
			fmt.Fprintf(tw, "%s\t%d\t%d\t%.0f\t%d\t%d\t%d\t%d\t%d\t%.2f\t%.2f\t%.0f\t\n", f.Name, f.Questions, f.Found, percent, f.Partly, f.Missed, f.Wrong, f.AllClear, f.Failed, f.Median, f.P95, f.Calls)
		}
		fmt.Fprintln(tw, "\t\t\t\t\t\t\t\t\t\t\t\t")
	}
	_ = tw.Flush() // the reader may be gone
	for _, line := range r.NotAsked {
		fmt.Fprintln(to, "not asked:", line)
	}
}
