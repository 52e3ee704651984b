package reference

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
)

const description = "openapi: 3.1.0\ninfo: {title: T, version: '1'}\npaths: {}\n"

func getPage(t *testing.T, e *echo.Echo, path, encoding string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Accept-Encoding", encoding)
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("GET %s: %d %s; want w.Code == %v", path, w.Code, w.Body, http.StatusOK)
	}
	return w
}

func TestPagesLoadOnlyWhatIsServedHere(t *testing.T) {
	t.Parallel()
	e := echo.New()
	if err := Add(e, []byte(description)); err != nil {
		t.Fatal(err)
	}
	links := regexp.MustCompile(`(?:src|href)="([^"]*)"`)
	for _, page := range []string{"/docs", "/redoc"} {
		w := getPage(t, e, page, "gzip")
		csp := w.Header().Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'self'") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "http") {
			t.Errorf(`%s: policy %q; want strings.HasPrefix(csp, "default-src 'self'") && !strings.Contains(csp, "unsafe") && !strings.Contains(csp, "http")`, page, csp)
		}
		if regexp.MustCompile(`<script>|<style>| on[a-z]+="`).MatchString(w.Body.String()) {
			t.Errorf("%s has inline script or style; want !regexp.MustCompile(`<script>|<style>| on[a-z]+=\"`).MatchString(w.Body.String())", page)
		}
		found := links.FindAllStringSubmatch(w.Body.String(), -1)
		if len(found) < 3 {
			t.Errorf("%s: %d links; want len(found) >= 3", page, len(found))
		}
		for _, link := range found {
			if got := getPage(t, e, "/"+link[1], "gzip"); got.Body.Len() == 0 {
				t.Errorf("%s is empty; want got.Body.Len() != 0", link[1])
			}
		}
	}
	var doc struct{ OpenAPI string }
	if err := json.Unmarshal(getPage(t, e, "/openapi.json", "").Body.Bytes(), &doc); err != nil || doc.OpenAPI != "3.1.0" {
		t.Errorf(`openapi.json: %+v %v; want doc.OpenAPI == "3.1.0"`, doc, err)
	}
}

func TestAssetsWithAndWithoutCompression(t *testing.T) {
	t.Parallel()
	e := echo.New()
	if err := Add(e, []byte(description)); err != nil {
		t.Fatal(err)
	}
	small := getPage(t, e, "/redoc/redoc.standalone.js", "gzip, br")
	plain := getPage(t, e, "/redoc/redoc.standalone.js", "")
	if small.Header().Get("Content-Encoding") != "gzip" || plain.Header().Get("Content-Encoding") != "" {
		t.Error("encoding does not follow the request")
	}
	z, err := gzip.NewReader(small.Body)
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := io.ReadAll(z)
	if err != nil || !bytes.Equal(unpacked, plain.Body.Bytes()) {
		t.Errorf("contents differ: %v", err)
	}
}

// The bundle is the one that VERSION.txt names.
func TestVendoredBundle(t *testing.T) {
	t.Parallel()
	version, err := os.ReadFile("redoc/VERSION.txt")
	if err != nil {
		t.Fatal(err)
	}
	packed, err := os.ReadFile("redoc/redoc.standalone.js.gz")
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range [][]byte{packed, plain} {
		sum := sha256.Sum256(raw)
		if !strings.Contains(string(version), hex.EncodeToString(sum[:])) {
			t.Errorf("sha256 %x is not in VERSION.txt; want strings.Contains(string(version), hex.EncodeToString(sum[:]))", sum)
		}
	}
}

func TestBadDescription(t *testing.T) {
	t.Parallel()
	if err := Add(echo.New(), []byte("a: [")); err == nil {
		t.Error("no error for broken YAML")
	}
}
