//go:build e2e

package dashboard_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mlp-platform/platform/e2e/harness"
)

// TestRow22SecretsRotateAndStayHidden runs alone: during the rotation the platform's own key opens nothing.
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

// checkSearchFinds fails unless the search finds what a table and an answer do hold.
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

// checkSealedBy fails unless the key seals every stored secret.
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

// secrets are all that must stay hidden, by name.
func (w *world) secrets() (map[string]string, error) {
	raw, err := os.ReadFile(filepath.Join(w.Dir, "credentials.json"))
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	if err := json.Unmarshal(raw, &out); err != nil {
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

// searchSecrets looks for each secret in the logs, in a dump of the dashboard's tables and in every answer, and says
// where it found one.
func (w *world) searchSecrets() []string {
	secrets, err := w.secrets()
	if err != nil {
		return []string{err.Error()}
	}
	return w.searchFor(secrets)
}

// searchFor looks for each value in every place.
func (w *world) searchFor(secrets map[string]string) []string {
	places := map[string][]byte{}
	var err error
	w.mu.Lock()
	places["the answers"] = bytes.Clone(w.answers.Bytes())
	logs := append([]string{}, w.logs...)
	w.mu.Unlock()
	for _, log := range logs {
		raw, err := os.ReadFile(log)
		if err != nil {
			return []string{err.Error()}
		}
		if len(raw) == 0 {
			return []string{log + " is empty; this search would find nothing in it"}
		}
		places[filepath.Base(log)] = raw
	}
	if places["the tables"], err = w.dumpTables(context.Background()); err != nil {
		return []string{err.Error()}
	}
	var leaks []string
	for name, secret := range secrets {
		if len(secret) < 16 {
			leaks = append(leaks, fmt.Sprintf("%s has %d characters; this search would find it anywhere", name, len(secret)))
			continue
		}
		for place, text := range places {
			for _, form := range []string{secret, hex.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte(secret))} {
				if at := bytes.Index(text, []byte(form)); at >= 0 {
					leaks = append(leaks, fmt.Sprintf("%s is in %s: …%.200s", name, place, text[max(0, at-100):at]))
				}
			}
		}
	}
	return leaks
}

// dumpTables is every row of every table of the schema dashboard, as JSON.
func (w *world) dumpTables(ctx context.Context) ([]byte, error) {
	rows, err := w.db.Query(ctx, "select table_name from information_schema.tables where table_schema = 'dashboard'")
	if err != nil {
		return nil, err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 8 {
		return nil, fmt.Errorf("the schema dashboard has the tables %v (%w), want 8 or more", tables, err)
	}
	var out bytes.Buffer
	for _, table := range tables {
		rows, err := w.db.Query(ctx, "select row_to_json(t)::text from dashboard."+pgx.Identifier{table}.Sanitize()+" t")
		if err != nil {
			return nil, err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "%s\n%s\n", table, strings.Join(lines, "\n"))
	}
	return out.Bytes(), nil
}
