package fit

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/trainer/internal/dataset"
)

const samples = "../../../../deploy/modelrepo"

type bench struct {
	m  *modelrepo.Model
	md *modelrepo.ModelDataset
	ds *modelrepo.Dataset
	s  *dataset.Sample
}

func setupBench(t testing.TB, name string, dummy bool) *bench {
	t.Helper()
	repo, err := modelrepo.Open(samples, "")
	if err != nil || len(repo.Faults) > 0 {
		t.Fatal(err, repo.Faults, "want len(repo.Faults) <= 0")
	}
	b := &bench{m: repo.Models[name]}
	b.md, _ = b.m.Dataset("")
	b.ds = repo.Datasets[b.md.Name]
	rows, err := dataset.Load(context.Background(), dataset.Source{Repo: samples, Set: b.ds, Backend: "local", Dummy: dummy})
	if err != nil {
		t.Fatal(err)
	}
	if b.s, err = rows.Sample(b.m.Type, b.md); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) run(ctx context.Context) (*Result, error) {
	return Run(ctx, b.m, b.s, b.ds, b.md, Commands{}, func(float64) {})
}

func (b *bench) must(t testing.TB) *Result {
	t.Helper()
	r, err := b.run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The samples reach every rung on rows they never saw, with the margins over both baselines.
func TestSamplesReachProduction(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"RUNTIMEREGRESSOR", "RUNTIMECLASS", "JPCP", "MACK", "MCBOUND"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupBench(t, name, false)
			// The choice among candidates is tested below; here one candidate saves half of the time.
			for k, v := range b.m.Estimator.Hyperparameters {
				if list, ok := v.([]any); ok {
					b.m.Estimator.Hyperparameters[k] = list[len(list)-1]
				}
			}
			r := b.must(t)
			all := maps.Clone(r.Metrics)
			maps.Copy(all, r.Baselines)
			for _, v := range b.m.Judge(all) {
				if !v.Pass {
					t.Errorf("%s: %s; want v.Pass", v.Alias, v.Reason)
				}
			}
			for _, prefix := range []string{"baseline_", "baseline_running_"} {
				switch name {
				case "RUNTIMEREGRESSOR":
					if all["male"] > 0.95*all[prefix+"male"] || all["mae"] >= all[prefix+"mae"] {
						t.Errorf(`male %.4f, mae %.1f; %s %.4f, %.1f; want all["male"] <= 0.95 * all[prefix+"male"] && all["mae"] < all[prefix+"mae"]`, all["male"], all["mae"], prefix, all[prefix+"male"], all[prefix+"mae"])
					}
				case "RUNTIMECLASS":
					if all["accuracy"] < all[prefix+"accuracy"]+0.03 || all["f1_macro"] < all[prefix+"f1_macro"]+0.08 {
						t.Errorf(`accuracy %.4f, f1 %.4f; %s %.4f, %.4f; want all["accuracy"] >= all[prefix+"accuracy"] + 0.03 && all["f1_macro"] >= all[prefix+"f1_macro"] + 0.08`, all["accuracy"], all["f1_macro"], prefix, all[prefix+"accuracy"], all[prefix+"f1_macro"])
					}
				}
			}
			if strings.HasPrefix(name, "RUNTIME") {
				submit := b.s.Rows.Num["submit"]
				if last, first := submit[r.Parts.Validation[len(r.Parts.Validation)-1]], submit[r.Parts.Test[0]]; last >= first {
					t.Errorf("test begins at %v, before the last fitted row at %v; want last < first", first, last)
				}
			}
		})
	}
}

func TestSameSeedSameModel(t *testing.T) {
	t.Parallel()
	b := setupBench(t, "MACK", true)
	one, two := b.must(t), b.must(t)
	if !reflect.DeepEqual(one.Metrics, two.Metrics) || !reflect.DeepEqual(one.Model, two.Model) {
		t.Error("two fits differ")
	}
	// Column sampling makes the seed matter.
	b.m.Estimator.Seed++
	if reflect.DeepEqual(one.Model, b.must(t).Model) {
		t.Error("the seed changes nothing")
	}
}

func TestChoosesOnValidation(t *testing.T) {
	t.Parallel()
	b := setupBench(t, "JPCP", true)
	// A forest of stumps cannot separate 24 families; depth wins.
	b.m.Estimator.Hyperparameters = map[string]any{"n_estimators": 20, "max_depth": []any{1, 8}, "max_features": "sqrt"}
	r := b.must(t)
	if len(r.Candidates) != 2 || r.Chosen != 1 || r.Candidates[1].Hyperparameters["max_depth"] != 8 {
		t.Errorf(`chose %d of %v; want len(r.Candidates) == 2 && r.Chosen == 1 && r.Candidates[1].Hyperparameters["max_depth"] == 8`, r.Chosen, r.Candidates)
	}
	if r.Metrics["val_rmse"] != r.Candidates[1].Validation["rmse"] || r.Metrics["rmse"] == 0 {
		t.Errorf(`metrics %v; want r.Metrics["val_rmse"] == r.Candidates[1].Validation["rmse"] && r.Metrics["rmse"] != 0`, r.Metrics)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	b := setupBench(t, "JPCP", true)
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := b.run(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v; want errors.Is(err, context.Canceled)", err)
	}
	// The same rows again, in random order over the parts.
	twice := make([]int, 0, 2*b.s.Rows.N)
	for i := range b.s.Rows.N {
		twice = append(twice, i, i)
	}
	whole := b.s
	b.s = &dataset.Sample{Rows: whole.Rows.Select(twice), Table: whole.Table.Select(twice), Target: whole.Target.Select(twice)}
	if _, err := b.run(context.Background()); err == nil || !strings.Contains(err.Error(), "identical to rows the model learns from") {
		t.Errorf(`duplicates: %v; want an error && strings.Contains(err.Error(), "identical to rows the model learns from")`, err)
	}
	b.m.Split.AllowDuplicates = true
	if r := b.must(t); r.Duplicates < 0.5 {
		t.Errorf("share %v; want r.Duplicates >= 0.5", r.Duplicates)
	}
	b.m.Estimator.Hyperparameters = map[string]any{"trees": []any{3, 4}}
	if _, err := b.run(context.Background()); err == nil || strings.Count(err.Error(), "trees") != 1 {
		t.Errorf("misspelt hyperparameter: got %v, want one sentence on trees", err)
	}
}
