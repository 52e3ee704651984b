package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/modelrepo"
	"github.com/mlp-platform/platform/services/trainer/internal/source"
)

// The same rows, from a public archive and from a dataplane, are those of the repository; an archive with another digest
// leaves nothing behind.
func TestBackends(t *testing.T) {
	t.Parallel()
	const text = "start,t1,user,emb,run\n0,1,a,\"[1,2]\",3\n20,25,7,,1.5\n"
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/jobs.csv":
			fmt.Fprint(w, text)
		case r.URL.Query().Get("cursor") == "":
			fmt.Fprint(w, `{"jobs": [{"start": "1970-01-01T00:00:20Z", "t1": 25, "user": 7, "emb": null, "run": 1.5}], "next_cursor": "2"}`)
		default:
			fmt.Fprint(w, `{"items": [{"start": 0, "t1": 1, "user": "a", "emb": [1, 2], "run": 3, "more": {}}]}`)
		}
	}))
	t.Cleanup(srv.Close)
	dir, cache := t.TempDir(), t.TempDir()
	writeFile(t, dir, "data/a.csv", text)
	sum := sha256.Sum256([]byte(text))
	ds := tableSet()
	ds.Backends.PublicArchive = &modelrepo.PublicArchive{URL: srv.URL + "/jobs.csv?X-Amz-Signature=secret", SHA256: hex.EncodeToString(sum[:])}
	ds.Backends.Dataplane = &modelrepo.Dataplane{Path: "/jobs"}
	remote := source.New(source.Config{AllowPrivate: true, DataplaneURL: srv.URL})
	load := func(backend string) (*Rows, error) {
		return Load(context.Background(), Source{Repo: dir, Set: ds, Backend: backend, Remote: remote, CacheDir: cache})
	}
	want, err := load("local")
	if err != nil {
		t.Fatal(err)
	}
	for backend, uri := range map[string]string{"public_archive": srv.URL + "/jobs.csv", "dataplane": "dataplane:/jobs"} {
		got, err := load(backend)
		if err != nil {
			t.Fatalf("%s: %v", backend, err)
		}
		if fmt.Sprint(got.Num, got.Cat, got.Vec) != fmt.Sprint(want.Num, want.Cat, want.Vec) || got.Backend != backend || got.URI != uri || got.Origin != "recorded" {
			t.Errorf("%s: %+v; want the columns of %+v, uri %s", backend, got, want, uri)
		}
		if backend == "public_archive" && !reflect.DeepEqual(got.Version, want.Version) {
			t.Errorf("version %s, want that of the same file in the repository, %s", got.Version, want.Version)
		}
	}
	ds.Backends.PublicArchive.SHA256 = strings.Repeat("0", 64)
	if _, err := load("public_archive"); err == nil || !strings.Contains(err.Error(), "data set Jobs: public archive 127.0.0.1") {
		t.Errorf("%v, want a refusal of the digest", err)
	}
	ds.Columns["gone"] = modelrepo.ColumnSpec{Type: modelrepo.Number, Available: "end"}
	if _, err := load("dataplane"); err == nil || !strings.Contains(err.Error(), "no record has the column gone") {
		t.Errorf("%v, want the column", err)
	}
	delete(ds.Columns, "gone")
	ds.Columns["run"] = modelrepo.ColumnSpec{Type: modelrepo.Number, From: "emb", Available: "end"}
	if _, err := load("dataplane"); err == nil || !strings.Contains(err.Error(), "page 2: record 2, column run: it is an object or a list") {
		t.Errorf("%v, want the record and the column", err)
	}
	if left, _ := os.ReadDir(cache); len(left) > 0 {
		t.Errorf("%v is left behind, want nothing", left)
	}
}
