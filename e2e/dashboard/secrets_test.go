//go:build e2e

package dashboard_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/e2e/harness"
)

// TestRow22SecretsRotateAndStayHidden runs alone: during the rotation the platform's own key decrypts nothing.
func TestRow22SecretsRotateAndStayHidden(t *testing.T) {
	w := sharedWorld(t)
	admin := w.passwordLogin(t, "admin")
	w.want(t, http.StatusOK, http.MethodPut, w.url+"/api/config", admin, map[string]any{"dashboards_api_key": dashboardsKey, "object_store_secret_key": objectStoreKey})
	checkSearchFinds(t, w, admin)
	var presented atomic.Value
	tool := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { presented.Store(r.Header.Get("Authorization")) }))
	t.Cleanup(tool.Close)
	works := func(key string) {
		t.Helper()
		presented.Store("")
		r := w.startReplica(t, "DASHBOARDS_URL="+tool.URL, "DASHBOARD_SECRET_KEY="+key)
		defer r.kill()
		w.want(t, http.StatusOK, http.MethodGet, r.url+"/api/proxy/dashboards/", admin, nil)
		if got := presented.Load(); got != "Bearer "+dashboardsKey {
			t.Errorf("the tool got the credential %q, want the stored key", got)
		}
	}
	old, fresh := w.secretKey(t), newSecretKey()
	w.noteCredential(fresh)
	works(old)
	w.rotateSecrets(t, fresh+","+old)
	checkSealedBy(t, w, fresh)
	works(fresh)
	w.rotateSecrets(t, old+","+fresh)
	checkSealedBy(t, w, old)
	works(old)

	for _, leak := range w.searchSecrets() {
		t.Error(leak)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t.Logf("searched %d kB of answers and %d logs", w.answers.Len()>>10, len(w.logs))
}

// checkSearchFinds fails unless the search finds known values in a table and in an answer.
func checkSearchFinds(t *testing.T, w *world, admin who) {
	t.Helper()
	word := rand.Text()
	w.want(t, http.StatusOK, http.MethodPost, w.url+"/api/v1/collab/model/ROW22/comments", admin, map[string]string{"body": word})
	found := fmt.Sprint(w.searchFor(map[string]string{"a word of a comment": word}))
	for _, place := range []string{"the answers", "the tables"} {
		if !strings.Contains(found, "is in "+place) {
			t.Errorf("the search finds %s; want the word in %s, or it proves nothing", found, place)
		}
	}
}

func newSecretKey() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	return base64.StdEncoding.EncodeToString(key)
}

func (w *world) rotateSecrets(t *testing.T, keys string) {
	t.Helper()
	cmd := exec.Command(harness.Bin(t, "dashboard-bff"), "rotate-secrets")
	cmd.Env = append(os.Environ(), "PLATFORM_DATABASE_URL="+w.database, "DASHBOARD_SECRET_KEY="+keys, "DASHBOARD_ADMIN_PASSWORD="+w.Secret(t, "dashboard_admin_password"),
		"DASHBOARD_VIEWER_PASSWORD="+w.Secret(t, "dashboard_viewer_password"), "DASHBOARD_JWT_SECRET="+w.Secret(t, "dashboard_jwt_secret"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("rotate-secrets: %v\n%s", err, out)
	}
}

// checkSealedBy fails unless the key decrypts every stored secret.
func checkSealedBy(t *testing.T, w *world, key string) {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(raw)
	want := "v1." + hex.EncodeToString(digest[:])[:8] + "."
	rows, err := w.db.Query(t.Context(), "select key, value from dashboard.config_values where secret")
	if err != nil {
		t.Fatal(err)
	}
	type stored struct{ Key, Value string }
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[stored])
	if err != nil || len(all) < 2 {
		t.Fatalf("%d stored secrets (%v), want 2 or more", len(all), err)
	}
	for _, s := range all {
		if !strings.HasPrefix(s.Value, want) {
			t.Errorf("%s is sealed as %.20s…, want %s…", s.Key, s.Value, want)
		}
	}
}

