package chain

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxKeyFile limits how much of a key file is read, in bytes.
const maxKeyFile = 16 << 10

// privateBlock is the PEM type of PKCS #8.
const privateBlock = "PRIVATE KEY"

// OpenKey reads the signing key at path, PKCS #8 in PEM. The first caller creates it, readable by its user only; of
// concurrent callers one creates it and all get the same. A file that others may read is refused: a holder of the key
// can rewrite the ledger.
func OpenKey(path string) (ed25519.PrivateKey, error) {
	key, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeKey(path); err == nil {
			key, err = readKey(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("audit signing key: %w", err)
	}
	return key, nil
}

// CheckKey reports why the key in a file cannot be used; it makes none.
func CheckKey(path string) error {
	_, err := readKey(path)
	return err
}

func readKey(path string) (ed25519.PrivateKey, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if loose := info.Mode().Perm() & 0o077; loose != 0 {
		return nil, fmt.Errorf("%s has mode %04o: others may use the key; set it to 0600", path, info.Mode().Perm())
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(raw)
	if block == nil || block.Type != privateBlock {
		return nil, fmt.Errorf("%s holds no %s in PEM", path, privateBlock)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s holds a %T, not an Ed25519 key", path, parsed)
	}
	return key, nil
}

// makeKey writes a new key atomically, and never over another.
func makeKey(path string) (err error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".audit-key-*") // 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(tmp.Name())) }()
	werr := pem.Encode(tmp, &pem.Block{Type: privateBlock, Bytes: der})
	if err := errors.Join(werr, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	// A link fails where a rename would overwrite.
	if err := os.Link(tmp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// ParsePublic reads a public key: PEM, or its 32 bytes in hex or base64.
func ParsePublic(text string) (ed25519.PublicKey, error) {
	text = strings.TrimSpace(text)
	if block, _ := pem.Decode([]byte(text)); block != nil {
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("public key: %w", err)
		}
		key, ok := parsed.(ed25519.PublicKey)
		if !ok {
			return nil, fmt.Errorf("public key: it is a %T, not an Ed25519 key", parsed)
		}
		return key, nil
	}
	for _, decode := range []func(string) ([]byte, error){hex.DecodeString, base64.StdEncoding.DecodeString, base64.RawURLEncoding.DecodeString} {
		if raw, err := decode(text); err == nil && len(raw) == ed25519.PublicKeySize {
			return raw, nil
		}
	}
	return nil, errors.New("public key: give a PEM file, or 32 bytes in hex or base64")
}
