package boundaries

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// servers are identifiers that create or run a server without libs/service/listener, which sets the limits.
var servers = []string{"http.Server", "http.Serve", "http.ServeTLS", "http.ListenAndServe", "http.ListenAndServeTLS", "grpc.NewServer", "netutil.LimitListener"}

// limited lists the files that may use one of them.
var limited = map[string]string{
	"libs/service/listener/http.go":                    "the limits themselves",
	"libs/samplecluster/cluster.go":                    "serves pipes of its own process, no port",
	"services/inference/internal/grpcserver/server.go": "gRPC, on a listener.Listener",
}

// Every server uses libs/service/listener for its limits.
func TestEveryPortHasTheSameLimits(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, top := range []string{"libs", "services", "clients"} {
		err := filepath.WalkDir(filepath.Join("../..", top), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && (d.Name() == "node_modules" || strings.HasSuffix(d.Name(), "test") && d.Name() != "test" || d.Name() == "testenv") {
				return fs.SkipDir // packages for tests alone, which no binary contains
			}
			if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			name, err := filepath.Rel("../..", path)
			if err != nil {
				return err
			}
			if limited[name] != "" {
				seen++
				return nil
			}
			ast.Inspect(file, func(n ast.Node) bool {
				var made ast.Expr
				switch n := n.(type) {
				case *ast.CompositeLit:
					made = n.Type
				case *ast.CallExpr:
					made = n.Fun
				}
				if s, ok := made.(*ast.SelectorExpr); ok {
					if pkg, ok := s.X.(*ast.Ident); ok && slices.Contains(servers, pkg.Name+"."+s.Sel.Name) {
						t.Errorf("%s uses %s.%s; want listener.Server on a listener.Listener, which have the limits of every port", name, pkg.Name, s.Sel.Name)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 3 {
		t.Errorf("saw %d of the files that may name a server, want 3", seen)
	}
}
