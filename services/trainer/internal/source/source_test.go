package source

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mlp-platform/platform/libs/modelrepo"
)

func TestArchive(t *testing.T) {
	t.Parallel()
	const body = "start,run\n1,2\n"
	sum := sha256.Sum256([]byte(body))
	digest := hex.EncodeToString(sum[:])
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/jobs.csv":
			fmt.Fprint(w, body)
		case "/moved":
			http.Redirect(w, r, "/jobs.csv", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case "/busy":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/cut":
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, body)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	for _, c := range []struct {
		path, digest, want string
		public, passing    bool
	}{
		{path: "/jobs.csv", digest: strings.ToUpper(digest)},
		{path: "/moved", digest: digest},
		{path: "/jobs.csv", digest: strings.Repeat("0", 64), want: "the file has the SHA-256 " + digest + ", the data set declares 000"},
		{path: "/gone", digest: digest, want: "404"},
		{path: "/round", digest: digest, want: "more than 5 redirects"},
		{path: "/busy", digest: digest, want: "503", passing: true},
		{path: "/cut", digest: digest, want: "unexpected EOF", passing: true},
		{path: "/jobs.csv", digest: digest, public: true, want: `read over https, not "http"`},
	} {
		t.Run(c.path+c.want, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			f, err := New(Config{AllowPrivate: !c.public}).Archive(context.Background(), modelrepo.PublicArchive{URL: srv.URL + c.path, SHA256: c.digest}, dir)
			if c.want == "" {
				got, _ := os.ReadFile(filepath.Join(dir, f.Path))
				if err != nil || string(got) != body {
					t.Errorf("%q, %v; want the file", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrUnavailable) != c.passing {
				t.Errorf("%v; want %q, worth another attempt: %v", err, c.want, c.passing)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("%v is left behind, want nothing", left)
			}
		})
	}
}

// A host that an archive redirects to does not see the address before, whose query may be a signature.
func TestRedirectsTellNoSignature(t *testing.T) {
	t.Parallel()
	referers := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { referers <- r.Referer() }))
	t.Cleanup(other.Close)
	srv := httptest.NewServer(http.RedirectHandler(strings.Replace(other.URL, "127.0.0.1", "localhost", 1), http.StatusFound))
	t.Cleanup(srv.Close)
	_, err := New(Config{AllowPrivate: true}).Archive(t.Context(), modelrepo.PublicArchive{URL: srv.URL + "/jobs.csv?X-Amz-Signature=secret"}, t.TempDir())
	select {
	case got := <-referers:
		if got != "" {
			t.Errorf("the other host was told the referer %q, want none", got)
		}
	default:
		t.Errorf("%v; want a request at the other host", err)
	}
}

// Neither the own deadline nor a file that cannot be written is worth another attempt; a source that breaks off is.
func TestWhatIsTriedAgain(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 0, errFetchTimeout)
	defer cancel()
	broken := errors.New("broken off")
	read := answer{iotest.ErrReader(broken), func(err error) error { return wrapCallError(t.Context(), err) }}
	_, errRead := save(t.TempDir(), "file", read, maxBytes)
	_, errWrite := save(t.TempDir(), "none/file", strings.NewReader("x"), maxBytes)
	for name, c := range map[string]struct {
		err, want error
		again     bool
	}{
		"the own deadline":     {wrapCallError(ctx, ctx.Err()), errFetchTimeout, false},
		"a source that breaks": {errRead, broken, true},
		"a file":               {errWrite, fs.ErrNotExist, false},
	} {
		if !errors.Is(c.err, c.want) || errors.Is(c.err, ErrUnavailable) != c.again {
			t.Errorf("%s: %v; want %v, worth another attempt: %v", name, c.err, c.want, c.again)
		}
	}
}

// An archive's address and its redirects are public, to whatever its name resolves.
func TestArchivesArePublic(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(srv.Close)
	for _, url := range []string{srv.URL, strings.Replace(srv.URL, "127.0.0.1", "localhost", 1), strings.Replace(srv.URL, "127.0.0.1", "[::ffff:127.0.0.1]", 1)} {
		_, err := New(Config{}).Archive(context.Background(), modelrepo.PublicArchive{URL: url}, t.TempDir())
		if !errors.Is(err, errRefused) {
			t.Errorf("%s: %v, want a refusal", url, err)
		}
	}
	for address, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "10.0.0.1": false, "172.16.0.1": false, "192.168.1.1": false, "127.0.0.1": false,
		"169.254.169.254": false, "100.64.0.1": false, "0.0.0.0": false, "224.0.0.1": false, "255.255.255.255": false, "::1": false,
		"fe80::1": false, "fd00::1": false, "::ffff:10.0.0.1": false, "64:ff9b::a00:1": false, "2002:a00:1::": false, "2001:db8::1": false,
	} {
		if got := isPublic(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: public %v, want %v", address, got, want)
		}
	}
}

