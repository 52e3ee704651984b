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

// Certificate holds the public properties of the certificate in a Secret, and whether the key next to it belongs to it.
// It contains nothing of the key.
type Certificate struct {
	Fault CertificateFault
	// Names are the hosts and addresses that the certificate covers, in lower case. The common name is not included, since
	// clients no longer check it.
	Names               []string
	NotBefore, NotAfter time.Time // zero if no certificate could be parsed
}

// CertificateFault is the reason why a server cannot use a certificate with its key.
type CertificateFault int

// The faults. For faults of the key, the certificate itself could be parsed.
const (
	CertificateSound CertificateFault = iota
	CertificateEmpty
	CertificateNotPEM
	CertificateIsKey // the two are swapped, or the key is in both
	CertificateUnreadable
	KeyEmpty
	KeyNotPEM
	KeyUnreadable
	KeyOfAnother
)

// CertificateSink receives the certificate of a Secret. A Secret may be reported twice if a call is repeated.
type CertificateSink func(namespace, name string, c Certificate)

type sinkKey struct{}

// WithCertificates returns a context for calls for which [Transport] reports the certificates of the TLS Secrets in the
// response. They are reported apart from the body: anyone who may write a Secret could forge them in there.
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

// tellCertificate reports the certificate of a Secret as the API returns it, before its values are redacted. A Secret
// of another type counts if it has both keys.
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

// mostPairs limits the cached certificates.
const mostPairs = 1 << 12

// pairs caches parsed certificates and keys across questions: parsing an RSA key takes most of a millisecond.
var pairs = pairCache{known: map[[16]byte]Certificate{}}

type pairCache struct {
	mu    sync.Mutex
	known map[[16]byte]Certificate // guarded by mu; by an HMAC of both values
}

func (p *pairCache) read(cert, key string) Certificate {
	h := seen.hash(cert + "\n" + key) // base64 contains no line feed
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

// readPair parses a certificate and a key, both PEM in base64. It drops the parsers' errors, since they quote their
// input.
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

// findBlock returns the first matching block of a value, or nil. isKey reports that one of the others is a private key.
func findBlock(value string, fits func(*pem.Block) bool) (found *pem.Block, isKey bool) {
	rest, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return nil, false // no API server returns such a value
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

// hostExpr matches valid host names. Any other name in a certificate may be arbitrary text, and covers no host.
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
		return CertificateSound // of an unknown algorithm
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

// parseKey parses a private key in any of the forms that servers accept, or returns nil.
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

// Covers reports whether the certificate is for a host, as clients judge it (RFC 6125): a wildcard matches exactly one
// label. A host may itself be a wildcard, as in an Ingress.
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
