package node

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Busybox is the image of the pods: the machine's own static busybox, under all of its applet names, and bash for
// network access: Debian's static programs crash when they look up a name.
const Busybox = "localhost/busybox:1"

const pause = "localhost/pause:1"

// busyboxArchive returns an archive, as docker save writes it, of one layer under two names.
func busyboxArchive(t testing.TB) []byte {
	t.Helper()
	program, err := os.ReadFile("/bin/busybox")
	if err != nil {
		t.Fatal(err)
	}
	applets, err := exec.Command("/bin/busybox", "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	layer := newArchive(t)
	for _, dir := range []string{"bin/", "etc/", "tmp/"} {
		layer.add(tar.Header{Name: dir, Typeflag: tar.TypeDir, Mode: 0o1777}, nil)
	}
	layer.add(tar.Header{Name: "bin/busybox", Mode: 0o755}, program)
	for _, name := range strings.Fields(string(applets)) {
		if name != "busybox" {
			layer.add(tar.Header{Name: "bin/" + name, Typeflag: tar.TypeSymlink, Linkname: "busybox", Mode: 0o777}, nil)
		}
	}
	for _, file := range withLibraries(t, "/bin/bash") {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		layer.add(tar.Header{Name: strings.TrimPrefix(file, "/"), Mode: 0o755}, content)
	}
	layer.add(tar.Header{Name: "etc/passwd", Mode: 0o644}, []byte("root:x:0:0::/:/bin/sh\n"))
	content := layer.bytes()
	sum := sha256.Sum256(content)
	config, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{"Cmd": []string{"/bin/sleep", "infinity"}, "Env": []string{"PATH=/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
	})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{Busybox, pause}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		t.Fatal(err)
	}
	image := newArchive(t)
	image.add(tar.Header{Name: "config.json", Mode: 0o644}, config)
	image.add(tar.Header{Name: "layer.tar", Mode: 0o644}, content)
	image.add(tar.Header{Name: "manifest.json", Mode: 0o644}, manifest)
	return image.bytes()
}

// withLibraries returns a program and the libraries that ldd lists.
func withLibraries(t testing.TB, program string) []string {
	t.Helper()
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	files := []string{program}
	for _, word := range strings.Fields(string(out)) {
		if strings.HasPrefix(word, "/") {
			files = append(files, word)
		}
	}
	return files
}

// archive is a tar file in memory.
type archive struct {
	t   testing.TB
	buf bytes.Buffer
	w   *tar.Writer
}

func newArchive(t testing.TB) *archive {
	a := &archive{t: t}
	a.w = tar.NewWriter(&a.buf)
	return a
}

func (a *archive) add(h tar.Header, content []byte) {
	a.t.Helper()
	h.Size = int64(len(content))
	if err := a.w.WriteHeader(&h); err != nil {
		a.t.Fatal(err)
	}
	if _, err := a.w.Write(content); err != nil {
		a.t.Fatal(err)
	}
}

func (a *archive) bytes() []byte {
	a.t.Helper()
	if err := a.w.Close(); err != nil {
		a.t.Fatal(err)
	}
	return a.buf.Bytes()
}
