package compose

import (
	"slices"
	"time"
)

// maxDocuments limits the encoded views kept: one for each tenant and large view, which may be megabytes.
const maxDocuments = 32

type documentKey struct{ name, tenant string }

// document is an encoded view with the answers that it was made of.
type document struct {
	inputs []*result
	body   []byte
	at     time.Time
}

// document returns the encoded view of exactly these answers; nil if there is none.
func (p *Pool) document(k documentKey, inputs []*result) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d, ok := p.documents[k]; ok && slices.Equal(d.inputs, inputs) {
		return d.body
	}
	return nil
}

func (p *Pool) keepDocument(k documentKey, inputs []*result, body []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for other, d := range p.documents {
		if now.Sub(d.at) > failedFor || len(p.documents) >= maxDocuments {
			delete(p.documents, other)
		}
	}
	p.documents[k] = document{inputs, body, now}
}
