package chain

import (
	"crypto/ed25519"
	"fmt"
)

// Request is a request for a second person's decision. Its signature prevents the owner of the database that stores it
// meanwhile from changing its requester or its content.
type Request struct {
	ID          string `json:"id"`
	Kind        string `json:"kind"`
	Target      string `json:"target"`
	Tenant      string `json:"tenant"`
	RequestedBy string `json:"requested_by"`
	New         any    `json:"new"`
}

func (r Request) signedText() ([]byte, error) {
	form, err := canonicalOf(r)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "platform-audit-request/v1\n%s\n", form), nil
}

// RequestSignature is the signature of the ledger that took a request.
type RequestSignature struct {
	KeyID     string `json:"key_id"`
	Signature []byte `json:"signature"` // base64 in JSON
}

// SignRequest signs a request.
func SignRequest(key ed25519.PrivateKey, r Request) (RequestSignature, error) {
	text, err := r.signedText()
	if err != nil {
		return RequestSignature{}, err
	}
	return RequestSignature{KeyID(key.Public().(ed25519.PublicKey)), ed25519.Sign(key, text)}, nil
}

// Asked reports whether one of the keys has signed the request.
func (k Keys) Asked(r Request, by RequestSignature) bool {
	public, ok := k[by.KeyID]
	if !ok {
		return false
	}
	text, err := r.signedText()
	return err == nil && ed25519.Verify(public, text, by.Signature)
}
