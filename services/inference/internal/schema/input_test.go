package schema

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

func sealed(t *testing.T, columns ...Column) *Schema {
	t.Helper()
	s := &Schema{Columns: columns}
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	return s
}

// Ten thousand features may be queued, each of a request of a MiB.
func TestFeaturesKeepNothingOfTheRow(t *testing.T) {
	t.Parallel()
	s := sealed(t, Column{Name: "short", Kind: Category}, Column{Name: "long", Kind: Category})
	var r Row
	s.Fit(&r)
	body := strings.Repeat("é", 1<<19)
	*s.Text(&r, 0), *s.Text(&r, 1) = body[:2], body
	f := s.Describe(&r).Features
	if got, want := string(f.JSON()), `{"short":"é","long":"`+strings.Repeat("é", maxText/2)+`"}`; got != want {
		t.Errorf("features %s; want %s", got, want)
	}
	from := uintptr(unsafe.Pointer(unsafe.StringData(body)))
	for i, text := range f.texts {
		if at := uintptr(unsafe.Pointer(unsafe.StringData(text))); at >= from && at < from+uintptr(len(body)) {
			t.Errorf("text %d lies in the body; want a copy", i)
		}
	}
	runtime.KeepAlive(body)
}

func TestFeaturesWithLongNamesAreNotKept(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		length int
		kept   bool
	}{{maxNames / 4, true}, {maxNames/4 + 1, false}} {
		var columns []Column
		for i := range 4 {
			columns = append(columns, Column{Name: fmt.Sprint(i) + strings.Repeat("n", c.length-1), Kind: Number})
		}
		s := sealed(t, append(columns, Column{Name: strings.Repeat("v", maxNames), Kind: Vector, Length: 2})...)
		var r Row
		s.Fit(&r)
		if got := s.Describe(&r).Features.JSON(); (got != nil) != c.kept {
			t.Errorf("four names of %d bytes: %d bytes of features; want some: %t", c.length, len(got), c.kept)
		}
	}
}
