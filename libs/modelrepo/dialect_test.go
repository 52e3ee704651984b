package modelrepo

import (
	"reflect"
	"strings"
	"testing"
)

func TestDialect(t *testing.T) {
	t.Parallel()
	text := strings.Replace(goodDataset, "format: csv\n", "format: csv\nencoding: latin1\ndelimiter: \"\\t\"\ndecimal: \",\"\nna_values: [NA, n/a]\nquoting: none\n", 1)
	r, err := Open(writeRepository(t, map[string]string{"datasets/Jobs.yaml": text}), "")
	if err != nil || len(r.Faults) > 0 {
		t.Fatal(err, r.Faults)
	}
	d := r.Datasets["Jobs"].Dialect
	if want := (Dialect{Encoding: "latin1", Delimiter: "\t", Decimal: ",", NAValues: []string{"NA", "n/a"}, Quoting: QuotingNone}); !reflect.DeepEqual(d, want) {
		t.Errorf("got %+v, want %+v", d, want)
	}
	if d.Comma() != '\t' || !d.DecimalComma() || !d.Missing("NA") || !d.Missing("") || d.Missing("na") {
		t.Errorf("got the delimiter %q, the decimal comma %t; want a tab, and NA and the empty cell missing", d.Comma(), d.DecimalComma())
	}
	if d = (Dialect{}); d.Comma() != ',' || d.DecimalComma() || !d.Missing("") || d.Missing("NA") {
		t.Error("want the zero value to be RFC 4180")
	}
}
