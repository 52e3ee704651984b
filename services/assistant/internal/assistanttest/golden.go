package assistanttest

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite golden files")

// Updating reports whether go test ran with -update, which rewrites the expected files.
func Updating() bool { return *update }

// CheckGolden compares got with testdata/file, byte by byte.
func CheckGolden(t testing.TB, file string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
	}
}

// DumpResponse formats a response as a client sees it: status, headers in order, body.
func DumpResponse(t testing.TB, resp *http.Response) []byte {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d\n", resp.StatusCode)
	if err := resp.Header.Write(&b); err != nil {
		t.Fatal(err)
	}
	return append(bytes.ReplaceAll(b.Bytes(), []byte("\r\n"), []byte("\n")), "\n"+string(body)+"\n"...)
}
