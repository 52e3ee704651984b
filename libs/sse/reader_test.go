package sse_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/mlp-platform/platform/libs/sse"
)

type frame struct{ Raw, Data string }

func readFrames(r io.Reader) (frames []frame, err error) {
	reader := sse.NewFrameReader(r)
	for {
		f, err := reader.Next()
		if err != nil {
			return frames, err
		}
		frames = append(frames, frame{string(f.Raw), string(f.Data)})
	}
}

func TestFramesAreSplitAsTheyCame(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in   string
		want []frame
		end  error
	}{
		"data":              {"data: {\"a\":1}\n\ndata: [DONE]\n\n", []frame{{"data: {\"a\":1}\n\n", `{"a":1}`}, {"data: [DONE]\n\n", "[DONE]"}}, io.EOF},
		"ids stay":          {"id: 1.2\ndata: x\n\n", []frame{{"id: 1.2\ndata: x\n\n", "x"}}, io.EOF},
		"heartbeat":         {": heartbeat\n\n", []frame{{": heartbeat\n\n", ""}}, io.EOF},
		"several lines":     {"data: a\ndata:b\n\n", []frame{{"data: a\ndata:b\n\n", "a\nb"}}, io.EOF},
		"empty data":        {"data:\ndata:\n\n", []frame{{"data:\ndata:\n\n", "\n"}}, io.EOF},
		"CR LF":             {"data: a\r\n\r\n", []frame{{"data: a\r\n\r\n", "a"}}, io.EOF},
		"blank lines":       {"\n\n\ndata: a\n\n\n", []frame{{"data: a\n\n", "a"}}, io.EOF},
		"cut off in a line": {"data: a\n\ndata: b", []frame{{"data: a\n\n", "a"}}, io.ErrUnexpectedEOF},
		"cut off after one": {"data: a\n\ndata: b\n", []frame{{"data: a\n\n", "a"}}, io.ErrUnexpectedEOF},
		"nothing":           {"", nil, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for how, r := range map[string]io.Reader{"whole": strings.NewReader(tc.in), "bytewise": iotest.OneByteReader(strings.NewReader(tc.in))} {
				got, err := readFrames(r)
				if diff := cmp.Diff(tc.want, got); diff != "" || !errors.Is(err, tc.end) {
					t.Errorf("%s: ended with %v, want %v; frames (-want +got):\n%s", how, err, tc.end, diff)
				}
			}
		})
	}
}

func TestEndlessFramesAreRefused(t *testing.T) {
	t.Parallel()
	for name, unit := range map[string]string{"line": "data: xxxxxxxx", "lines": "data: x\n", "comments": ": x\n"} {
		endless := io.MultiReader(strings.NewReader(strings.Repeat(unit, 1<<20/len(unit)+1)), iotest.ErrReader(errors.New("read too far")))
		if _, err := readFrames(endless); !errors.Is(err, sse.ErrFrameTooLarge) {
			t.Errorf("endless %s: got %v, want ErrFrameTooLarge", name, err)
		}
	}
}

// Whatever the bytes: no panic, and the output is the input, in its order, without blank lines between frames.
func FuzzFrameReader(f *testing.F) {
	for _, s := range []string{"data: 1\n\n", "id: 1\r\ndata: a\r\n\r\ndata\n\n", ": c\n\n\n\ndata:\n\n", "data: \x00\n\nrest"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		rest := raw
		frames, err := readFrames(bytes.NewReader(raw))
		for _, got := range frames {
			rest = bytes.TrimLeft(rest, "\r\n")
			want := strings.TrimLeft(got.Raw, "\r\n")
			if !bytes.HasPrefix(rest, []byte(want)) {
				t.Fatalf("got frame %q, want one that %q begins with", got.Raw, rest)
			}
			rest = rest[len(want):]
			if strings.Contains(got.Data, "\r\n") {
				t.Fatalf("got data %q, want it without line ends of the stream", got.Data)
			}
		}
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("got %v, want the end of the stream", err)
		}
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && len(bytes.Trim(rest, "\r\n")) > 0 {
			t.Fatalf("%q was dropped; want it in a frame, or an unexpected end", rest)
		}
	})
}
