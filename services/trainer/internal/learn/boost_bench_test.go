package learn

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Of the table that both libraries fit, in as many rounds.
const (
	benchRows, benchHeldOut, benchColumns, benchTrees = 1_000_000, 100_000, 20, 100
	benchRounds                                       = 3
)

// BenchmarkBoostBesideScikitLearn fits a million rows of 20 columns by turns with scikit-learn's
// HistGradientBoosting, with the same settings and on the same processors. BENCH_PYTHON names a Python that has it.
func BenchmarkBoostBesideScikitLearn(b *testing.B) {
	x, y := friedmanTable(1, benchRows)
	xt, yt := friedmanTable(2, benchHeldOut)
	dir := b.TempDir()
	for name, data := range map[string]any{"x.f32": x.Data, "y.f64": y, "xt.f32": xt.Data, "yt.f64": yt} {
		writeRaw(b, filepath.Join(dir, name), data)
	}
	theirs := startScikitLearn(b, dir)
	spec := Spec{Kind: "gbt", Hyper: map[string]any{"n_estimators": benchTrees}, Seed: 1}
	for range b.N {
		var wall, cpu, errors, seconds []float64
		for range benchRounds {
			ours := measureFit(b, spec, x, y, xt, yt)
			other := theirs(b)
			wall, cpu = append(wall, ours.wall/other.wall), append(cpu, ours.cpu/other.cpu)
			errors, seconds = append(errors, ours.rmse/other.rmse), append(seconds, ours.wall)
			b.Logf("ours %.2f s (%.2f s of processor), RMSE %.5f; scikit-learn %.2f s (%.2f s), RMSE %.5f", ours.wall, ours.cpu, ours.rmse, other.wall, other.cpu, other.rmse)
		}
		b.ReportMetric(median(seconds), "s/fit")
		b.ReportMetric(median(wall), "wall-ratio")
		b.ReportMetric(median(cpu), "cpu-ratio")
		b.ReportMetric(median(errors), "rmse-ratio")
	}
}

// fitFigures are the seconds of one fit, by the clock and of processors, and its error on rows held out.
type fitFigures struct{ wall, cpu, rmse float64 }

func measureFit(b *testing.B, spec Spec, x Matrix, y []float64, xt Matrix, yt []float64) fitFigures {
	b.Helper()
	cpu, start := processorSeconds(b), time.Now()
	m := fitModel(b, spec, x, y)
	out := fitFigures{wall: time.Since(start).Seconds(), cpu: processorSeconds(b) - cpu}
	sum := 0.0
	for i, want := range yt {
		d := m.Predict(xt.Row(i)) - want
		sum += d * d
	}
	out.rmse = math.Sqrt(sum / float64(len(yt)))
	return out
}

// startScikitLearn returns a function that fits once in a process that holds the data already.
func startScikitLearn(b *testing.B, dir string) func(*testing.B) fitFigures {
	b.Helper()
	python := cmp.Or(os.Getenv("BENCH_PYTHON"), "python3")
	cmd := exec.Command(python, "testdata/hist_gradient_boosting.py", dir, strconv.Itoa(benchColumns), strconv.Itoa(benchTrees))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatalf("%s with scikit-learn: %v", python, err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	lines := bufio.NewReader(out)
	return func(b *testing.B) fitFigures {
		b.Helper()
		if _, err := io.WriteString(in, "\n"); err != nil {
			b.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			b.Fatalf("scikit-learn gave no answer: %v", err)
		}
		var f fitFigures
		if _, err := fmt.Sscan(line, &f.wall, &f.cpu, &f.rmse); err != nil {
			b.Fatalf("scikit-learn answered %q: %v", line, err)
		}
		return f
	}
}

// friedmanTable makes rows of uniform columns; the number depends on the first five (Friedman 1991) and on noise.
func friedmanTable(seed uint64, rows int) (Matrix, []float64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	x := Matrix{Rows: rows, Cols: benchColumns, Data: make([]float32, rows*benchColumns)}
	y := make([]float64, rows)
	for i := range y {
		r := x.Row(i)
		for j := range r {
			r[j] = rng.Float32()
		}
		v := [5]float64{float64(r[0]), float64(r[1]), float64(r[2]), float64(r[3]), float64(r[4])}
		y[i] = 10*math.Sin(math.Pi*v[0]*v[1]) + 20*(v[2]-0.5)*(v[2]-0.5) + 10*v[3] + 5*v[4] + rng.NormFloat64()
	}
	return x, y
}

func writeRaw(b *testing.B, name string, data any) {
	b.Helper()
	f, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	if err := binary.Write(w, binary.LittleEndian, data); err != nil {
		b.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
}

// processorSeconds returns the processor time that this process has used so far, on all processors.
func processorSeconds(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
