package modelrepo

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/mlp-platform/platform/libs/textfile"
)

// maxFile limits one YAML file; the largest sample is under 5 KB.
const maxFile = 128 << 10

// Fault is one thing wrong with a file of the repository.
type Fault struct {
	// File is relative to the repository, with forward slashes.
	File string `json:"file"`
	// Line counts from 1; 0 means the file as a whole.
	Line int    `json:"line"`
	Msg  string `json:"msg"`
}

func (f Fault) Error() string {
	if f.Line == 0 {
		return f.File + ": " + f.Msg
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Msg)
}

// document is a parsed YAML file that knows the line of each value and gathers faults.
type document struct {
	name   string
	body   ast.Node
	file   *ast.File
	source SourceFile
	faults []Fault
}

// loadDocument parses one file. A nil document means it could not be parsed; the faults are the reasons.
func loadDocument(root *os.Root, name string) (*document, []Fault) {
	src, err := readBounded(root, name, maxFile)
	if err != nil {
		return nil, []Fault{{File: name, Msg: err.Error()}}
	}
	text, err := textfile.Clean(src)
	var at *textfile.Error
	if errors.As(err, &at) {
		return nil, []Fault{{File: name, Line: at.Line, Msg: fmt.Sprintf("column %d: %s; save the file as UTF-8", at.Column, at.Msg)}}
	}
	if err == nil {
		err = checkShape(text)
	}
	if err != nil {
		return nil, []Fault{{File: name, Msg: err.Error()}}
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, []Fault{yamlFault(name, err)}
	}
	d := &document{name: name, file: file, source: SourceFile{Path: name, Bytes: src}}
	switch {
	case len(file.Docs) == 0 || file.Docs[0].Body == nil:
		d.fault("", "the file is empty")
	case len(file.Docs) > 1:
		d.fault("", "holds more than one document; keep the first and move the others to files of their own")
	default:
		d.body = file.Docs[0].Body
		// An alias repeats its anchor's content, so a short file could unfold into gigabytes.
		for _, kind := range []ast.NodeType{ast.AliasType, ast.AnchorType} {
			for _, n := range ast.Filter(kind, d.body) {
				d.faults = append(d.faults, Fault{name, n.GetToken().Position.Line, "anchors and aliases are not read here; write the value out"})
			}
		}
	}
	if len(d.faults) > 0 {
		return nil, d.faults
	}
	return d, nil
}

func readBounded(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := OpenRegular(root, name)
	if err != nil {
		var pe *os.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("is larger than %d KiB", limit>>10)
	}
	return b, nil
}

var errIrregular = errors.New("it is no regular file")

var errLink = errors.New("a symbolic link leads there, and links are not followed")

// OpenRegular opens a regular file of a repository, and nothing else: opening a named pipe waits for a writer, and
// opening a device may have side effects. The open itself does not block, in case the file is replaced between the
// check and the open. Links are not followed, since the author of a commit could choose what is read: a working copy
// has its remote's token in .git.
func OpenRegular(root *os.Root, name string) (*os.File, error) {
	for at, c := range name + "/" {
		if c != '/' || at == 0 {
			continue
		}
		info, err := root.Lstat(name[:at])
		switch {
		case err != nil:
			return nil, err
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, errLink
		case at == len(name) && !info.Mode().IsRegular():
			return nil, errIrregular
		}
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errIrregular
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// decode fills v from the whole file, refusing unknown keys. Values that v holds already are the defaults.
func (d *document) decode(v any) bool { return d.decodeNode(d.body, v) }

func (d *document) decodeNode(n ast.Node, v any) bool {
	if err := yaml.NodeToValue(n, v, yaml.Strict()); err != nil {
		d.faults = append(d.faults, yamlFault(d.name, err))
		return false
	}
	return true
}

// fault records a fault of the value at path ("datasets[0].target"; "" is the file). A value that is absent is reported
// at the nearest one that encloses it.
func (d *document) fault(path, format string, a ...any) {
	d.faults = append(d.faults, Fault{File: d.name, Line: d.line(path), Msg: fmt.Sprintf(format, a...)})
}

func (d *document) line(path string) int {
	for path != "" {
		if p, err := yaml.PathString("$." + path); err == nil {
			if n, err := p.FilterFile(d.file); err == nil && n != nil {
				return keyLine(n)
			}
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	if d.body == nil {
		return 1
	}
	return keyLine(d.body)
}

// keyLine returns the line on which a value starts; a block mapping's own token is its first colon, which is the same
// line.
func keyLine(n ast.Node) int {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		n = m.Values[0].Key
	}
	if s, ok := n.(*ast.SequenceNode); ok && len(s.Values) > 0 {
		return keyLine(s.Values[0])
	}
	return n.GetToken().Position.Line
}

func yamlFault(name string, err error) Fault {
	var ye yaml.Error
	if errors.As(err, &ye) && ye.GetToken() != nil {
		return Fault{File: name, Line: ye.GetToken().Position.Line, Msg: ye.GetMessage()}
	}
	return Fault{File: name, Msg: err.Error()}
}
