package dataset

import (
	"context"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/modelrepo"
)

// citySet is a data set of a size and a city.
func citySet(d modelrepo.Dialect) *modelrepo.Dataset {
	return &modelrepo.Dataset{
		Name: "Cities", Path: "datasets/Cities.yaml", Format: "csv", Dialect: d, Files: []string{"data/cities.csv"}, Backends: modelrepo.Backends{Local: &struct{}{}},
		Columns: map[string]modelrepo.ColumnSpec{
			"size": {Type: modelrepo.Number, Available: "submit"}, "city": {Type: modelrepo.Category, Available: "submit"}, "y": {Type: modelrepo.Number, Available: "end"},
		},
	}
}

func loadCities(t *testing.T, text string, d modelrepo.Dialect) (*Rows, error) {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, dir, "data/cities.csv", text)
	return Load(context.Background(), Source{Repo: dir, Set: citySet(d), Backend: "local"})
}

func testdata(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Files of spreadsheets and older programs are read as their authors saw them.
func TestDialects(t *testing.T) {
	t.Parallel()
	latin1, semicolon := testdata(t, "latin1.csv"), testdata(t, "excel-semicolon.csv")
	for name, c := range map[string]struct {
		text    string
		dialect modelrepo.Dialect
		size    float64
		city    string
	}{
		"a byte order mark before a quote": {testdata(t, "excel-utf8.csv"), modelrepo.Dialect{}, 2.5, "Köln"},
		"Latin-1":                          {latin1, modelrepo.Dialect{Encoding: "latin1"}, 2.5, "Köln"},
		"semicolons and decimal commas":    {semicolon, modelrepo.Dialect{Delimiter: ";", Decimal: ","}, 2.5, "Köln"},
		"quoted decimal commas":            {"size,city,y\n\"2,5\",Köln,9\n", modelrepo.Dialect{Decimal: ","}, 2.5, "Köln"},
		"UTF-16 with a mark and tabs":      {"\xff\xfe" + utf16le("size\tcity\ty\r\n2.5\tKöln\t9\r\n"), modelrepo.Dialect{Delimiter: "\t"}, 2.5, "Köln"},
		"missing values":                   {"size,city,y\nNA,n/a,9\n", modelrepo.Dialect{NAValues: []string{"NA", "n/a"}}, math.NaN(), ""},
		"quotes that are text":             {"size|city|y\n2.5|5\" disk|9\n", modelrepo.Dialect{Delimiter: "|", Quoting: "none"}, 2.5, `5" disk`},
	} {
		r, err := loadCities(t, c.text, c.dialect)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if size := r.Num["size"][0]; r.N != 1 || size != c.size && !(math.IsNaN(size) && math.IsNaN(c.size)) || !reflect.DeepEqual(r.Cat["city"], []string{c.city}) {
			t.Errorf("%s: got %d rows, size %v, city %q; want %v, %q", name, r.N, r.Num["size"], r.Cat["city"], c.size, c.city)
		}
	}
}

func utf16le(text string) string {
	var b strings.Builder
	for _, r := range text {
		b.WriteByte(byte(r))
		b.WriteByte(byte(r >> 8))
	}
	return b.String()
}

// A file in another dialect than its data set declares is refused with the declaration to add.
func TestDialectErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text    string
		dialect modelrepo.Dialect
		want    string
	}{
		"Latin-1":                {testdata(t, "latin1.csv"), modelrepo.Dialect{}, "line 2, column 8: not UTF-8 (byte 0xf6); if the file is in another encoding, declare it in datasets/Cities.yaml, such as encoding: windows-1252"},
		"a Latin-1 header":       {"gr\xf6\xdfe,size,city,y\n", modelrepo.Dialect{}, "line 1, column 3: not UTF-8 (byte 0xf6)"},
		"Latin-1 late":           {"size,city,y\n" + strings.Repeat("1,a,2\n", 50_000) + "1,K\xf6ln,2\n", modelrepo.Dialect{}, "line 50002, column 4: not UTF-8"},
		"a wrong encoding":       {"size,city,y\n1,K\xf6ln,9\n", modelrepo.Dialect{Encoding: "shift_jis"}, "line 2, column 4: not shift_jis"},
		"UTF-16 without a mark":  {utf16le("size,city,y\n"), modelrepo.Dialect{}, "line 1, column 2: a NUL byte"},
		"semicolons":             {testdata(t, "excel-semicolon.csv"), modelrepo.Dialect{}, `its cells are separated by ";": declare delimiter: ";" in datasets/Cities.yaml, and decimal: "," if its numbers have a decimal comma`},
		"quoted semicolons":      {"\"size\";\"city\";\"y\"\n1;a;2\n", modelrepo.Dialect{}, `separated by ";"`},
		"tabs":                   {"size\tcity\ty\n1\ta\t2\n", modelrepo.Dialect{Delimiter: ";"}, `delimiter: "\t"`},
		"a decimal comma":        {"size;city;y\n2,5;a;1\n", modelrepo.Dialect{Delimiter: ";"}, `"2,5" is no number; if the comma is its decimal sign, the data set must declare decimal: ","`},
		"a dot":                  {"size;city;y\n1.234,5;a;1\n", modelrepo.Dialect{Delimiter: ";", Decimal: ","}, `"1.234,5" is no number with a decimal comma, which the data set declares, and without other separators`},
		"a missing value":        {"size,city,y\nNA,a,1\n", modelrepo.Dialect{}, `"NA" is no number; if it means a missing value, the data set must list it under na_values`},
		"fewer cells, no quotes": {"size,city,y\n1,a\n", modelrepo.Dialect{Quoting: "none"}, "line 2: 2 cells, want 3"},
		"an unknown encoding":    {"size,city,y\n", modelrepo.Dialect{Encoding: "klingon"}, `encoding "klingon" is unknown`},
	} {
		if _, err := loadCities(t, c.text, c.dialect); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