// credentials returns those of a platform's file, by name.
func credentials(p *harness.Platform) (map[string]string, error) {
	raw, err := os.ReadFile(filepath.Join(p.Dir, "credentials.json"))
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	return out, json.Unmarshal(raw, &out)
}

// secrets returns everything that must stay hidden, by name.
func (w *world) secrets() (map[string]string, error) {
	out, err := credentials(w.Platform)
	if err != nil {
		return nil, err
	}
	sealing := sha256.Sum256([]byte("dashboard secret key/" + out["dashboard_sealing"]))
	maps.Copy(out, map[string]string{
		"the key of stored secrets": base64.StdEncoding.EncodeToString(sealing[:]), "the client secret": issuerSecret,
		"a stored forge token": forgeToken, "a stored dashboards key": dashboardsKey, "a stored object store key": objectStoreKey,
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for n, s := range w.issued {
		out[fmt.Sprintf("credential %d that was given out", n)] = s
	}
	return out, nil
}

// searchSecrets looks for each secret in the logs, in a dump of the database and in every answer, and returns where it
// found one.
func (w *world) searchSecrets() []string {
	secrets, err := w.secrets()
	if err != nil {
		return []string{err.Error()}
	}
	return w.searchFor(secrets)
}

// searchFor looks for each value in every place.
func (w *world) searchFor(secrets map[string]string) []string {
	w.mu.Lock()
	answers := bytes.Clone(w.answers.Bytes())
	logs := append([]string{}, w.logs...)
	w.mu.Unlock()
	places, err := leftBehind(w.Platform, logs...)
	if err != nil {
		return []string{err.Error()}
	}
	places["the answers"] = answers
	return searchPlaces(places, secrets)
}

// leftBehind returns everything a running platform has written so far: its log and further ones, its output, and its
// tables.
func leftBehind(p *harness.Platform, logs ...string) (map[string][]byte, error) {
	places := map[string][]byte{"the output": []byte(p.Output())}
	for _, log := range append(logs, filepath.Join(p.Dir, "platform.log")) {
		raw, err := os.ReadFile(log)
		if err != nil {
			return nil, err
		}
		places[filepath.Base(log)] = raw
	}
	database, err := databaseURL(p)
	if err != nil {
		return nil, err
	}
	tools, err := filepath.Glob("/usr/lib/postgresql/*/bin/pg_dump")
	if err != nil || len(tools) == 0 {
		return nil, fmt.Errorf("no pg_dump: %w; run scripts/setup.sh e2e", err)
	}
	// Every schema: the platform's services share the database.
	cmd := exec.Command(tools[len(tools)-1], "--dbname="+database)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if places["the tables"], err = cmd.Output(); err != nil {
		return nil, fmt.Errorf("pg_dump: %w: %s", err, stderr.String())
	}
	for place, text := range places {
		if len(text) == 0 {
			return nil, fmt.Errorf("%s is empty; a search would find nothing in it", place)
		}
	}
	return places, nil
}

// searchPlaces looks for each secret, as it is and encoded, and returns where it found one.
func searchPlaces(places map[string][]byte, secrets map[string]string) (leaks []string) {
	for name, secret := range secrets {
		if len(secret) < 16 {
			leaks = append(leaks, fmt.Sprintf("%s has %d characters; this search would find it anywhere", name, len(secret)))
			continue
		}
		for place, text := range places {
			for _, form := range []string{secret, hex.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte(secret)), url.QueryEscape(secret)} {
				if at := bytes.Index(text, []byte(form)); at >= 0 {
					leaks = append(leaks, fmt.Sprintf("%s is in %s: …%.200s", name, place, text[max(0, at-100):at]))
				}
			}
		}
	}
	return leaks
}
