package sse_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"

	"github.com/mlp-platform/platform/libs/sse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func readAll(t *testing.T, r *sse.Reader) []sse.Event {
	t.Helper()
	var out []sse.Event
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
}

// The streams of the HTML standard, section 9.2.6, and its corner cases.
func TestReader(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in   string
		want []sse.Event
	}{
		"lines":            {"data: YHOO\ndata: +2\ndata: 10\n\n", []sse.Event{{Data: []byte("YHOO\n+2\n10")}}},
		"comments and ids": {": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n", []sse.Event{{ID: "1", Data: []byte("first event")}, {Data: []byte("second event")}, {Data: []byte(" third event")}}},
		"empty data":       {"data\n\ndata\ndata\n\ndata:", []sse.Event{{Data: []byte("")}, {Data: []byte("\n")}}},
		"one space":        {"data:test\n\ndata: test\n\n", []sse.Event{{Data: []byte("test")}, {Data: []byte("test")}}},
		"CR":               {"event: a\rdata: 1\r\rdata: 2\r\r", []sse.Event{{Name: "a", Data: []byte("1")}, {Data: []byte("2")}}},
		"CR LF":            {"event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", []sse.Event{{Name: "a", Data: []byte("1")}, {Data: []byte("2")}}},
		"mixed":            {"data: 1\r\ndata: 2\rdata: 3\n\r\n", []sse.Event{{Data: []byte("1\n2\n3")}}},
		"byte order mark":  {"\ufeffdata: 1\n\n", []sse.Event{{Data: []byte("1")}}},
		"mark only once":   {"\ufeff\ufeffdata: 1\n\ndata: 2\n\n", []sse.Event{{Data: []byte("2")}}},
		"cut off":          {"data: 1\n\ndata: 2\n", []sse.Event{{Data: []byte("1")}}},
		"id stays":         {"id: 7\ndata: 1\n\ndata: 2\n\n", []sse.Event{{ID: "7", Data: []byte("1")}, {ID: "7", Data: []byte("2")}}},
		"id with NUL":      {"id: 7\ndata: 1\n\nid: 8\x00\ndata: 2\n\n", []sse.Event{{ID: "7", Data: []byte("1")}, {ID: "7", Data: []byte("2")}}},
		"name resets":      {"event: a\n\ndata: 1\n\n", []sse.Event{{Data: []byte("1")}}},
		"retry":            {"retry: 250\ndata: 1\n\nretry: +5\nretry: 1e3\ndata: 2\n\n", []sse.Event{{Data: []byte("1"), Retry: 250 * time.Millisecond}, {Data: []byte("2")}}},
		"unknown fields":   {"foo: 1\nData: 2\ndata : 3\ndata: 4\n\n", []sse.Event{{Data: []byte("4")}}},
		"nothing":          {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for how, r := range map[string]io.Reader{
				"whole": strings.NewReader(tc.in), "bytewise": iotest.OneByteReader(strings.NewReader(tc.in)),
			} {
				if got := readAll(t, sse.NewReader(r, 0)); !reflect.DeepEqual(got, tc.want) {
					t.Errorf("%s: %+v, want %+v", how, got, tc.want)
				}
			}
		})
	}
}

func TestReaderKeepsIDWithoutData(t *testing.T) {
	t.Parallel()
	r := sse.NewReader(strings.NewReader("retry: 10\nid: 9\n\n"), 0)
	readAll(t, r)
	if r.LastEventID() != "9" || r.Retry() != 10*time.Millisecond {
		t.Errorf("%q %s", r.LastEventID(), r.Retry())
	}
}

// A CR ends the line at once: the reader must not wait for the byte after it.
func TestReaderDoesNotWaitAfterCR(t *testing.T) {
	t.Parallel()
	pr, pw := io.Pipe()
	defer pw.Close()
	go func() { _, _ = pw.Write([]byte("data: 1\r\r")) }()
	if e, err := sse.NewReader(pr, 0).Next(); err != nil || string(e.Data) != "1" {
		t.Errorf("%+v %v", e, err)
	}
}

