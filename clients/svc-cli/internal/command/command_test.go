package command_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/libs/cli/printable"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/libs/evidence/store"
)

func newEnv() (e *command.Env, out, errOut *bytes.Buffer) {
	out, errOut = new(bytes.Buffer), new(bytes.Buffer)
	return &command.Env{Stdout: out, Stderr: errOut, Getenv: func(string) string { return "" }}, out, errOut
}

func TestEnd(t *testing.T) {
	t.Parallel()
	_, syntax := canon.Parse([]byte(`{"a":1,"a":2}`))
	_, document := spine.ParseRun(canon.NewObject())
	for name, tc := range map[string]struct {
		err                        error
		code                       int
		text, envelope, forVerdict string
	}{
		"done":              {},
		"reader gone":       {err: fmt.Errorf("write: %w", syscall.EPIPE)},
		"the answer is no":  {err: command.No, code: 1},
		"already told":      {err: &command.Exit{Code: 2}, code: 2},
		"a fault":           {command.Failf("some_code", "it is %s", "wrong"), 2, "it is wrong (some_code)", `{"error":{"code":"some_code","message":"it is wrong"},"ok":false}`, `{"error":{"code":"some_code","message":"it is wrong","path":""},"valid":false}`},
		"a wrapped fault":   {fmt.Errorf("outside: %w", command.Failf("some_code", "inside")), 2, "inside (some_code)", `{"error":{"code":"some_code","message":"inside"},"ok":false}`, `{"error":{"code":"some_code","message":"inside","path":""},"valid":false}`},
		"a fault at a path": {&command.Fault{Code: "c", Path: "/a/0", Message: "bad"}, 2, "/a/0: bad (c)", `{"error":{"code":"c","message":"bad"},"ok":false}`, `{"error":{"code":"c","message":"bad","path":"/a/0"},"valid":false}`},
		"a wrong line":      {command.Usagef("no such %d", 1), 2, "no such 1", `{"error":{"code":"invalid_arguments","message":"no such 1"},"ok":false}`, `{"error":{"code":"invalid_arguments","message":"no such 1","path":""},"valid":false}`},
		"unknown":           {errors.New("a\x1b[2Jb"), 2, `a\x1b[2Jb`, `{"error":{"code":"failed","message":"a\u001b[2Jb"},"ok":false}`, `{"error":{"code":"failed","message":"a\u001b[2Jb","path":""},"valid":false}`},
		"interrupted":       {fmt.Errorf("read: %w", context.Canceled), 2, "interrupted", `{"error":{"code":"interrupted","message":"interrupted"},"ok":false}`, `{"error":{"code":"interrupted","message":"interrupted","path":""},"valid":false}`},
		"of the store":      {&store.Error{Code: store.InvalidState, Message: "Bad.", Allowed: []string{"a", "b"}}, 2, "Bad; one of: a, b (invalid_state)", `{"error":{"code":"invalid_state","message":"Bad; one of: a, b"},"ok":false}`, `{"error":{"code":"invalid_state","message":"Bad; one of: a, b","path":""},"valid":false}`},
		"of a document":     {document, 2, "/schema_version: the key is missing (missing_field)", `{"error":{"code":"missing_field","message":"the key is missing"},"ok":false}`, `{"error":{"code":"missing_field","message":"the key is missing","path":"/schema_version"},"valid":false}`},
		"of JSON":           {syntax, 2, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for shape, want := range map[command.Shape]string{command.Envelope: tc.envelope, command.Verdict: tc.forVerdict} {
				e, out, errOut := newEnv()
				err := e.End(shape, true, tc.err)
				var exit *command.Exit
				if name == "of JSON" {
					if !errors.As(err, &exit) || exit.Code != 2 || !strings.Contains(out.String(), `"code":"invalid_json"`) {
						t.Errorf("%v %s; want errors.As(err, &exit) && exit.Code == 2 && strings.Contains(out.String(), `\"code\":\"invalid_json\"`)", err, out)
					}
					continue
				}
				if tc.code == 0 != (err == nil) || tc.code != 0 && (!errors.As(err, &exit) || exit.Code != tc.code) {
					t.Errorf("ends with %v; want tc.code == 0 == (err == nil) && (tc.code == 0 || !!errors.As(err, &exit) || exit.Code != tc.code)", err)
				}
				if tc.text == "" {
					if out.Len()+errOut.Len() > 0 {
						t.Errorf("printed %q %q; want out.Len() + errOut.Len() <= 0", out, errOut)
					}
					continue
				}
				if errOut.String() != "error: "+tc.text+"\n" || out.String() != want+"\n" {
					t.Errorf("printed %q and %q, want %q", errOut, out, want)
				}
			}
		})
	}
}

