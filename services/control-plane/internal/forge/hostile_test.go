package forge_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/libs/testenv/hostiletest"
	"github.com/mlp-platform/platform/services/control-plane/internal/forge"
	"github.com/mlp-platform/platform/services/control-plane/internal/forge/forgetest"
)

// memoryCeiling limits the resident memory of a reader of a repository, in bytes.
const memoryCeiling = 1 << 30

// checkMemory compares the largest child of this process, and this process, with the ceiling.
func checkMemory(t *testing.T) {
	t.Helper()
	for name, who := range map[string]int{"a child": unix.RUSAGE_CHILDREN, "this process": unix.RUSAGE_SELF} {
		var u unix.Rusage
		if err := unix.Getrusage(who, &u); err != nil {
			t.Fatal(err)
		}
		t.Logf("most resident memory of %s: %d MiB", name, u.Maxrss>>10)
		if u.Maxrss<<10 > memoryCeiling {
			t.Errorf("%s had %d MiB resident; want at most %d", name, u.Maxrss>>10, memoryCeiling>>20)
		}
	}
}

// hostilePacks are packs that cost a reader far more than their size, or that are not packs.
func hostilePacks() map[string][]byte {
	const base = 16 << 20
	zeros := forgetest.Object{Type: forgetest.Blob, Zeros: base}
	hash := forgetest.HashOf("blob", nil, base)
	deltas := []forgetest.Object{zeros}
	for range 600 { // 9.4 GiB of results
		deltas = append(deltas, forgetest.Object{Type: forgetest.RefDelta, Base: hash, Body: forgetest.CopyDelta(base, 1)})
	}
	sound := forgetest.Pack(0, forgetest.Object{Type: forgetest.Blob, Body: []byte("hello")})
	many := make([]forgetest.Object, 80)
	for i := range many {
		many[i] = zeros
	}
	return map[string][]byte{
		"deltas that unfold to 9 GiB":    forgetest.Pack(0, deltas...),
		"one delta of 512 MiB":           forgetest.Pack(0, zeros, forgetest.Object{Type: forgetest.RefDelta, Base: hash, Body: forgetest.CopyDelta(base, 32)}),
		"blobs of more than a GiB":       forgetest.Pack(0, many...),
		"a blob of 512 MiB":              forgetest.Pack(0, forgetest.Object{Type: forgetest.Blob, Zeros: 512 << 20}),
		"a commit of 64 MiB":             forgetest.Pack(0, forgetest.Object{Type: forgetest.Commit, Zeros: 64 << 20}),
		"a tree of 64 MiB":               forgetest.Pack(0, forgetest.Object{Type: forgetest.Tree, Zeros: 64 << 20}),
		"an object larger than it says":  forgetest.Pack(0, forgetest.Object{Type: forgetest.Blob, Size: 10, Zeros: 512 << 20}),
		"an object smaller than it says": forgetest.Pack(0, forgetest.Object{Type: forgetest.Blob, Size: 100 << 20, Body: []byte("x")}),
		"four billion objects":           forgetest.Pack(1<<32-1, forgetest.Object{Type: forgetest.Blob, Body: []byte("x")}),
		"a delta without a base":         forgetest.Pack(0, forgetest.Object{Type: forgetest.RefDelta, Body: forgetest.CopyDelta(100, 1)}),
		"an unknown type":                forgetest.Pack(0, forgetest.Object{Type: 5, Body: []byte("x")}),
		"a cut pack":                     sound[:len(sound)-25],
		"no pack":                        []byte("PACK of lies"),
		"a pack without the commit":      sound,
		"escape sequences":               []byte("\x1b[2J\x1b]0;owned\x07"),
	}
}

