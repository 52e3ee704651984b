package negotiate

import "testing"

func TestAccept(t *testing.T) {
	t.Parallel()
	const none = ""
	for _, c := range []struct {
		accept       []string
		json, stream string // the media type of the answer, or empty
	}{
		{nil, JSON, JSON},
		{[]string{""}, JSON, JSON},
		{[]string{" "}, JSON, JSON},
		{[]string{"application/json"}, JSON, JSON},
		{[]string{"APPLICATION/JSON; charset=x"}, JSON, JSON},
		{[]string{"application/*"}, JSON, JSON},
		{[]string{"*/*;q=0.1"}, JSON, JSON},
		{[]string{Vendor}, Vendor, Vendor},
		{[]string{"*/*, " + Vendor + ";q=0.5"}, Vendor, Vendor},
		{[]string{"*/*, " + Vendor + ";q=0"}, JSON, JSON},
		{[]string{Vendor + ";q=0"}, none, none},
		{[]string{"application/json;q=0"}, none, none},
		{[]string{"application/json;q=0.000"}, none, none},
		{[]string{"application/json; Q=0."}, none, none},
		{[]string{"application/json;q=0.001"}, JSON, JSON},
		{[]string{"application/json;q=x"}, JSON, JSON},
		{[]string{"application/json;q="}, JSON, JSON},
		{[]string{"application/json;q=0.0000"}, JSON, JSON},
		{[]string{"text/html"}, none, none},
		{[]string{"text/html", "application/json"}, JSON, JSON},
		{[]string{"text/html,application/json"}, JSON, JSON},
		{[]string{","}, none, none},
		{[]string{"*"}, none, none},
		{[]string{"text/event-stream"}, none, JSON},
		{[]string{"text/*"}, none, JSON},
		{[]string{"text/event-stream;q=0"}, none, none},
	} {
		for stream, want := range map[bool]string{false: c.json, true: c.stream} {
			got, ok := Accept(c.accept, stream)
			if ok != (want != none) || ok && got != want {
				t.Errorf("%q stream=%v: %q %v, want %q", c.accept, stream, got, ok, want)
			}
		}
	}
}

func TestIsJSON(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"application/json": true, "Application/JSON; x=y": true, " application/json ": true, Vendor + ";charset=utf-8": true,
		"text/plain": false, "": false, "application/jsonx": false, "application/*": false, "application/json,application/json": false,
	} {
		if IsJSON(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
}

func FuzzAccept(f *testing.F) {
	f.Add("application/json;q=0.5, text/*")
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := Accept([]string{s}, false)
		_, okStream := Accept([]string{s}, true)
		if got != JSON && got != Vendor || ok && !okStream {
			t.Fatal("a document's client is a stream's client too")
		}
	})
}
