package proxy

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
)

// seals encrypt what only this package may read: with the first key, while any of them opens.
type seals []cipher.AEAD

var errNotSealed = errors.New("not sealed by this dashboard")

// keyLength is that of AES-256, in bytes.
const keyLength = 32

// newSeals derives this package's own keys from the dashboard's.
func newSeals(keys [][]byte) (seals, error) {
	if len(keys) == 0 {
		return nil, errors.New("proxy: missing parts: SecretKeys")
	}
	all := make(seals, len(keys))
	for i, key := range keys {
		if len(key) != keyLength {
			return nil, fmt.Errorf("proxy: SecretKeys: key %d has %d bytes, not %d", i+1, len(key), keyLength)
		}
		derived, err := hkdf.Key(sha256.New, key, nil, "dashboard tools origin", keyLength)
		if err != nil {
			return nil, err
		}
		block, err := aes.NewCipher(derived)
		if err != nil {
			return nil, err
		}
		if all[i], err = cipher.NewGCM(block); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// encrypt seals plain. purpose keeps what was sealed for one use from being taken for another.
func (s seals) encrypt(plain []byte, purpose string) []byte {
	nonce := make([]byte, s[0].NonceSize())
	_, _ = rand.Read(nonce) // never fails, see crypto/rand
	return s[0].Seal(nonce, nonce, plain, []byte(purpose))
}

func (s seals) decrypt(sealed []byte, purpose string) ([]byte, error) {
	for _, key := range s {
		n := key.NonceSize()
		if len(sealed) < n {
			break
		}
		if plain, err := key.Open(nil, sealed[:n], sealed[n:], []byte(purpose)); err == nil {
			return plain, nil
		}
	}
	return nil, errNotSealed
}
