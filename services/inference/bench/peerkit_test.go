package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/embedded/child"
)

// asker waits for no answer longer than a load does.
var asker = &http.Client{Timeout: requestTime}

// checkSameAnswers compares the predictions of some rows.
func checkSameAnswers(b *testing.B, url string, bodies [][]byte, peerURL string, theirs [][]byte) {
	b.Helper()
	for i := range 8 {
		want, got := prediction(b, url, bodies[i]), prediction(b, peerURL, theirs[i])
		if math.Abs(got-want) > 1e-3*math.Abs(want) {
			b.Fatalf("row %d: the peer answers %v, want %v as the service does", i, got, want)
		}
	}
}

var number = regexp.MustCompile(`[:\[]\s*(-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?)`)

// prediction is the last number of an answer.
func prediction(b *testing.B, url string, body []byte) float64 {
	b.Helper()
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+bearer)
	resp, err := asker.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	all := number.FindAllSubmatch(answer, -1)
	if resp.StatusCode != http.StatusOK || len(all) == 0 {
		b.Fatalf("%s answered %s, %q; want a prediction", url, resp.Status, answer)
	}
	v, err := strconv.ParseFloat(string(all[len(all)-1][1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return v
}

// stat is the part of /proc/<pid>/stat that is read.
type stat struct {
	parent int
	began  string
}

func readStat(id int) (s stat, ok bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	if err != nil {
		return s, false // ended meanwhile
	}
	// Behind the name in parentheses: state, parent, …, the 20th is the time of the start.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) < 20 {
		return s, false
	}
	s.began = fields[19]
	s.parent, err = strconv.Atoi(fields[1])
	return s, err == nil
}

// familyOf is a process and its descendants, which may be in groups and sessions of their own.
func familyOf(root int) map[int]stat {
	names, _ := filepath.Glob("/proc/[0-9]*") // the pattern is a good one
	all := map[int]stat{}
	for _, name := range names {
		if id, err := strconv.Atoi(filepath.Base(name)); err == nil {
			if s, ok := readStat(id); ok {
				all[id] = s
			}
		}
	}
	family := map[int]stat{}
	for id, s := range all {
		for at := id; at != 0; at = all[at].parent {
			if at == root {
				family[id] = s
				break
			}
		}
	}
	return family
}

// memoryOf is the memory of a process and its descendants in MiB, pages that they share counted once (PSS, proc_pid_smaps_rollup(5)).
func memoryOf(b *testing.B, root int) (mib float64) {
	for id := range familyOf(root) {
		rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", id))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended since
		}
		m := pssExpr.FindSubmatch(rollup)
		if err != nil || m == nil {
			b.Fatalf("memory of process %d: %v, %q; want a line Pss", id, err, rollup)
		}
		kib, err := strconv.Atoi(string(m[1]))
		if err != nil {
			b.Fatal(err)
		}
		mib += float64(kib) / 1024
	}
	return mib
}

var pssExpr = regexp.MustCompile(`(?m)^Pss:\s+(\d+) kB$`)

// stopFamily ends a peer, and its children if it does not end them itself.
func stopFamily(proc *child.Process) {
	family := familyOf(proc.PID())
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_ = proc.Stop(ctx, syscall.SIGTERM)
	for id, was := range family {
		if is, ok := readStat(id); ok && is.began == was.began { // not another one of that number
			_ = syscall.Kill(id, syscall.SIGKILL)
		}
	}
}

// cache is where scripts install their downloads.
func cache(b *testing.B) string {
	dir, err := filepath.Abs("../../../.cache")
	if err != nil {
		b.Fatal(err)
	}
	return dir
}

func testdata(b *testing.B, name string) string {
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		b.Fatal(err)
	}
	return path
}

func copyFile(b *testing.B, from, to string) {
	raw, err := os.ReadFile(from)
	if err != nil {
		b.Fatal(err)
	}
	write(b, to, raw)
}

func writeJSON(b *testing.B, name string, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		b.Fatal(err)
	}
	write(b, name, raw)
}

func write(b *testing.B, name string, raw []byte) {
	if err := os.WriteFile(name, raw, 0o600); err != nil {
		b.Fatal(err)
	}
}

// tail returns the end of a peer's output.
func tail(name string) string {
	raw, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	return string(raw[max(0, len(raw)-2000):])
}

func freePort(b *testing.B) int {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}
