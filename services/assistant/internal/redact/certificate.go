package redact

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Certificate is what everybody who connects may see of the certificate in a Secret, and whether the key beside it is its own.
// Of the key there is nothing in it.
type Certificate struct {
	Fault CertificateFault
	// Names are the hosts and addresses that the certificate is for, in lower case. The common name is not among them, since
	// clients no longer look at it.
	Names               []string
	NotBefore, NotAfter time.Time // zero where no certificate could be read
}

// CertificateFault is why a server cannot use a certificate with its key.
type CertificateFault int

// The faults. Of those of the key, the certificate itself could be read.
const (
	CertificateSound CertificateFault = iota
	CertificateEmpty
	CertificateNotPEM
	CertificateIsKey // the two are swapped, or the key stands in both
	CertificateUnreadable
	KeyEmpty
	KeyNotPEM
	KeyUnreadable
	KeyOfAnother
)

// CertificateSink receives the certificate of a Secret. One Secret may be reported twice, where a call is repeated.
type CertificateSink func(namespace, name string, c Certificate)

type sinkKey struct{}

// WithCertificates returns a context for calls of which [Transport] tells the certificates of the TLS Secrets in the answer.
// They come beside the body and not in it: whoever may write a Secret could write there what looks like one.
func WithCertificates(ctx context.Context, sink CertificateSink) context.Context {
	return context.WithValue(ctx, sinkKey{}, sink)
}

func sinkOf(ctx context.Context) CertificateSink {
	sink, _ := ctx.Value(sinkKey{}).(CertificateSink)
	return sink
}

// The type of a TLS Secret, and its keys.
const (
	tlsType = "kubernetes.io/tls"
	certKey = "tls.crt"
	keyKey  = "tls.key"
)

// tellCertificate reports the certificate of a Secret as the API gives it, before its values are taken out. A Secret of another
// type counts if it has both keys.
func tellCertificate(secret map[string]any, sink CertificateSink) {
	data, _ := secret["data"].(map[string]any)
	_, hasCert := data[certKey]
	_, hasKey := data[keyKey]
	cert, _ := data[certKey].(string) // an empty value may be a null
	key, _ := data[keyKey].(string)
	if secret["type"] != tlsType && !hasKey || !hasCert || marked.MatchString(cert) {
		return
	}
	meta, _ := secret["metadata"].(map[string]any)
	namespace, _ := meta["namespace"].(string)
	name, _ := meta["name"].(string)
	sink(namespace, name, pairs.read(cert, key))
}

// mostPairs limits the certificates that are remembered.
const mostPairs = 1 << 12

// pairs spares reading a certificate and its key again with each question: to read an RSA key takes most of a millisecond.
var pairs = pairCache{known: map[[16]byte]Certificate{}}

type pairCache struct {
	mu    sync.Mutex
	known map[[16]byte]Certificate // guarded by mu: by a keyed hash of both values
}

func (p *pairCache) read(cert, key string) Certificate {
	h := seen.hash(cert + "\n" + key) // no base64 has a line feed
	p.mu.Lock()
	c, ok := p.known[h]
	p.mu.Unlock()
	if ok {
		return c
	}
	c = readPair(cert, key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) >= mostPairs {
		clear(p.known)
	}
	p.known[h] = c
	return c
}

// readPair reads a certificate and a key, both PEM in base64. Errors of the parsers are dropped, since they quote what they read.
func readPair(cert, key string) Certificate {
	block, isKey := findBlock(cert, isCertificateBlock)
	switch {
	case strings.TrimSpace(cert) == "":
		return Certificate{Fault: CertificateEmpty}
	case block == nil && isKey:
		return Certificate{Fault: CertificateIsKey}
	case block == nil:
		return Certificate{Fault: CertificateNotPEM}
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return Certificate{Fault: CertificateUnreadable}
	}
	return Certificate{Names: namesOf(leaf), NotBefore: leaf.NotBefore.UTC(), NotAfter: leaf.NotAfter.UTC(), Fault: faultOfKey(leaf, key)}
}

// findBlock returns the first block of a value that fits, or nil. isKey says that one of the others is a private key.
func findBlock(value string, fits func(*pem.Block) bool) (found *pem.Block, isKey bool) {
	rest, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return nil, false // no API server gives such a value
	}
	for {
		block, left := pem.Decode(rest)
		if block == nil || fits(block) {
			return block, isKey
		}
		isKey = isKey || isKeyBlock(block)
		rest = left
	}
}

func isCertificateBlock(b *pem.Block) bool { return b.Type == "CERTIFICATE" }

func isKeyBlock(b *pem.Block) bool { return strings.HasSuffix(b.Type, "PRIVATE KEY") }

// hostExpr matches the names that hosts have. Another name in a certificate may be any text, and covers no host.
var hostExpr = regexp.MustCompile(`^(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)

func namesOf(leaf *x509.Certificate) []string {
	var names []string
	for _, name := range leaf.DNSNames {
		if name = strings.TrimSuffix(strings.ToLower(name), "."); hostExpr.MatchString(name) && len(name) <= 253 {
			names = append(names, name)
		}
	}
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

func faultOfKey(leaf *x509.Certificate, key string) CertificateFault {
	public, known := leaf.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	block, _ := findBlock(key, isKeyBlock)
	switch {
	case strings.TrimSpace(key) == "":
		return KeyEmpty
	case block == nil:
		return KeyNotPEM
	case !known:
		return CertificateSound // of an algorithm that is not known here
	}
	private := parseKey(block.Bytes)
	switch {
	case private == nil:
		return KeyUnreadable
	case !public.Equal(private.Public()):
		return KeyOfAnother
	}
	return CertificateSound
}

// parseKey reads a private key in any of the forms in which servers take one, or returns nil.
func parseKey(der []byte) crypto.Signer {
	var key any
	var err error
	if key, err = x509.ParsePKCS8PrivateKey(der); err != nil {
		if key, err = x509.ParsePKCS1PrivateKey(der); err != nil {
			if key, err = x509.ParseECPrivateKey(der); err != nil {
				return nil
			}
		}
	}
	signer, _ := key.(crypto.Signer)
	return signer
}

// Covers reports whether the certificate is for a host, as clients judge it (RFC 6125): a wildcard stands for exactly one label.
// A host may be a wildcard itself, as in an Ingress.
func (c Certificate) Covers(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	_, parent, _ := strings.Cut(host, ".")
	for _, name := range c.Names {
		if name == host || parent != "" && name == "*."+parent {
			return true
		}
	}
	return false
}
