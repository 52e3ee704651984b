package trackerd_test

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/standalone/internal/trackerd"
)

const files = "/api/2.0/mlflow-artifacts/artifacts"

func TestArtifactsOverHTTP(t *testing.T) {
	t.Parallel()
	b := setupBench(t, trackerd.MaxArtifact(1000))
	b.want(t, 200, "PUT", files+"/1/r/artifacts/page.html", "<script>alert(1)</script>")
	a := b.do(t, "GET", files+"/1/r/artifacts/page.html", nil)
	if string(a.body) != "<script>alert(1)</script>" || a.header.Get("Content-Type") != "application/octet-stream" ||
		!strings.HasPrefix(a.header.Get("Content-Disposition"), "attachment") || a.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf(`%d %v %s; want string(a.body) == "<script>alert(1)</script>" && a.header.Get("Content-Type") == "application/octet-stream" && …`, a.status, a.header, a.body)
	}
	if a := b.do(t, "GET", files+"/1/r/artifacts/page.html", nil, "Range", "bytes=1-6"); a.status != 206 || string(a.body) != "script" {
		t.Errorf(`range: %d %s; want a.status == 206 && string(a.body) == "script"`, a.status, a.body)
	}
	if a := b.do(t, "HEAD", files+"/1/r/artifacts/page.html", nil); a.status != 200 || a.header.Get("Content-Length") != "25" {
		t.Errorf(`HEAD: %d %v; want a.status == 200 && a.header.Get("Content-Length") == "25"`, a.status, a.header)
	}
	for _, c := range []struct {
		method, path string
		body         any
		status       int
	}{
		{"PUT", files + "/1/r/artifacts/big", strings.Repeat("x", 1001), 413},
		{"PUT", files + "/1/r/artifacts/full", strings.Repeat("x", 1000), 200},
		{"PUT", files + "/1/r/artifacts", "x", 400},
		{"PUT", files + "/1/r/artifacts/full/below", "x", 400},
		{"PUT", files, "x", 404},
		{"PUT", files + "/", "x", 404},
		{"POST", files + "/x", "x", 405},
		{"PATCH", files + "/x", "x", 405},
		{"GET", files + "/1/r/artifacts", nil, 400},
		{"GET", files + "/1/r/artifacts/none", nil, 404},
		{"GET", files + "/../../../../etc/passwd", nil, 400},
		{"GET", files + "/%2e%2e/%2e%2e/etc/passwd", nil, 400},
		{"GET", files + "/%252e%252e/x", nil, 400},
		{"GET", files + "//etc/passwd", nil, 400},
		{"GET", files + "/%2fetc/passwd", nil, 400},
		{"PUT", files + "/1/a%00b", "x", 400},
		{"PUT", files + "/1/..%5cx", "x", 400},
		{"DELETE", files + "/..", nil, 400},
		{"DELETE", files + "/1/r/artifacts/none", nil, 200},
		{"GET", files + "?path=../", nil, 400},
		{"GET", files + "?path=/etc", nil, 400},
		{"GET", files + "?path=none", nil, 200},
		{"GET", files + "x", nil, 404},
	} {
		if a := b.do(t, c.method, c.path, c.body); a.status != c.status {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, a.status, a.body, c.status)
		} else if c.status >= 400 && a.json(t)["error_code"] == nil {
			t.Errorf(`%s %s: %s; want (c.status < 400 || a.json(t)["error_code"] != nil)`, c.method, c.path, a.body)
		}
	}
	if got := fmt.Sprint(b.want(t, 200, "GET", files+"?path=1/r/artifacts/", nil)["files"]); got != "[map[file_size:1000 is_dir:false path:full] map[file_size:25 is_dir:false path:page.html]]" {
		t.Errorf(`listing %s; want "[map[file_size:1000 is_dir:false path:full] map[file_size:25 is_dir:false path:page.html]]"`, got)
	}
	b.want(t, 200, "DELETE", files+"/1", nil)
	if got := b.want(t, 200, "GET", files, nil); got["files"] != nil {
		t.Errorf(`after the deletion %v; want got["files"] == nil`, got)
	}
}

// TestDownloadsAreNamed reads the name of a download in both notations of RFC 6266.
func TestDownloadsAreNamed(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	for name, want := range map[string]string{
		"model.onnx":  "attachment; filename=model.onnx",
		"a b.txt":     `attachment; filename="a b.txt"`,
		"été.txt":     "attachment; filename=_t_.txt; filename*=UTF-8''%C3%A9t%C3%A9.txt",
		`a"b;=:@ 1%2`: `attachment; filename="a_b;=:@ 1_2"; filename*=UTF-8''a%22b%3B%3D%3A%40%201%252`,
	} {
		at := files + "/1/" + url.PathEscape(name)
		b.want(t, 200, "PUT", at, "x")
		got := b.do(t, "GET", at, nil).header.Get("Content-Disposition")
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestUploadCutOff hangs up in the middle of an upload.
func TestUploadCutOff(t *testing.T) {
	t.Parallel()
	b := setupBench(t)
	b.want(t, 200, "PUT", files+"/1/f", "old")
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "PUT %s/1/f HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf of the new", files)
	// Half-closed: the server sees the end, and can still answer.
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && !strings.Contains(line, " 400 ") && !strings.Contains(line, " 499 ") {
		t.Errorf(`answer %q; want ((an error || strings.Contains(line, " 400 ")) || strings.Contains(line, " 499 "))`, line)
	}
	testenv.Eventually(t, testWait, func() error {
		left, err := os.ReadDir(filepath.Join(b.dir, "uploads"))
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("left of the upload: %v", left)
		}
		return err
	})
	if a := b.do(t, "GET", files+"/1/f", nil); string(a.body) != "old" {
		t.Errorf(`%d %s; want string(a.body) == "old"`, a.status, a.body)
	}
	if got := readFile(t, filepath.Join(b.dir, "files", "1", "f")); got != "old" {
		t.Errorf(`on disk: %q; want "old"`, got)
	}
}