func TestDataplane(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pages map[string]string // by cursor
		items int
		want  string
	}{
		"an array":            {map[string]string{"": `[{"run": 1}, {"run": 2}]`}, 2, ""},
		"jobs":                {map[string]string{"": `{"jobs": [{"run": 1}], "next_cursor": "a/b"}`, "a/b": `{"jobs": [{"run": 2}], "next_cursor": null}`}, 2, ""},
		"items":               {map[string]string{"": `{"items": [{"run": 1}], "cursor": "x"}`, "x": `{"items": []}`}, 1, ""},
		"its own cursor":      {map[string]string{"": `{"jobs": [{"run": 1}], "next_cursor": "x"}`, "x": `{"jobs": [{"run": 1}], "next_cursor": "x"}`}, 0, "page 2 repeats the cursor of an earlier page"},
		"an earlier cursor":   {map[string]string{"": `{"jobs": [], "next_cursor": "x"}`, "x": `{"jobs": [], "next_cursor": "y"}`, "y": `{"jobs": [], "next_cursor": "x"}`}, 0, "page 3 repeats the cursor of an earlier page"},
		"neither":             {map[string]string{"": `{"rows": []}`}, 0, "has neither jobs nor items"},
		"no JSON":             {map[string]string{"": `<html>`}, 0, "is neither a JSON array nor an object"},
		"an array of numbers": {map[string]string{"": `[1, 2]`}, 0, "no JSON array of objects"},
		"a byte order mark":   {map[string]string{"": "\ufeff" + `[{"run": 1}]`}, 1, ""},
		"Latin-1":             {map[string]string{"": "[{\"city\": \"K\xf6ln\"}]"}, 0, "the page: line 1, column 13: not UTF-8 (byte 0xf6)"},
		"a later refusal":     {map[string]string{"": `{"jobs": [], "next_cursor": "gone"}`}, 0, "page 2: it answers 404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				page, ok := c.pages[r.URL.Query().Get("cursor")]
				if !ok || r.URL.Path != "/base/jobs" || r.URL.Query().Get("limit") != "1000" || r.Header.Get("Authorization") != "Bearer secret" {
					http.NotFound(w, r)
					return
				}
				fmt.Fprint(w, page)
			}))
			t.Cleanup(srv.Close)
			n := 0
			var raw bytes.Buffer
			err := New(Config{DataplaneURL: srv.URL + "/base/", DataplaneToken: "secret"}).Items(context.Background(), modelrepo.Dataplane{Path: "/jobs"}, &raw, func(Item) error { n++; return nil })
			if c.want == "" && (err != nil || n != c.items || raw.Len() == 0) {
				t.Errorf("%d items, %v; want %d", n, err, c.items)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestUnconfigured(t *testing.T) {
	t.Parallel()
	_, err := New(Config{}).Objects(context.Background(), modelrepo.ObjectStore{Bucket: "data"}, nil, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "S3_ENDPOINT") {
		t.Errorf("%v, want the name of the setting", err)
	}
	err = New(Config{}).Items(context.Background(), modelrepo.Dataplane{Path: "/jobs"}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "DATAPLANE_URL") {
		t.Errorf("%v, want the name of the setting", err)
	}
}

// A page with more records than requested, or with very many members, is refused before they are allocated.
func TestPagesOfManyRecords(t *testing.T) {
	t.Parallel()
	many := "[" + strings.Repeat(`{"":0},`, pageLimit)
	for want, body := range map[string]string{
		"":                                     many[:len(many)-1] + "]",
		"more than the 1000 records":           many + strings.Repeat(`{"":0},`, 1_000_000) + "{}]",
		"more than 1000000 members":            `[{"":0` + strings.Repeat(`,"":0`, 1_500_000) + "}]",
		"the page's records: more than the 10": `{"jobs": ` + many + "{}]}",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		items, _, err := parsePage([]byte(body))
		runtime.ReadMemStats(&after)
		if want == "" && (err != nil || len(items) != pageLimit) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d items, %v; want %q", len(items), err, want)
		}
		// Includes the page and the decoder's copy; other tests of this package allocate little.
		if took := after.TotalAlloc - before.TotalAlloc; took > 256<<20 {
			t.Errorf("%.40s: %d MiB were allocated for %d MiB, want at most 256", body, took>>20, len(body)>>20)
		}
	}
}

// For any answer of a dataplane, a page is refused or its records are objects.
func FuzzPage(f *testing.F) {
	f.Add([]byte(`{"jobs": [{"run": 1}], "next_cursor": "x"}`))
	f.Add([]byte(`[{"run": null}]`))
	f.Fuzz(func(t *testing.T, in []byte) {
		items, next, err := parsePage(in)
		if err != nil {
			return
		}
		if len(next) > maxCursor {
			t.Fatalf("a cursor of %d bytes", len(next))
		}
		for _, item := range items {
			for name, v := range item {
				if !json.Valid(v) {
					t.Fatalf("%q holds %q, which is no JSON", name, v)
				}
			}
		}
	})
}
