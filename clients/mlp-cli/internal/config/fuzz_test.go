package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/testenv/hostiletest"
)

// FuzzLoad: any configuration file is either read, or refused in a few lines, and one that is read survives a round
// trip.
func FuzzLoad(f *testing.F) {
	for _, text := range []string{
		"active_context = \"p\"\n[urls]\nserving = \"http://a\"\n[auth]\ndashboard_token = \"x\"\n[contexts.p.urls]\nbus = \"nats://b\"\n",
		"[contexts.\"a.b\".auth]\nassistant_key = '''\nk'''\n", "urls = [[[[1]]]]", "a.a.a.a.a.a = {a.a = {}}", "[contexts]\np = 1", "x = 1979-05-27T07:32:00Z", "\xff", "[urls\n",
	} {
		f.Add([]byte(text))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "config.toml")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		hostiletest.CheckAllocation(t, uint64(8<<20+512*len(data)), func() {
			c, err := Load(path)
			if err != nil {
				if text := fault.From(err).Message; len(text) > 4<<10 {
					t.Fatalf("the refusal has %d bytes: %.200q; want at most 4 KiB", len(text), text)
				}
				return
			}
			_, resolveErr := Resolve(c, "", func(string) string { return "" })
			if err := c.Save(); err != nil {
				t.Fatalf("save what was read: %v", err)
			}
			again, err := Load(path)
			if err != nil {
				t.Fatalf("read what was saved: %v; want it accepted", err)
			}
			if _, err := Resolve(again, "", func(string) string { return "" }); (err == nil) != (resolveErr == nil) {
				t.Fatalf("resolved with %v, after saving with %v; want one verdict", resolveErr, err)
			}
		})
	})
}