func TestReaderIsBounded(t *testing.T) {
	t.Parallel()
	for name, unit := range map[string]string{
		"endless line": "data: xxxxxxxxxxxxxxx", "endless event": "data: x\n", "endless comments": ": x\n",
	} {
		r := sse.NewReader(&repeat{unit: unit}, 4096)
		if _, err := r.Next(); !errors.Is(err, sse.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := r.Next(); !errors.Is(err, sse.ErrTooLarge) {
			t.Errorf("%s: read on: %v", name, err)
		}
	}
	broken := sse.NewReader(iotest.ErrReader(io.ErrUnexpectedEOF), 0)
	if _, err := broken.Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
}

type repeat struct {
	unit string
	i    int
}

func (r *repeat) Read(p []byte) (int, error) {
	for n := range p {
		p[n] = r.unit[r.i%len(r.unit)]
		r.i++
	}
	return len(p), nil
}

func TestForgedFieldsAreRefused(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"a\nb", "a\rb", "a\x00b"} {
		if _, err := (sse.Event{ID: bad}).Append(nil); !errors.Is(err, sse.ErrBadField) {
			t.Errorf("id %q: %v", bad, err)
		}
		if _, err := (sse.Event{Name: bad}).Append(nil); !errors.Is(err, sse.ErrBadField) {
			t.Errorf("name %q: %v", bad, err)
		}
		if err := sse.NewHub(1).Publish("t", sse.Event{ID: bad}); !errors.Is(err, sse.ErrBadField) {
			t.Errorf("publish %q: %v", bad, err)
		}
	}
}

// Whatever the bytes, the reader ends without panic; what it read can be
// written and read again unchanged.
func FuzzReader(f *testing.F) {
	for _, s := range []string{"data: 1\n\n", "id: 1\nevent: x\rdata: a\r\ndata\n\n", "\ufeff:c\n\nretry: 5\ndata:\n\n", "data: \x00\n\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		const bound = 1 << 12
		r := sse.NewReader(bytes.NewReader(raw), bound)
		for {
			e, err := r.Next()
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, sse.ErrTooLarge) {
					t.Fatal(err)
				}
				return
			}
			if strings.ContainsRune(e.Name, 0) {
				continue // may be received, must not be sent
			}
			frame, err := e.Append(nil)
			if err != nil {
				t.Fatalf("%+v: %v", e, err)
			}
			again, err := sse.NewReader(bytes.NewReader(frame), 2*len(frame)+1).Next()
			if err != nil || again.ID != e.ID || again.Name != e.Name || !bytes.Equal(again.Data, e.Data) || again.Retry != e.Retry {
				t.Fatalf("%+v became %+v: %v", e, again, err)
			}
		}
	})
}

func TestWriterOverHTTP(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s, err := sse.NewWriter(w, 0)
		if err != nil {
			t.Error(err)
			return
		}
		_ = s.Comment("hello\ndata: forged")
		_ = s.Send(sse.Event{ID: "1", Name: "a", Data: []byte("x\r\ny\rz\n")})
		<-next // the client has the first event before the second is sent
		_ = s.Send(sse.Event{Data: []byte("2")})
		if err := s.Send(sse.Event{ID: "\n"}); !errors.Is(err, sse.ErrBadField) {
			t.Error(err)
		}
	}))
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if ct := resp.Header.Get("Content-Type"); ct != sse.ContentType || resp.Header.Get("X-Accel-Buffering") != "no" || resp.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("%v", resp.Header)
	}
	r := sse.NewReader(resp.Body, 0)
	first, err := r.Next()
	close(next)
	if err != nil || first.ID != "1" || first.Name != "a" || string(first.Data) != "x\ny\nz\n" {
		t.Errorf("%+v %v", first, err)
	}
	if rest := readAll(t, r); len(rest) != 1 || string(rest[0].Data) != "2" {
		t.Errorf("%+v", rest)
	}
}

// A reader that reads no more loses its stream at the write deadline.
func TestWriterGivesUpOnStuckReader(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s, err := sse.NewWriter(w, 50*time.Millisecond)
		for err == nil {
			err = s.Send(sse.Event{Data: make([]byte, 256<<10)})
		}
		ended <- err
	}))
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("no error")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("still writing")
	}
}

func TestWriterNeedsDeadlines(t *testing.T) {
	t.Parallel()
	if _, err := sse.NewWriter(httptest.NewRecorder(), 0); err == nil {
		t.Error("took a writer without deadlines")
	}
}

func joinIDs(frames []sse.Frame) string {
	var s []string
	for _, f := range frames {
		s = append(s, f.ID)
	}
	return strings.Join(s, " ")
}

