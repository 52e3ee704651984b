package canon

import (
	"fmt"
	"io"
	"os"
)

// ReadFile parses a command's input file: a regular file of at most MaxFile bytes.
// The path may be a link to one. What the document has wrong is a *SyntaxError.
func ReadFile(path string, opts ...Option) (Value, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(data, append([]Option{MaxBytes(MaxFile)}, opts...)...)
}

// ReadBytes reads an input file that holds something other than JSON, under the same rules.
func ReadBytes(path string) ([]byte, error) {
	data, err := readFile(path)
	if err == nil && len(data) > MaxFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, MaxFile)
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

func readFile(path string) ([]byte, error) {
	// Before opening, which would wait for ever on a pipe without a writer.
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	// One byte more than is taken, so that a file that grows meanwhile is refused too.
	return io.ReadAll(io.LimitReader(f, MaxFile+1))
}
