package recorded_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ulikunitz/xz"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/mlp-platform/platform/services/assistant/internal/recorded"
	"github.com/mlp-platform/platform/services/assistant/internal/recorded/recordedtest"
)

var layouts = []string{"lists", "dump", "must-gather", "bundle"}

func open(t *testing.T, location string) (*recorded.Recording, *kubernetes.Clientset) {
	t.Helper()
	r, err := recorded.Open(location)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(r.Config())
	if err != nil {
		t.Fatal(err)
	}
	return r, client
}

func TestEachLayoutAnswersLikeACluster(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		r, client := open(t, recordedtest.Folder(t, layout))
		if want := time.Date(2026, 3, 1, 10, 6, 1, 0, time.UTC); !r.AsOf.Equal(want) {
			t.Errorf("%s is as of %s, want %s", layout, r.AsOf, want)
		}
		pods, err := client.CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{LabelSelector: "app=api", FieldSelector: "spec.nodeName=node-a"})
		if err != nil || len(pods.Items) != 1 || pods.Items[0].Name != "api-1" {
			t.Errorf("%s: pods %v, error %v, want api-1", layout, pods, err)
		}
		none, err := client.CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{LabelSelector: "app=other"})
		if err != nil || len(none.Items) != 0 {
			t.Errorf("%s: pods of another label %v, error %v, want none", layout, none, err)
		}
		if services, err := client.CoreV1().Services("shop").List(t.Context(), metav1.ListOptions{}); err != nil || len(services.Items) != 0 {
			t.Errorf("%s: services %v, error %v, want an empty list", layout, services, err)
		}
		if _, err := client.CoreV1().ConfigMaps("shop").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "not recorded") {
			t.Errorf("%s: a kind that was not recorded answers %v, want 403 that says not recorded", layout, err)
		}
		if _, err := client.CoreV1().Nodes().Get(t.Context(), "node-a", metav1.GetOptions{}); err != nil {
			t.Errorf("%s: node: %v", layout, err)
		}
		if err := client.CoreV1().Pods("shop").Delete(t.Context(), "api-1", metav1.DeleteOptions{}); !apierrors.IsMethodNotSupported(err) {
			t.Errorf("%s: a delete answers %v, want 405", layout, err)
		}
		got := readLog(t, client, &corev1.PodLogOptions{})
		if want := "starting\ncannot open /data/orders.db: permission denied\n"; got != want {
			t.Errorf("%s: log %q, want %q", layout, got, want)
		}
	}
}

func readLog(t *testing.T, client *kubernetes.Clientset, o *corev1.PodLogOptions) string {
	t.Helper()
	data, err := client.CoreV1().Pods("shop").GetLogs("api-1", o).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestLogIsCutAsAsked(t *testing.T) {
	t.Parallel()
	_, client := open(t, recordedtest.Folder(t, "must-gather"))
	one, some := int64(1), int64(8)
	since := metav1.NewTime(time.Date(2026, 3, 1, 10, 4, 30, 0, time.UTC))
	for name, c := range map[string]struct {
		options corev1.PodLogOptions
		want    string
	}{
		"previous":   {corev1.PodLogOptions{Previous: true}, "starting\nno time on this line\ncannot open /data/orders.db: permission denied\n"},
		"tail":       {corev1.PodLogOptions{Previous: true, TailLines: &one}, "cannot open /data/orders.db: permission denied\n"},
		"since":      {corev1.PodLogOptions{Previous: true, SinceTime: &since}, "cannot open /data/orders.db: permission denied\n"},
		"timestamps": {corev1.PodLogOptions{TailLines: &one, Timestamps: true}, "2026-03-01T10:06:01Z cannot open /data/orders.db: permission denied\n"},
		"limit":      {corev1.PodLogOptions{LimitBytes: &some}, "starting"},
	} {
		if got := readLog(t, client, &c.options); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// pack makes a tar of a layout, with hostile entries added.
func pack(t *testing.T, layout string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	put := func(h tar.Header, data []byte) {
		h.Size, h.Mode = int64(len(data)), 0o600
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	put(tar.Header{Name: "../../outside.json", Typeflag: tar.TypeReg}, []byte(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"outside"}}`))
	put(tar.Header{Name: "link.json", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, nil)
	put(tar.Header{Name: "device", Typeflag: tar.TypeChar}, nil)
	root := os.DirFS(recordedtest.Folder(t, layout))
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		put(tar.Header{Name: "./bundle/" + name, Typeflag: tar.TypeReg}, data)
		return err
	})
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestLogOfAContainerThatWaits: a dump has one log of each container; of one that waits, it is that of the run that ended.
func TestLogOfAContainerThatWaits(t *testing.T) {
	t.Parallel()
	_, client := open(t, recordedtest.Folder(t, "dump"))
	for _, previous := range []bool{false, true} {
		text, err := client.CoreV1().Pods("shop").GetLogs("api-1", &corev1.PodLogOptions{Previous: previous}).DoRaw(t.Context())
		if want := "starting\ncannot open /data/orders.db: permission denied\n"; err != nil || string(text) != want {
			t.Errorf("previous %v: got %q, %v; want %q", previous, text, err, want)
		}
	}
}

// A small file may decode to more than its size suggests: it is skipped and named, on one line whatever its name is.
func TestSmallFilesThatHoldTooMuch(t *testing.T) {
	t.Parallel()
	var kinds strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&kinds, `{"apiVersion":"g%d/v1","kind":"K%d","metadata":{"name":"x"}}`, i, i)
	}
	for name, row := range map[string]struct{ text, want string }{
		"values": {`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"q"},"x":[` + strings.Repeat("{},", 10_500_000) + `{}]}`, "values"},
		"kinds":  {kinds.String(), "kinds"},
	} {
		folder := recordedtest.Folder(t, "must-gather")
		if err := os.WriteFile(filepath.Join(folder, name+"\nFAKE LINE.json"), []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		r, _ := open(t, folder)
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("%s: opened in %s, want seconds", name, took)
		}
		if len(r.Skipped) != 1 || !strings.Contains(r.Skipped[0], row.want) || strings.Contains(r.Skipped[0], "\n") {
			t.Errorf("%s: got %q skipped, want one line about its %s", name, r.Skipped, row.want)
		}
	}
}

func TestArchiveIsToldByItsContent(t *testing.T) {
	t.Parallel()
	plain := pack(t, "bundle")
	var zipped, packed bytes.Buffer
	gz := gzip.NewWriter(&zipped)
	x, err := xz.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []interface {
		Write([]byte) (int, error)
		Close() error
	}{gz, x} {
		if _, err := w.Write(plain); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range map[string][]byte{"plain": plain, "gzip": zipped.Bytes(), "xz": packed.Bytes()} {
		at := filepath.Join(t.TempDir(), "recording")
		if err := os.WriteFile(at, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, client := open(t, at)
		nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(nodes.Items) != 1 || nodes.Items[0].Name != "node-a" {
			t.Errorf("%s: nodes %v, error %v, want node-a alone", name, nodes, err)
		}
	}
}

func TestLinkOutOfADirectoryIsNotFollowed(t *testing.T) {
	t.Parallel()
	outside, inside := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "node.json"), []byte(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"outside","creationTimestamp":"2026-01-01T00:00:00Z"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "node.json"), filepath.Join(inside, "node.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := recorded.Open(inside); err == nil || !strings.Contains(err.Error(), "no objects") {
		t.Errorf("a folder with a link alone opens with %v, want an error that it has no objects", err)
	}
}