func publishRange(t *testing.T, h *sse.Hub, topic string, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		if err := h.Publish(topic, sse.Event{ID: fmt.Sprint(i), Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHubDropsTheOldestAndCounts(t *testing.T) {
	t.Parallel()
	h := sse.NewHub(3)
	slow, err := h.Subscribe(nil)
	if err != nil {
		t.Fatal(err)
	}
	only, err := h.Subscribe(func(topic string) bool { return topic == "b" })
	if err != nil {
		t.Fatal(err)
	}
	publishRange(t, h, "a", 1, 5)
	publishRange(t, h, "b", 6, 6)
	frames, dropped, err := slow.Next(t.Context(), nil)
	if joinIDs(frames) != "4 5 6" || dropped != 3 || err != nil {
		t.Errorf("%s, dropped %d, %v", joinIDs(frames), dropped, err)
	}
	publishRange(t, h, "a", 7, 8)
	frames, dropped, err = slow.Next(t.Context(), frames)
	if joinIDs(frames) != "7 8" || dropped != 0 || err != nil {
		t.Errorf("%s, dropped %d, %v", joinIDs(frames), dropped, err)
	}
	if frames, _, _ := only.Next(t.Context(), nil); joinIDs(frames) != "6" {
		t.Errorf("filtered: %s", joinIDs(frames))
	}
	if h.Dropped() != 3 || h.Subscribers() != 2 {
		t.Errorf("dropped %d, subscribers %d", h.Dropped(), h.Subscribers())
	}
}

func TestHubClose(t *testing.T) {
	t.Parallel()
	h := sse.NewHub(4)
	s, err := h.Subscribe(nil)
	if err != nil {
		t.Fatal(err)
	}
	publishRange(t, h, "a", 1, 1)
	h.Close()
	h.Close()
	publishRange(t, h, "a", 2, 2)
	if frames, _, err := s.Next(t.Context(), nil); joinIDs(frames) != "1" || err != nil {
		t.Errorf("queued before the end: %s %v", joinIDs(frames), err)
	}
	if _, _, err := s.Next(t.Context(), nil); !errors.Is(err, sse.ErrClosed) {
		t.Errorf("%v", err)
	}
	if _, err := h.Subscribe(nil); !errors.Is(err, sse.ErrClosed) {
		t.Errorf("%v", err)
	}
	s.Close()
}

func TestNextEndsWithItsContext(t *testing.T) {
	t.Parallel()
	h := sse.NewHub(4)
	s, err := h.Subscribe(nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Next(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	s.Close()
	if h.Subscribers() != 0 {
		t.Error("still subscribed")
	}
	if _, _, err := s.Next(t.Context(), nil); !errors.Is(err, sse.ErrClosed) {
		t.Errorf("%v", err)
	}
}

// Under concurrent publishing, every subscriber sees order per publisher, and
// received plus dropped is what was published.
func TestHubLosesNothingUncounted(t *testing.T) {
	t.Parallel()
	const readers, publishers, each = 8, 4, 2000
	h := sse.NewHub(64)
	var read, wrote sync.WaitGroup
	for range readers {
		s, err := h.Subscribe(nil)
		if err != nil {
			t.Fatal(err)
		}
		read.Go(func() {
			defer s.Close()
			var frames []sse.Frame
			last := map[string]int{}
			got, lost := 0, 0
			for {
				next, dropped, err := s.Next(t.Context(), frames)
				if errors.Is(err, sse.ErrClosed) {
					break
				}
				frames = next
				lost += dropped
				for _, f := range frames {
					got++
					var n int
					if _, err := fmt.Sscan(f.ID, &n); err != nil || n <= last[f.Topic] {
						t.Errorf("%s: %q after %d", f.Topic, f.ID, last[f.Topic])
					}
					last[f.Topic] = n
				}
			}
			if got+lost != publishers*each {
				t.Errorf("got %d, lost %d, want %d in all", got, lost, publishers*each)
			}
		})
	}
	for p := range publishers {
		wrote.Go(func() { publishRange(t, h, fmt.Sprint(p), 1, each) })
	}
	wrote.Wait()
	h.Close()
	read.Wait()
}

// Deliveries per second to 1,000 subscribers, encoding included, sockets not.
func BenchmarkFanOut(b *testing.B) {
	const subscribers = 1000
	h := sse.NewHub(256)
	var wg sync.WaitGroup
	for range subscribers {
		s, err := h.Subscribe(nil)
		if err != nil {
			b.Fatal(err)
		}
		wg.Go(func() {
			var frames []sse.Frame
			for {
				var err error
				if frames, _, err = s.Next(context.Background(), frames); err != nil {
					return
				}
			}
		})
	}
	e := sse.Event{ID: "1", Name: "job.started", Data: bytes.Repeat([]byte("x"), 300)}
	b.ReportAllocs()
	for b.Loop() {
		if err := h.Publish("job.started", e); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*subscribers/b.Elapsed().Seconds(), "deliveries/s")
	h.Close()
	wg.Wait()
}

func BenchmarkReader(b *testing.B) {
	frame, err := sse.Event{ID: "1", Name: "token", Data: bytes.Repeat([]byte("x"), 100)}.Append(nil)
	if err != nil {
		b.Fatal(err)
	}
	r := sse.NewReader(&repeat{unit: string(frame)}, 0)
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Next(); err != nil {
			b.Fatal(err)
		}
	}
}
