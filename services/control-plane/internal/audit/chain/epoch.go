package chain

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

// Epoch is a signed statement that, from an entry on, all entries of a chain carry a MAC of the signing key. Entries
// before it are from a time without MACs, or from the epoch of another key.
type Epoch struct {
	Tenant    string `json:"tenant"` // empty: all chains without a separate epoch; see Seal
	FromSeq   int64  `json:"from_seq"`
	TS        string `json:"ts"` // in the format of Time
	KeyID     string `json:"key_id"`
	Signature []byte `json:"signature"` // base64 in JSON
}

func (e Epoch) signedText() []byte {
	return fmt.Appendf(nil, "platform-audit-epoch/v1\n%s\n%d\n%s\n", e.Tenant, e.FromSeq, e.TS)
}

// SignEpoch begins an epoch of the key at an entry.
func SignEpoch(key ed25519.PrivateKey, tenant string, fromSeq int64, at time.Time) Epoch {
	e := Epoch{Tenant: tenant, FromSeq: fromSeq, TS: Time(at), KeyID: KeyID(key.Public().(ed25519.PublicKey))}
	e.Signature = ed25519.Sign(key, e.signedText())
	return e
}

// Seal states that every chain that existed without MACs now has its epoch, so that a chain without one was inserted by
// hand.
func Seal(key ed25519.PrivateKey, at time.Time) Epoch { return SignEpoch(key, "", 1, at) }

// Signed reports whether one of the keys has signed the epoch.
func (k Keys) Signed(e Epoch) bool {
	public, ok := k[e.KeyID]
	return ok && ed25519.Verify(public, e.signedText(), e.Signature)
}

// Epochs are the epochs of one chain.
type Epochs []Epoch

// At returns the epoch of an entry. Of several that begin at the same entry the latest counts: nothing was appended in
// the earlier ones.
func (es Epochs) At(seq int64) (Epoch, bool) {
	var at Epoch
	for _, e := range es {
		if e.FromSeq <= seq && (at.FromSeq == 0 || cmp.Or(cmp.Compare(e.FromSeq, at.FromSeq), cmp.Compare(e.TS, at.TS)) > 0) {
			at = e
		}
	}
	return at, at.FromSeq > 0
}

// EpochFormat names the format of a file of epochs.
const EpochFormat = "platform-audit-epochs/v1"

type epochFile struct {
	Format string  `json:"format"`
	Epochs []Epoch `json:"epochs"`
}

// ReadEpochs reads the file at path; without one there are none.
func ReadEpochs(path string) ([]Epoch, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("audit epochs: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	var f epochFile
	if err := d.Decode(&f); err != nil || f.Format != EpochFormat {
		return nil, fmt.Errorf("audit epochs: %s is not a file of the format %s", path, EpochFormat)
	}
	return f.Epochs, nil
}

// AddEpochs adds the epochs that the file at path lacks, atomically.
func AddEpochs(path string, with ...Epoch) error {
	have, err := ReadEpochs(path)
	if err != nil {
		return err
	}
	count := len(have)
	for _, e := range with {
		if !slices.ContainsFunc(have, func(h Epoch) bool { return bytes.Equal(h.Signature, e.Signature) }) {
			have = append(have, e)
		}
	}
	if len(have) == count {
		return nil
	}
	if err := replaceFile(path, ".audit-epochs-*", epochFile{EpochFormat, have}); err != nil {
		return fmt.Errorf("audit epochs: %w", err)
	}
	return nil
}