func TestReadDocument(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ data, code string }{
		"good":   {`{"a":1}`, ""},
		"bom":    {"\ufeff{}", ""},
		"array":  {`[]`, command.InvalidDocument},
		"broken": {`{`, command.InvalidJSON},
		"latin1": {"{\"a\":\"\xe9\"}", command.InvalidUTF8},
		"large":  {`{"a":"` + strings.Repeat("a", canon.MaxFile) + `"}`, command.InvalidJSON},
		"deep":   {strings.Repeat("[", 20000), command.InvalidJSON},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(tc.data), 0o600); err != nil {
			t.Fatal(err)
		}
		v, err := command.ReadDocument(path)
		if tc.code == "" {
			if err != nil || v == nil {
				t.Errorf("%s: %v; want v != nil", name, err)
			}
			continue
		}
		if f := command.FaultOf(err); f == nil || f.Code != tc.code || !strings.Contains(f.Message, path) {
			t.Errorf("%s: %+v; want f != nil && f.Code == tc.code && strings.Contains(f.Message, path)", name, f)
		}
	}
	for _, path := range []string{dir, fifo, filepath.Join(dir, "none")} {
		if _, err := command.ReadDocument(path); command.FaultOf(err).Code != command.InputReadError || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v; want command.FaultOf(err).Code == command.InputReadError && strings.Contains(err.Error(), path)", path, err)
		}
		if _, err := command.ReadRegular(path); command.FaultOf(err).Code != command.InputReadError || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v; want command.FaultOf(err).Code == command.InputReadError && strings.Contains(err.Error(), path)", path, err)
		}
	}
	if v, err := command.ReadValue(filepath.Join(dir, "array")); err != nil || v == nil {
		t.Error(v, err, "want v != nil")
	}
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "out.json")
	for _, data := range []string{"first", "second"} {
		if err := command.WriteFile(path, []byte(data)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != data {
			t.Errorf("%q %v; want string(got) == data", got, err)
		}
	}
	// A folder is in the way: it stays, and nothing is left beside it.
	taken := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(taken, "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{taken, filepath.Join(dir, "none", "out")} {
		if err := command.WriteFile(target, nil); command.FaultOf(err).Code != command.OutputWriteError || !strings.Contains(err.Error(), target) {
			t.Errorf("%v; want command.FaultOf(err).Code == command.OutputWriteError && strings.Contains(err.Error(), target)", err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%v %v; want len(entries) == 2", entries, err)
	}
	if err := command.WriteFile(filepath.Join(dir, "none", "out"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the cause is lost: %v; want errors.Is(err, fs.ErrNotExist)", err)
	}
}

// The target of an output path keeps its kind: a link, a pipe, a file's mode.
func TestWriteFileOverOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	mode := func(name string) fs.FileMode {
		t.Helper()
		info, err := os.Lstat(at(name))
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	for _, err := range []error{
		os.WriteFile(at("usual"), nil, 0o666), os.WriteFile(at("private"), nil, 0o600),
		os.Symlink("private", at("link")), os.Symlink("none", at("dangling")), syscall.Mkfifo(at("pipe"), 0o600),
		command.WriteFile(at("new"), []byte("new")), command.WriteFile(at("link"), []byte("linked")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if mode("new") != mode("usual") {
		t.Errorf(`a new file has mode %v, the umask's is %v; want mode("new") == mode("usual")`, mode("new"), mode("usual"))
	}
	if got, err := os.ReadFile(at("private")); err != nil || string(got) != "linked" || mode("private") != 0o600 || mode("link")&fs.ModeSymlink == 0 {
		t.Errorf(`%q %v %v %v; want string(got) == "linked" && mode("private") == 0o600 && mode("link") & fs.ModeSymlink != 0`, got, err, mode("private"), mode("link"))
	}
	for _, name := range []string{"dangling", "pipe"} { // the pipe has no reader
		if err := command.WriteFile(at(name), []byte("x")); command.FaultOf(err).Code != command.OutputWriteError {
			t.Errorf("%s: %v; want command.FaultOf(err).Code == %v", name, err, command.OutputWriteError)
		}
	}
	reader, err := os.OpenFile(at("pipe"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := command.WriteFile(at("pipe"), []byte("piped")); err != nil || mode("pipe")&fs.ModeNamedPipe == 0 {
		t.Errorf(`%v %v; want mode("pipe") & fs.ModeNamedPipe != 0`, err, mode("pipe"))
	}
	b := make([]byte, 16)
	if n, err := reader.Read(b); err != nil || string(b[:n]) != "piped" {
		t.Errorf(`%q %v; want string(b[:n]) == "piped"`, b[:n], err)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"a\tb\x1b[2J", "1"}, {"c", "22"}}
	e, out, _ := newEnv()
	if err := e.Table([]string{"name", "n"}, rows); err != nil || out.String() != "a b\\x1b[2J\t1\nc\t22\n" {
		t.Errorf("%v %q; want out.String() == \"a b[2J\\t1\\nc\\t22\\n\"", err, out)
	}
	e, out, _ = newEnv()
	e.Terminal = true
	if err := e.Table([]string{"name", "n"}, rows); err != nil || out.String() != "NAME         N\na b\\x1b[2J   1\nc           22\n" {
		t.Errorf("%v %q; want out.String() == \"NAME N\\na b[2J 1\\nc 22\\n\"", err, out)
	}
}

func TestPrintfAndProgressAreCleaned(t *testing.T) {
	t.Parallel()
	e, out, errOut := newEnv()
	e.Printf("run: %s\n", "a\x1b[2J\u202eb")
	if want := "run: a\\x1b[2J\\u202eb\n"; out.String() != want {
		t.Errorf("got %q, want %q", out, want)
	}
	e.Stderr = printable.NewWriter(errOut)
	e.ShowProgress("read\x1b[2J")
	e.ShowProgress("")
	if want := "\r\x1b[Kread\\x1b[2J\r\x1b[K"; errOut.String() != want {
		t.Errorf("got %q, want %q", errOut, want)
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	e, out, _ := newEnv()
	err := e.JSON(struct {
		Z float64 `json:"z"`
		A string  `json:"a"`
	}{10, "é😀<"})
	if err != nil || out.String() != `{"a":"\u00e9\ud83d\ude00<","z":10.0}`+"\n" {
		t.Errorf("%v %q; want out.String() == `{\"a\":\"\\u00e9\\ud83d\\ude00<\",\"z\":10.0}` + \"\\n\"", err, out)
	}
	if err := e.JSON(make(chan int)); err == nil {
		t.Error("a channel became JSON")
	}
}
