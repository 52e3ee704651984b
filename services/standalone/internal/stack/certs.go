package stack

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Write access to etcd decides which database leads, and with it what Patroni runs. So its members and Patroni
// authenticate each other with certificates of an authority that signs no others: its key is never stored.

const (
	certificatesLast = 10 * 365 * 24 * time.Hour
	// certificatesLeft is the validity that a start requires; with less it makes new ones.
	certificatesLeft = 365 * 24 * time.Hour
)

// pair is the location of a reader's certificate and its key; each folder has the authority's certificate in ca.crt.
type pair struct{ folder, name string }

func certificatePairs() []pair {
	pairs := []pair{{"postgres-ha", "etcd"}}
	for _, host := range members {
		pairs = append(pairs, pair{host, "server"})
	}
	return pairs
}

// certificates are the files of etcd's certificates by folder and name: those in dir, if all are there, fit together and
// last, else new ones.
func certificates(dir string, now time.Time) (map[string]map[string]string, error) {
	if certificatesFit(dir, now) {
		return nil, nil
	}
	ca := &x509.Certificate{
		Subject: pkix.Name{CommonName: "etcd of the platform"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificatesLast),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caKey, caPEM, _, err := issue(ca, ca, nil)
	if err != nil {
		return nil, err
	}
	files := map[string]map[string]string{}
	for _, p := range certificatePairs() {
		leaf := &x509.Certificate{
			Subject: pkix.Name{CommonName: p.folder}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}
		if p.name == "server" {
			// A member is a client too: of the others, and of itself where it answers HTTP. etcd takes a peer's certificate
			// only from an address that its name has.
			leaf.DNSNames, leaf.IPAddresses = []string{p.folder}, []net.IP{net.IPv4(127, 0, 0, 1)}
			leaf.ExtKeyUsage = append(leaf.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		}
		_, certPEM, keyPEM, err := issue(leaf, ca, caKey)
		if err != nil {
			return nil, err
		}
		files[p.folder] = map[string]string{"ca.crt": caPEM, p.name + ".crt": certPEM, p.name + ".key": keyPEM}
	}
	return files, nil
}

// issue makes a key and a certificate for it that parent's key signs; without one, its own does.
func issue(template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (key *ecdsa.PrivateKey, certPEM, keyPEM string, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, "", "", fmt.Errorf("make a key for etcd: %w", err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, "", "", fmt.Errorf("make a certificate for etcd: %w", err)
	}
	signer := parentKey
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, "", "", fmt.Errorf("make a certificate for etcd: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, "", "", fmt.Errorf("encode a key for etcd: %w", err)
	}
	certPEM = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return key, certPEM, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})), nil
}

// certificatesFit reports whether every reader has a certificate of the one authority that lasts.
func certificatesFit(dir string, now time.Time) bool {
	authorities := map[string]bool{}
	for _, p := range certificatePairs() {
		ca, err := os.ReadFile(filepath.Join(dir, p.folder, "ca.crt"))
		if err != nil {
			return false
		}
		authorities[string(ca)] = true
		roots := x509.NewCertPool()
		file := filepath.Join(dir, p.folder, p.name)
		own, err := tls.LoadX509KeyPair(file+".crt", file+".key")
		if err != nil || !roots.AppendCertsFromPEM(ca) {
			return false
		}
		if _, err := own.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now.Add(certificatesLeft), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			return false
		}
	}
	return len(authorities) == 1
}

// addFiles adds the files of more to those of all.
func addFiles(all, more map[string]map[string]string) {
	for folder, contents := range more {
		if all[folder] == nil {
			all[folder] = map[string]string{}
		}
		maps.Copy(all[folder], contents)
	}
}
