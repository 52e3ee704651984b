package diagnose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"
)

// Result is the answer about one recording, with its verdict.
type Result struct {
	Recording string `json:"recording"`
	Truth
	Verdict Verdict `json:"verdict"`
	Answer  string  `json:"answer"`
	Error   string  `json:"error,omitempty"`
}

// Figures sum the results for one cause.
type Figures struct {
	Cause    string `json:"cause"`
	Asked    int    `json:"asked"`
	Right    int    `json:"right"`
	Honest   int    `json:"honest"`
	Partly   int    `json:"partly"`
	Wrong    int    `json:"wrong"`
	AllClear int    `json:"false_all_clear"`
	Failed   int    `json:"failed"`
}

func (f *Figures) add(r Result) {
	f.Asked++
	switch {
	case r.Error != "":
		f.Failed++
	case r.Verdict == Right:
		f.Right++
	case r.Verdict == Honest:
		f.Honest++
	case r.Verdict == Partly:
		f.Partly++
	case r.Verdict == AllClear:
		f.AllClear++
	default:
		f.Wrong++
	}
}

// Report is the outcome over a folder of recordings.
type Report struct {
	Total   Figures   `json:"total"`
	Causes  []Figures `json:"causes"`
	Results []Result  `json:"results"`
}

// truthFiles are the names of the file in which a recording states its cause.
var truthFiles = []string{"truth.json", "truth.yaml"}

// Evaluate asks about every recording of a folder.
func Evaluate(ctx context.Context, folder string) (Report, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return Report{}, err
	}
	var report Report
	causes := map[string]*Figures{}
	for _, entry := range entries {
		at := filepath.Join(folder, entry.Name())
		truth, ok, err := readTruth(at)
		if err != nil {
			return report, err
		}
		if !ok {
			continue
		}
		r := Result{Recording: entry.Name(), Truth: truth}
		answer, err := Ask(ctx, Options{From: at, Namespace: truth.Namespace, Question: truth.Question})
		if ctx.Err() != nil {
			return report, ctx.Err()
		}
		if err != nil {
			r.Error = err.Error()
		} else if r.Verdict, err = judge(truth, answer.Text); err != nil {
			return report, err
		}
		r.Answer = answer.Text
		report.Results = append(report.Results, r)
		if causes[truth.Cause] == nil {
			causes[truth.Cause] = &Figures{Cause: truth.Cause}
		}
		causes[truth.Cause].add(r)
		report.Total.add(r)
	}
	if len(report.Results) == 0 {
		return report, fmt.Errorf("no subfolder of %s has a truth.json or truth.yaml", folder)
	}
	report.Total.Cause = "all"
	for _, cause := range slices.Sorted(maps.Keys(causes)) {
		report.Causes = append(report.Causes, *causes[cause])
	}
	return report, nil
}

func readTruth(folder string) (t Truth, ok bool, err error) {
	for _, name := range truthFiles {
		data, err := os.ReadFile(filepath.Join(folder, name))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
			continue
		}
		if info, statErr := os.Stat(folder); statErr == nil && !info.IsDir() {
			return t, false, nil
		}
		if err != nil {
			return t, false, err
		}
		if err := yaml.Unmarshal(data, &t); err != nil { // JSON is YAML
			return t, false, fmt.Errorf("%s: %w", filepath.Join(folder, name), err)
		}
		if t.Object == "" || t.Cause == "" {
			return t, false, fmt.Errorf("%s names no object or no cause", filepath.Join(folder, name))
		}
		return t, true, nil
	}
	return t, false, nil
}

// Print writes the table for a reader.
func (r Report) Print(to io.Writer) error {
	tw := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "cause\tasked\tright\t%\thonest\tpartly\twrong\tfalse all-clear\tfailed\t")
	for _, f := range append(slices.Clone(r.Causes), r.Total) {
		fmt.Fprintf(tw, "%s\t%d\t%d\t%.0f\t%d\t%d\t%d\t%d\t%d\t\n", f.Cause, f.Asked, f.Right, 100*float64(f.Right)/float64(max(f.Asked, 1)), f.Honest, f.Partly, f.Wrong, f.AllClear, f.Failed)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, result := range r.Results {
		if result.Verdict == Right {
			continue
		}
		if _, err := fmt.Fprintf(to, "%s: %s: %s, %s\n", result.Recording, cmp.Or(result.Error, string(result.Verdict)), result.Object, result.Cause); err != nil {
			return err
		}
	}
	return nil
}

func runEvaluate(c *cli.Context) error {
	if c.String("recorded") == "" || c.NArg() > 0 {
		return fmt.Errorf("%w: --recorded must name a folder of recordings", errUsage)
	}
	if err := checkOutput(c); err != nil {
		return err
	}
	r, err := Evaluate(c.Context, c.String("recorded"))
	if err != nil {
		return err
	}
	if c.String("output") == "json" {
		return printJSON(c.App.Writer, r)
	}
	return r.Print(c.App.Writer)
}
