package store

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/mlp-platform/platform/libs/evidence/tree"
)

// KeyName is the name under which checkpoints are signed.
const KeyName = "svc-store"

// maxKeyFile is far above the 100 bytes or so of a key.
const maxKeyFile = 4096

// originPrefix and a store's id identify the log of a note.
const originPrefix = "svc/"

// GenerateKey writes a new Ed25519 signing key to a file that must not exist yet,
// readable by its owner alone, and returns the public key that verifies it.
func GenerateKey(path string) (public string, err error) {
	private, public, err := note.GenerateKey(rand.Reader, KeyName)
	if err != nil {
		return "", err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(private + "\n")
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		_ = os.Remove(path)
		return "", err
	}
	return public, nil
}

// LoadSigner reads a signing key. A file that others may read or write is refused.
func LoadSigner(path string) (note.Signer, error) {
	text, err := readKeyFile(path, true)
	if err != nil {
		return nil, err
	}
	signer, err := note.NewSigner(text)
	if err != nil {
		// The library's error may quote its input.
		return nil, errors.New("the signing key file holds no signing key")
	}
	return signer, nil
}

// LoadVerifier reads a public key as [GenerateKey] returned it.
func LoadVerifier(path string) (note.Verifier, error) {
	text, err := readKeyFile(path, false)
	if err != nil {
		return nil, err
	}
	verifier, err := note.NewVerifier(text)
	if err != nil {
		return nil, errors.New("the public key file holds no public key")
	}
	return verifier, nil
}

func readKeyFile(path string, private bool) (string, error) {
	// Before opening, which would wait for ever on a pipe without a writer. The
	// opened file is checked again: it may have been replaced meanwhile.
	if info, err := os.Stat(path); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", errors.New("the key file is not a regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", errors.New("the key file is not a regular file")
	case private && info.Mode().Perm()&^0o600 != 0:
		return "", fmt.Errorf("the signing key file has mode %04o, allowed is 0600 at most", info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(file, maxKeyFile+1))
	if err == nil && len(text) > maxKeyFile {
		err = errors.New("the key file is too long")
	}
	return strings.TrimSpace(string(text)), err
}

// statement is the content of a note: this log, of this size, has this root.
type statement struct {
	origin string
	size   int64
	root   tree.Hash
}

func (s statement) text() string {
	return s.origin + "\n" + strconv.FormatInt(s.size, 10) + "\n" +
		base64.StdEncoding.EncodeToString(s.root[:]) + "\n"
}

// parseStatement reads exactly what text writes.
func parseStatement(text string) (statement, error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 4 || lines[3] != "" {
		return statement{}, errors.New("the note is not three lines")
	}
	s := statement{origin: lines[0]}
	var err error
	if s.size, err = strconv.ParseInt(lines[1], 10, 64); err != nil {
		return statement{}, errors.New("the note's second line is no size")
	}
	root, err := base64.StdEncoding.DecodeString(lines[2])
	if err != nil || len(root) != len(s.root) {
		return statement{}, errors.New("the note's third line is no hash")
	}
	copy(s.root[:], root)
	if s.size < 0 || s.text() != text || !strings.HasPrefix(s.origin, originPrefix) {
		return statement{}, errors.New("the note is not in its one form")
	}
	return s, nil
}

func (s statement) sign(signer note.Signer) (string, error) {
	signed, err := note.Sign(&note.Note{Text: s.text()}, signer)
	return string(signed), err
}

// openNote reads a signed note. Without a verifier its form is checked, its
// signature is not.
func openNote(text string, verifier note.Verifier) (statement, error) {
	var known note.Verifiers = note.VerifierList()
	if verifier != nil {
		known = note.VerifierList(verifier)
	}
	opened, err := note.Open([]byte(text), known)
	var unverified *note.UnverifiedNoteError
	switch {
	case err == nil:
	case verifier == nil && errors.As(err, &unverified):
		opened = unverified.Note
	default:
		return statement{}, err
	}
	return parseStatement(opened.Text)
}