// A hostile pack ends in a refusal that names the head, within the memory limit of one reader, and the next poll does
// not fetch it again.
func TestHostilePacksAreRefused(t *testing.T) {
	packs := hostilePacks()
	for _, name := range slices.Sorted(maps.Keys(packs)) {
		sha := fmt.Sprintf("%040x", len(name))
		r, err := forge.OpenRemote(service.Secret(forgetest.ServePack(t, sha, packs[name])), t.TempDir(), 20*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		head, err := r.Head(t.Context(), "main")
		if err == nil || strings.ContainsAny(err.Error(), "\x1b\x07") {
			t.Errorf("%s: head %v, error %v; want an error without escape sequences", name, head, err)
		}
		t.Logf("%-30s %7d bytes %6v  %.160v", name, len(packs[name]), time.Since(begin).Round(10*time.Millisecond), err)
		if !errors.Is(err, forge.ErrMalformed) {
			t.Errorf("%s: %v; want %v", name, err, forge.ErrMalformed)
		} else {
			if head.SHA != sha {
				t.Errorf("%s: the refused head is %q; want %s", name, head.SHA, sha)
			}
			if _, again := r.Head(t.Context(), "main"); !errors.Is(again, forge.ErrMalformed) || again.Error() != err.Error() {
				t.Errorf("%s: again %v; want %v", name, again, err)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	checkMemory(t)
}

// damagedPacks are damaged forms of a pack made by git, and of small handmade ones.
func damagedPacks(t *testing.T) []hostiletest.File {
	p := forgetest.New(t)
	p.Commit("sound", map[string]string{"models/x/model.yaml": "name: X\n", "datasets/d.yaml": "name: D\n"})
	git := p.Run(p.Bare, "sh", "-c", "git rev-list --objects --all | cut -d' ' -f1 | git pack-objects --stdout | base64 -w0")
	pack, err := base64.StdEncoding.DecodeString(git[strings.LastIndexByte(git, '\n')+1:])
	if err != nil {
		t.Fatal(err)
	}
	blob := []byte(strings.Repeat("0123456789", 100))
	small := forgetest.Pack(0, forgetest.Object{Type: forgetest.Tree, Body: []byte("40000 models\x00" + strings.Repeat("x", 20))},
		forgetest.Object{Type: forgetest.Blob, Body: blob},
		forgetest.Object{Type: forgetest.RefDelta, Base: forgetest.HashOf("blob", blob, 0), Body: forgetest.CopyDelta(int64(len(blob)), 3)})
	return hostiletest.Mutate("pack", 100, 1, pack, small)
}

// Damaged packs end in a refusal, and a sound repository is read afterwards.
func TestDamagedPacksAreRefused(t *testing.T) {
	packs := damagedPacks(t)
	hostiletest.Feed(t, packs, 30*time.Second, func(f hostiletest.File) error {
		r, err := forge.OpenRemote(service.Secret(forgetest.ServePack(t, strings.Repeat("ab", 20), f.Data)), t.TempDir(), 20*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		_, err = r.Head(t.Context(), "main")
		if !errors.Is(err, forge.ErrMalformed) {
			t.Errorf("%s: %v; want %v", f.Name, err, forge.ErrMalformed)
		}
		return err
	})
	checkMemory(t)
	p := forgetest.New(t)
	want := p.Commit("sound", map[string]string{"models/x/model.yaml": "name: X\n"})
	r, err := forge.OpenRemote(service.Secret(p.Serve().Address()), t.TempDir(), 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if head, err := r.Head(t.Context(), "main"); err != nil || head.SHA != want {
		t.Errorf("the sound repository is at %q, %v; want %s", head.SHA, err, want)
	}
}

// The content of a commit can be hostile although its pack is not.
func TestHostileTreesAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		add  []string // mode, path
		want string   // "": it is exported without the entry
	}{
		"case collision":  {[]string{"100644 models/x/README.md", "100644 models/x/readme.MD"}, "differ only in case"},
		"escape sequence": {[]string{"100644 models/x/\x1b[2Jowned"}, "cannot be shown"},
		"line feed":       {[]string{"100644 models/x/a\nb"}, "cannot be shown"},
		"direction mark":  {[]string{"100644 models/x/\u202egnp.exe"}, "cannot be shown"},
		"deep folders":    {[]string{"100644 models/" + strings.Repeat("d/", 200) + "x"}, "deep"},
		"link out":        {[]string{"120000 models/x/link"}, ""},
		"submodule":       {[]string{"160000 models/x/sub"}, ""},
		"hook":            {[]string{"100755 models/x/hooks/post-checkout"}, ""},
		"git attributes":  {[]string{"100644 .gitattributes", "100644 .lfsconfig", "100644 .gitmodules"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := forgetest.New(t)
			p.Commit("sound", map[string]string{"models/x/model.yaml": "name: X\n"})
			blob := p.Run(p.Dir, "sh", "-c", "printf 'filter=lfs [core] hooksPath=/tmp' | git hash-object -w --stdin")
			for _, entry := range c.add {
				mode, path, _ := strings.Cut(entry, " ")
				object := blob
				if mode == "160000" {
					object = p.Git("rev-parse", "HEAD")
				}
				p.Git("update-index", "--add", "--cacheinfo", mode+","+object+","+path)
			}
			p.Git("commit", "-qm", "hostile")
			p.Git("push", "-q", "origin", "main")
			srv := p.Serve()
			r, err := forge.OpenRemote(service.Secret(srv.Address()), t.TempDir(), 20*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			head, err := r.Head(t.Context(), "main")
			if err != nil {
				t.Fatal(err)
			}
			dir, err := r.Export(t.Context(), head.SHA)
			if c.want != "" {
				if !errors.Is(err, forge.ErrMalformed) || !strings.Contains(err.Error(), c.want) || strings.ContainsAny(err.Error(), "\x1b\n\u202e") {
					t.Fatalf("%v; want a refusal that says %q, without escape sequences", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(filepath.Join(dir, "models/x/link")); err == nil {
				t.Error("a link was laid out")
			}
			if _, err := os.Stat(filepath.Join(dir, "models/x/model.yaml")); err != nil {
				t.Error(err)
			}
		})
	}
}

// A local commit too large for any memory kills its reader, not the platform, and is refused.
func TestReaderOutOfMemory(t *testing.T) {
	p := forgetest.New(t)
	p.Commit("sound", map[string]string{"models/x/model.yaml": "name: X\n"})
	bomb := p.Run(p.Dir, "sh", "-c", "head -c 800000000 /dev/zero | git -c core.bigFileThreshold=1m -c core.compression=1 hash-object -t commit --literally -w --stdin")
	if err := os.WriteFile(filepath.Join(p.Dir, ".git/refs/heads/main"), []byte(bomb+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	local, ok := forge.OpenLocal(p.Dir)
	if !ok {
		t.Fatal("no repository")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	head, err := local.Head(ctx, "main")
	if !errors.Is(err, forge.ErrMalformed) || head.SHA != bomb {
		t.Fatalf("head %v, error %v; want %s refused", head, err, bomb)
	}
	t.Log(err)
}

// A child ends when its caller no longer waits for it.
func TestReaderEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := forgetest.New(t)
	p.Commit("sound", map[string]string{"models/x/model.yaml": "name: X\n"})
	local, _ := forge.OpenLocal(p.Dir)
	if _, err := local.Head(ctx, "main"); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v; want %v", err, context.Canceled)
	}
}
