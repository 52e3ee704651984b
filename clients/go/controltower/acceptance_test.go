package controltower_test

import (
	"encoding/hex"
	"errors"
	"math"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/mlp-platform/platform/clients/go/controltower"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/vectors/vectortest"
)

// The rows of the acceptance table that are about clients, on both of them.

// runPythonTests runs tests of the Python client, all of them if none is named.
func runPythonTests(t *testing.T, names ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "python3", append([]string{"-W", "error", "-m", "unittest"}, names...)...)
	cmd.Dir = filepath.Join(suiteFolder(t), "..", "python")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("python3 -m unittest %q: %v\n%s", names, err, out)
	}
}

func TestPythonClient(t *testing.T) {
	t.Parallel()
	runPythonTests(t)
}

// replayNamed plays some of the recorded exchanges, each of which must exist.
func replayNamed(t *testing.T, group string, names ...string) {
	t.Helper()
	cases := map[string]recorded{}
	for _, c := range loadSuite(t)[group] {
		cases[c.Name] = c
	}
	for _, name := range names {
		c, ok := cases[name]
		if !ok {
			t.Fatalf("%s has no exchange %q; want ok", group, name)
		}
		t.Run(name, func(t *testing.T) { t.Parallel(); replayExchange(t, c) })
	}
}

// A client without a timeout, of https, of another host, with a limit of 0: nothing is sent.
func TestRow73UnsafeSetupNeverDials(t *testing.T) {
	t.Parallel()
	p := playExchanges(t, nil)
	if _, err := controltower.New("http://127.0.0.1:"+strconv.Itoa(p.port), token, 0); !isConfig(err) {
		t.Errorf("without a timeout: %v; want isConfig(err)", err)
	}
	p.verify(t, 0)
	replayNamed(t, "refused", `base URL "https://127.0.0.1:{port}"`, `base URL "http://10.0.0.1:{port}"`, "limit 0", "limit 201", "timeout below 0")
	runPythonTests(t, "tests.test_acceptance.Row73")
}

func isConfig(err error) bool {
	_, ok := errors.AsType[*controltower.ConfigError](err)
	return ok
}

// A byte changed; no request id; 302; another run.
func TestRow74AnswersThatCannotBeTrusted(t *testing.T) {
	t.Parallel()
	replayNamed(t, "broken", "one byte changed", "no request id", "302 to another place", "another run")
	runPythonTests(t, "tests.test_acceptance.Row74")
}

// An unknown field, a sequence repeated, `: hi`, over the bound, cut.
func TestRow75StreamsThatCannotBeTrusted(t *testing.T) {
	t.Parallel()
	replayNamed(t, "stream-broken", "unknown field", "sequence repeated", "another comment", "a frame over the bound", "cut in a frame", "cut behind a frame")
	runPythonTests(t, "tests.test_acceptance.Row75")
}

// Every vector gives equal bytes and digests in Go and in Python.
func TestRow77VectorsInBothLanguages(t *testing.T) {
	t.Parallel()
	var documents []struct {
		vectortest.Input
		C1  *string `json:"c1"`
		SHA string  `json:"sha256"`
	}
	vectortest.Load(t, "canon.json", &documents)
	for _, v := range documents {
		value, err := canon.Parse(v.Bytes(t))
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		want := string(v.Bytes(t))
		if v.C1 != nil {
			want = *v.C1
		}
		if c1, err := canon.C1(value); err != nil || string(c1) != want || canon.DigestBytes(c1) != "sha256:"+v.SHA {
			t.Errorf(`%s: %.100s, %v; want string(c1) == want && canon.DigestBytes(c1) == "sha256:" + v.SHA`, v.Name, c1, err)
		}
	}
	var refused []struct {
		vectortest.Input
		Reason canon.Reason `json:"reason"`
	}
	vectortest.Load(t, "refused.json", &refused)
	for _, v := range refused {
		_, err := canon.Parse(v.Bytes(t))
		if e, ok := errors.AsType[*canon.SyntaxError](err); !ok || e.Reason != v.Reason {
			t.Errorf("%s: %v, want %s", v.Name, err, v.Reason)
		}
	}
	var floats []struct{ Bits, C1 string }
	vectortest.Load(t, "floats.json", &floats)
	for _, v := range floats {
		bits, err := hex.DecodeString(v.Bits)
		if err != nil {
			t.Fatal(err)
		}
		var n uint64
		for _, b := range bits {
			n = n<<8 | uint64(b)
		}
		if c1, err := canon.C1(canon.Float(math.Float64frombits(n))); err != nil || string(c1) != v.C1 {
			t.Errorf("%s: %s, %v, want %s", v.Bits, c1, err, v.C1)
		}
	}
	if len(documents) == 0 || len(refused) == 0 || len(floats) == 0 {
		t.Error("a file of vectors is empty")
	}
	// The types of this client lose nothing: the fixtures keep their digests through them.
	var fixtures struct{ Report struct{ Digest string } }
	vectortest.Load(t, "fixtures.json", &fixtures)
	if got := fixture.Report().Digest(); got != fixtures.Report.Digest {
		t.Errorf("the fixture report has digest %s; want %v", got, fixtures.Report.Digest)
	}
	runPythonTests(t, "tests.test_vectors.Row77")
}

func isTransport(err error) bool {
	_, ok := errors.AsType[*controltower.TransportError](err)
	return ok
}
